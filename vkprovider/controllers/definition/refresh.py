"""The source of a LabletDefinition → a new version, when its spec or a refresh request says so.

Each request is answered once: the content was stored, it was there already, or it was refused for a reason. Only a
store that does not answer is asked again.
"""

from collections.abc import Callable

from vkprovider.api.errors import InputError
from vkprovider.api.models import LabletDefinitionSpec
from vkprovider.api.objects import CustomResource
from vkprovider.content.spi import PackageName
from vkprovider.controllers.context import Context, ref_of
from vkprovider.controllers.definition import sources
from vkprovider.controllers.definition.packages import Packages, Want
from vkprovider.controllers.definition.versions import Versions
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition import refresh
from vkprovider.domain.definition import status as definitionstatus
from vkprovider.domain.definition.content import Content
from vkprovider.domain.definition.package import Package
from vkprovider.domain.definition.refresh import Outcome
from vkprovider.domain.definition.status import Turn


class Refreshing:
    """Reads sources for the definitions, and remembers what it has answered."""

    def __init__(self, ctx: Context, versions: Versions, packages: Packages, stored: Callable[[str], None]) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            versions: Where what was read is stored.
            packages: Content packages on their way.
            stored: Called with the form's qualified name when a version of its content was stored.
        """
        self._ctx = ctx
        self._form_stored = stored
        self._versions = versions
        self._packages = packages
        self._answered: dict[str, tuple[Want, Outcome]] = {}

    def forget(self, name: str) -> None:
        """Forget a definition that is gone, or that another replica reads for."""
        self._answered.pop(name, None)
        self._packages.forget(name)

    async def take_in(self, resource: CustomResource, spec: LabletDefinitionSpec) -> Turn:
        """Store the content as a new version, if it is one.

        Raises:
            InputError: It is wrong; what is stored stays.
            OutsideError: The API server did not do its part.
        """
        fingerprint = refresh.fingerprint(spec)
        served = Turn(fingerprint)
        source, due = spec.source, refresh.is_due(resource, spec)
        if source.object_store is not None:
            if due:
                return await self._take_package(resource, spec, fingerprint)
            await self._versions.check_current(resource, spec)
            return served
        if source.config_map is not None:
            if not due and definitionstatus.is_ready(resource):
                await self._versions.check_current(resource, spec)
                return served
            text = await sources.read_config_map(self._ctx, source.config_map)
        else:
            text = source.inline or ""
        request = refresh.waiting(resource)
        content, news = await self._versions.take(resource, spec, Package(spec.version or "", text), request.raw)
        if not news and request.raw and content.request == request.raw:
            news = True  # stored a moment ago, or before a crash: the status that we know does not say so yet
        outcome = self._stored(resource, content) if news else self._unchanged(resource, content)
        heals = definitionstatus.refused(resource) is not None
        return Turn(fingerprint, outcome) if heals or request.raw else served

    async def _take_package(self, resource: CustomResource, spec: LabletDefinitionSpec, fingerprint: str) -> Turn:
        """Take a content package that was asked for; each request is answered once.

        Raises:
            Invalid, Forbidden: The API server refused an object.
            OutsideError: It did not answer.
        """
        name = resource.metadata.name
        source = spec.source.object_store
        want = Want(
            uid=resource.metadata.uid,
            generation=resource.metadata.generation,
            request=refresh.asked(resource).raw,
            source=fingerprint,
            name=PackageName((source.bucket if source is not None else "") or "", spec.package_key),
            version=spec.version or "",
        )
        answered = self._answered.get(name)
        if answered is not None and answered[0] == want:  # the status that we know does not say so yet
            return Turn(fingerprint, answered[1])
        found = self._packages.get(name, want)
        if found.package is not None:
            try:
                outcome = await self._store(resource, spec, found.package)
            except InputError as error:
                outcome = refusal(error)
        elif found.fault is not None and found.final:
            outcome = refusal(found.fault)
        else:
            waiting = InputError("Refreshing", f"{self._packages.locate(want)} is being read")
            return Turn("", fault=found.fault or waiting)
        self._answered[name] = (want, outcome)
        self._packages.forget(name)
        return Turn(fingerprint, outcome)

    async def _store(self, resource: CustomResource, spec: LabletDefinitionSpec, package: Package) -> Outcome:
        """Store a package; a refresh without force does not if it is of the version that is current.

        Raises:
            InputError: It is wrong.
            OutsideError: The API server did not do its part.
        """
        current = await self._versions.current(resource, spec)
        request = refresh.waiting(resource)
        if current is not None and current.version == package.version and request.raw and not request.force:
            if current.request == request.raw:
                return self._stored(resource, current)  # before a crash
            differs = contents.digest_of(resource.metadata.uid, package) != current.digest
            return self._unchanged(resource, current, differs=differs)
        content, news = await self._versions.take(resource, spec, package, request.raw)
        return self._stored(resource, content) if news else self._unchanged(resource, content)

    def _stored(self, resource: CustomResource, content: Content) -> Outcome:
        """Say that there is a new version."""
        devices = len(content.topology.devices)
        note = f"version {content.version} of {devices} devices is ready{_by(resource)}"
        self._ctx.events.emit(ref_of(resource, "LabletDefinition"), "Normal", "ContentStored", note)
        form = resource.spec.get("formQualifiedName")
        if form:
            self._form_stored(form)
        return Outcome("Stored", "ContentStored", note, content.version, devices)

    def _unchanged(self, resource: CustomResource, content: Content, *, differs: bool = False) -> Outcome:
        """Say that what was read is the current version already."""
        devices = len(content.topology.devices)
        note = f"version {content.version} is the current one already{_by(resource)}"
        if differs:
            note += "; its files differ, and were not taken: raise the package's version, or refresh with --force"
        if refresh.waiting(resource).raw:
            self._ctx.events.emit(ref_of(resource, "LabletDefinition"), "Normal", "VersionUnchanged", note)
        return Outcome("Unchanged", "VersionUnchanged", note, content.version, devices)


def refusal(fault: InputError) -> Outcome:
    """Say that what was read cannot be taken."""
    return Outcome("Refused", fault.reason, fault.message)


def _by(resource: CustomResource) -> str:
    by = refresh.waiting(resource).by
    return f", asked for by {by}" if by else ""
