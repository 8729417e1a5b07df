"""The source of a LabletDefinition → a new version, when its spec or a request asks for it.

An inline topology needs no reading; content packages come from `packages`.

Each request is answered once: the content was stored, was the current one already, or was refused for a reason. Only a
store that does not answer is asked again.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from vkprovider.lablet.models.definition import ConfigMapSource, LabletDefinitionSpec
from vkprovider.lablet.models.status import definition_status
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.content.spi import PackageName
from vkprovider.labs.controllers.definition.packages import PackageRequest, Packages
from vkprovider.labs.controllers.definition.versions import Versions
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition import status as definitionstatus
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.definition.refresh import RefreshOutcome
from vkprovider.labs.pure.definition.status import SourceRead
from vkprovider.labs.pure.session.delivery import terms_of
from vkprovider.platform.errors import Forbidden, InputError
from vkprovider.platform.messages import Fault, count, in_utf8
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context, ref_of


async def read_config_map(ctx: Context, where: ConfigMapSource) -> str:
    """Read a topology from a ConfigMap.

    Raises:
        InputError: `SourceNotFound`; `SourceForbidden`, with the command that grants the right; `TopologyInvalid`, if
            it is not UTF-8.
    """
    try:
        found = await ctx.api.config_maps.within(where.namespace).get(where.name)
    except Forbidden:
        raise InputError(
            DefinitionReason.SOURCE_FORBIDDEN,
            f"ConfigMap {where.namespace}/{where.name} may not be read; bind it: kubectl -n {where.namespace} "
            "create rolebinding vkprovider-topologies --clusterrole=vkprovider-topology-reader "
            f"--serviceaccount={ctx.namespace}:vkprovider",
        ) from None
    if found is None:
        raise InputError(DefinitionReason.SOURCE_NOT_FOUND, f"ConfigMap {where.namespace}/{where.name} does not exist")
    if where.key in found.binary_data:
        return _text(where, base64.b64decode(found.binary_data[where.key]))
    if where.key not in found.data:
        keys = ", ".join(sorted({*found.data, *found.binary_data})) or "none"
        raise InputError(
            DefinitionReason.SOURCE_NOT_FOUND,
            f"ConfigMap {where.namespace}/{where.name} has no key {where.key!r}; it has {keys}",
        )
    return found.data[where.key]


def _text(where: ConfigMapSource, data: bytes) -> str:
    """Decode a file that a client has put into `binaryData`: kubectl does so with each that is not UTF-8.

    Raises:
        InputError: `TopologyInvalid`: it is not UTF-8.
    """
    try:
        return in_utf8(data)
    except ValueError as error:
        text = f"{where.key!r} of ConfigMap {where.namespace}/{where.name} is {error}, and create the ConfigMap again"
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, text) from None


@dataclass(frozen=True, slots=True)
class Refresher:
    """Reads the sources of definitions, and remembers its answers.

    Attributes:
        ctx: The replica.
        versions: Stores what was read.
        packages: Downloads of content packages.
        form_stored: Called with the form's qualified name when a version of its content was stored.
    """

    ctx: Context
    versions: Versions
    packages: Packages
    form_stored: Callable[[str], None]
    _answered: dict[str, tuple[PackageRequest, RefreshOutcome]] = field(default_factory=dict)

    def forget(self, name: str) -> None:
        """Forget a definition that was deleted, or that another replica reads for."""
        self._answered.pop(name, None)
        self.packages.forget(name)

    async def refresh(self, resource: CustomResource, spec: LabletDefinitionSpec) -> SourceRead:
        """Read the source if that is due, and store new content as a new version.

        Raises:
            InputError: The content is wrong; the stored versions stay as they are.
            OutsideError: The API server refused an object, or did not answer.
        """
        fingerprint = refresh.fingerprint(spec)
        served = SourceRead(fingerprint)
        source, due = spec.source, refresh.is_due(resource, spec)
        if source.object_store is not None:
            if due:
                return await self._refresh_package(resource, spec, fingerprint)
            await self.versions.check_current(resource, spec)
            return served
        if source.config_map is not None:
            if not due and definition_status(resource).is_ready:
                await self.versions.check_current(resource, spec)
                return served
            text = await read_config_map(self.ctx, source.config_map)
        else:
            text = source.inline or ""
        request = refresh.waiting(resource)
        before = await self.versions.current(resource, spec)
        content, news = await self.versions.adopt(resource, spec, Package(spec.version or "", text), request.raw)
        if news and before is not None and before.version == content.version:
            self._warn_of_replacement(resource, before, content)
        if not news and request.raw and content.request == request.raw:
            news = True  # stored a moment ago, or before a crash: the known status does not show it yet
        outcome = self._stored(resource, content) if news else self._unchanged(resource, content)
        heals = definitionstatus.refused(resource) is not None
        return SourceRead(fingerprint, outcome) if heals or request.raw else served

    async def _refresh_package(
        self, resource: CustomResource, spec: LabletDefinitionSpec, fingerprint: str
    ) -> SourceRead:
        """Store a content package once it was read; each request is answered once.

        Raises:
            Invalid, Forbidden: The API server refused an object.
            OutsideError: It did not answer.
        """
        name = resource.metadata.name
        source = spec.source.object_store
        want = PackageRequest(
            uid=resource.metadata.uid,
            generation=resource.metadata.generation,
            request=refresh.asked(resource).raw,
            source=fingerprint,
            name=PackageName((source.bucket if source is not None else "") or "", spec.package_key),
            version=spec.version or "",
        )
        answered = self._answered.get(name)
        if answered is not None and answered[0] == want:  # the known status does not show it yet
            return SourceRead(fingerprint, answered[1])
        found = self.packages.get(name, want)
        if found.package is not None:
            try:
                outcome = await self._store(resource, spec, found.package)
            except InputError as error:
                outcome = refusal(error)
        elif found.fault is not None and found.final:
            outcome = refusal(found.fault)
        else:
            waiting = Fault(DefinitionReason.REFRESHING, f"{self.packages.locate(want)} is being read")
            return SourceRead("", fault=found.fault.fault if found.fault is not None else waiting)
        self._answered[name] = (want, outcome)
        self.packages.forget(name)
        return SourceRead(fingerprint, outcome)

    async def _store(self, resource: CustomResource, spec: LabletDefinitionSpec, package: Package) -> RefreshOutcome:
        """Store a package; a refresh without force stores nothing under the version that is current.

        Raises:
            InputError: The package is wrong.
            OutsideError: The API server refused an object, or did not answer.
        """
        current = await self.versions.current(resource, spec)
        request = refresh.waiting(resource)
        if current is not None and current.version == package.version and request.raw and not request.force:
            if current.request == request.raw:
                return self._stored(resource, current)  # before a crash
            differs = contents.digest_of(resource.metadata.uid, package) != current.digest
            return self._unchanged(resource, current, differs=differs)
        content, news = await self.versions.adopt(resource, spec, package, request.raw)
        return self._stored(resource, content) if news else self._unchanged(resource, content)

    def _stored(self, resource: CustomResource, content: Content) -> RefreshOutcome:
        """Report a new version, by an Event and to the LDS."""
        devices = len(content.topology.devices)
        note = f"version {content.version} of {count(devices, 'device')} is ready{_by(resource)}"
        self.ctx.events.emit(ref_of(resource, "LabletDefinition"), "Normal", DefinitionReason.CONTENT_STORED, note)
        terms = terms_of(resource.metadata.name, resource.spec)
        if terms.enabled or resource.spec.get("formQualifiedName"):
            self.form_stored(terms.form)
        return RefreshOutcome("Stored", DefinitionReason.CONTENT_STORED, note, content.version, devices)

    def _warn_of_replacement(self, resource: CustomResource, before: Content, content: Content) -> None:
        """Report that a version has other content than it had: nothing else tells lablets of the two apart."""
        chars = definitionstatus.DIGEST_CHARS
        note = (
            f"version {content.version} has other content now (digest {content.digest[:chars]}, before "
            f"{before.digest[:chars]}): lablets that run keep theirs, new ones get this; raise spec.version with each "
            "change"
        )
        self.ctx.events.emit(ref_of(resource, "LabletDefinition"), "Warning", DefinitionReason.CONTENT_REPLACED, note)

    def _unchanged(self, resource: CustomResource, content: Content, *, differs: bool = False) -> RefreshOutcome:
        """Report that the content is the current version already."""
        devices = len(content.topology.devices)
        note = f"version {content.version} is the current one already{_by(resource)}"
        if differs:
            note += "; its files differ, and were not taken: raise the package's version, or refresh with --force"
        if refresh.waiting(resource).raw:
            self.ctx.events.emit(
                ref_of(resource, "LabletDefinition"), "Normal", DefinitionReason.VERSION_UNCHANGED, note
            )
        return RefreshOutcome("Unchanged", DefinitionReason.VERSION_UNCHANGED, note, content.version, devices)


def refusal(fault: Fault | InputError) -> RefreshOutcome:
    """Build the outcome of a refresh whose content was refused."""
    return RefreshOutcome("Refused", fault.reason, fault.message)


def _by(resource: CustomResource) -> str:
    by = refresh.waiting(resource).by
    return f", asked for by {by}" if by else ""
