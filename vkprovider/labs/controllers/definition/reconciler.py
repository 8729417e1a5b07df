"""LabletDefinition → content ConfigMaps, RuntimeClass and status.

`refresh` reads the source of a definition, `versions` stores it, `runtimeclasses` charges for it. Only the leading
replica writes; the others follow what it has written.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.exposure import expose_of
from vkprovider.lablet.models.definition import LabletDefinitionSpec, parse_definition_spec, version_terms_of
from vkprovider.lablet.models.status import ResourceCondition, definition_status, stored
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.content.spi import Parser
from vkprovider.labs.controllers.claims import reader
from vkprovider.labs.controllers.definition.impediments import Impediments
from vkprovider.labs.controllers.definition.packages import Packages
from vkprovider.labs.controllers.definition.refresh import Refresher, refusal
from vkprovider.labs.controllers.definition.runtimeclasses import RuntimeClasses
from vkprovider.labs.controllers.definition.versions import ContentRefusedError, Versions
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition import status as definitionstatus
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.status import SourceRead
from vkprovider.labs.pure.lablet.boots import boot_timeout_of, longest
from vkprovider.labs.pure.lablet.intent import Definition, owner_of
from vkprovider.labs.pure.session.delivery import terms_of
from vkprovider.labs.pure.topology.resources import NodeDefinition, Resources
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.platform.errors import Forbidden, InputError, Invalid, NotFound
from vkprovider.platform.kube.queue import Result
from vkprovider.platform.messages import Fault, count
from vkprovider.platform.objects import ConfigMap, CustomResource, RuntimeClass
from vkprovider.platform.reasons import reason_of
from vkprovider.platform.runtime.context import Context, ref_of

_DELETING_S: Final = 2.0
"""How often a definition that is being deleted is checked for lablets that still run it."""


class Definitions:
    """The LabletDefinitions.

    Attributes:
        items: What Pods need of each definition, by its name.
        contents: Every version that exists, by digest.
    """

    def __init__(
        self,
        ctx: Context,
        resource: Callable[[str], CustomResource | None],
        runtime_class: Callable[[str], RuntimeClass | None],
        stored: Callable[[], list[ConfigMap]],
        leads: Callable[[], bool],
        packages: Packages,
        impediments: Impediments,
        *,
        parser: Parser,
        node_definitions: Mapping[str, NodeDefinition],
        boot_timeouts: Mapping[str, Mapping[str, int]],
        start_timeout_s: float | None,
        ports_max: int,
        reconcile_s: float,
        form_stored: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        """Create the reconciler.

        Args:
            ctx: The replica.
            resource: Returns the LabletDefinition of a name, as the informer knows it.
            runtime_class: Returns the RuntimeClass of a name, as the informer knows it.
            stored: Returns the content ConfigMaps, as the informer knows them.
            leads: Returns whether this replica writes.
            packages: Downloads of content packages.
            impediments: Checks what a definition needs beside its content.
            parser: Parses untrusted content.
            node_definitions: What devices need, by node definition.
            boot_timeouts: How long CML waits for a device to boot, by worker and node definition.
            start_timeout_s: LAB_START_TIMEOUT; None if it is not set.
            ports_max: External ports of one lablet, at most.
            reconcile_s: Seconds between two looks at a definition that no event names.
            form_stored: Called with the form's qualified name when a version of its content was stored.
            changed: Called when what Pods need of a definition has changed.
        """
        self._ctx = ctx
        self._reconcile_s = reconcile_s
        self._leads = leads
        self._boot_timeouts = boot_timeouts
        self._start_timeout_s = start_timeout_s
        self._resource = resource
        self._versions = Versions(ctx, parser, stored, node_definitions, ports_max)
        self._impediments = impediments
        self._runtime_classes = RuntimeClasses(ctx, runtime_class)
        self._warned: dict[str, set[tuple[str, str]]] = {}  # by UID, reasons and messages
        self.items: dict[str, Definition] = {}
        self.contents: dict[str, Content] = self._versions.contents
        self._changed = changed
        self._refresher = Refresher(ctx, self._versions, packages, form_stored)

    def need(self, digest: str) -> Resources | None:
        """Return the resources that a lablet of a content needs; None if the content is unknown."""
        content = self.contents.get(digest)
        return content.need if content is not None else None

    def awaits_content(self, name: str) -> bool:
        """Return whether a definition of which no version is known may still get one: nothing says why it has none."""
        resource, known = self._resource(name), self.items.get(name)
        if (
            resource is None
            or resource.metadata.deletion_timestamp is not None
            or (known is not None and known.versions)
        ):
            return False
        ready = definition_status(resource).ready
        return ready is None or ready.status != "False"

    def content_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        """Note which content exists; the leading replica stores again what another client deleted."""
        if new is not None:
            self._versions.exists(new)
        elif old is not None:
            self._versions.removed(old)

    async def reconcile(self, name: str) -> Result:
        """Bring content and RuntimeClass of one definition up to date."""
        resource = self._resource(name)
        self._forget_others(name, resource.metadata.uid if resource is not None else "")
        if resource is None or not self._leads():
            self._refresher.forget(name)
        if resource is None:
            return Result()
        try:
            spec = parse_definition_spec(resource.spec)
        except InputError as error:
            return await self._refuse(resource, error.fault)
        if not self._leads():
            await self._follow(resource, spec)
            return Result()
        fault: Fault | None = None
        turn = SourceRead()
        deleting = resource.metadata.deletion_timestamp is not None
        try:
            if deleting:
                fault = await self._finalize(resource)
            else:
                await self._add_finalizer(resource)
                await self._versions.restore(resource)
                turn = await self._refresher.refresh(resource, spec)
        except (InputError, Invalid, Forbidden) as error:
            fault = _fault(error)
            if spec.source.object_store is None:
                turn = SourceRead(
                    refresh.fingerprint(spec),
                    refusal(fault) if refresh.waiting(resource).raw else None,
                    refused=error.digest if isinstance(error, ContentRefusedError) else "",
                )
        kept, dropped = await self._versions.sort(resource, spec)
        if fault is None and not kept:
            fault = definitionstatus.refused_by(turn) or definitionstatus.refused(resource)
        try:
            if kept and not deleting:
                await self._runtime_classes.write(resource, spec, kept)
        except (InputError, Invalid, Forbidden) as error:
            fault, kept = fault or _fault(error), []
        impediments = await self._impediments.of(spec, kept) if not deleting else []
        await self._publish(resource, kept, fault, turn, spec.environment, impediments)
        waits = [await self._versions.drop(dropped)] if dropped else []
        if fault is not None or impediments:
            waits.append(_DELETING_S if deleting else self._reconcile_s)
        return Result(min(waits) if waits else None)

    async def _follow(self, resource: CustomResource, spec: LabletDefinitionSpec) -> None:
        """Adopt what the leading replica has written."""
        kept, dropped = await self._versions.sort(resource, spec)
        self._versions.leave(dropped)
        ready = definition_status(resource).ready
        fault: Fault | None = None
        if ready is None and not kept:
            fault = Fault(DefinitionReason.NO_CONTENT, "no content yet")
        elif ready is not None and (ready.status == "False" or not kept):
            fault = ready.fault
        elif resource.metadata.deletion_timestamp is not None:
            fault = _deleting()
        self._show(resource, kept, fault, spec.environment)

    async def _refuse(self, resource: CustomResource, fault: Fault) -> Result:
        """Report a wrong spec; the versions of an earlier spec stay, also after a restart, and a deletion continues."""
        after_s, leads = None, self._leads()
        if leads and resource.metadata.deletion_timestamp is not None:
            fault, after_s = await self._finalize(resource), _DELETING_S
        before = self.items.get(resource.metadata.name)
        if before is not None and before.versions:
            kept, environment = list(before.versions), before.environment
        else:
            spec = version_terms_of(resource.spec)
            (kept, _), environment = await self._versions.sort(resource, spec), spec.environment
        if not leads:
            self._show(resource, kept, fault, environment)
            return Result()
        await self._publish(resource, kept, fault, SourceRead(), environment)
        return Result(after_s)

    def _forget_others(self, name: str, uid: str) -> None:
        """Forget an earlier definition of that name: Kubernetes deletes its objects."""
        known = self.items.get(name)
        if known is None or known.uid == uid:
            return
        del self.items[name]
        self._warned.pop(known.uid, None)
        self._versions.forget(name)
        self._changed()

    # --------------------------------------------------------------------------------------------- removal

    async def _add_finalizer(self, resource: CustomResource) -> None:
        """Add our finalizer: the content must outlive the lablets that run it."""
        if names.FINALIZER in resource.metadata.finalizers:
            return
        body = {"metadata": {"finalizers": [*resource.metadata.finalizers, names.FINALIZER]}}
        await self._ctx.api.definitions.patch(resource.metadata.name, body)

    async def _finalize(self, resource: CustomResource) -> Fault:
        """Remove our finalizer from a deleted definition once no lablet runs it; return the fault until it is gone."""
        name = resource.metadata.name
        used = sum(claim.definition == name for claim in await reader.of_all(self._ctx))
        abandoned = resource.metadata.annotations.get(names.ANNOTATION_ABANDON) == "true"
        if used and not abandoned:
            return Fault(
                DefinitionReason.IN_USE,
                f"{count(used, 'lablet')}; delete their pods, or annotate {names.ANNOTATION_ABANDON}=true",
            )
        await self._runtime_classes.remove(resource)
        finalizers = [f for f in resource.metadata.finalizers if f != names.FINALIZER]
        if finalizers != resource.metadata.finalizers:
            with contextlib.suppress(NotFound):
                await self._ctx.api.definitions.patch(name, {"metadata": {"finalizers": finalizers}})
        return _deleting()

    # --------------------------------------------------------------------------------------------- status

    async def _publish(
        self,
        resource: CustomResource,
        kept: list[Content],
        fault: Fault | None,
        turn: SourceRead,
        environment: str,
        impediments: Sequence[Fault] = (),
    ) -> None:
        name, now = resource.metadata.name, self._ctx.now_unix
        self._show(resource, kept, fault, environment)
        boot_s = self._boot_timeout_s(resource, kept[0].topology) if kept else None
        rendered = definitionstatus.render(
            resource, kept, fault, turn, now, impediments=impediments, boot_timeout_s=boot_s
        )
        self._warn(resource, rendered.conditions)
        status, wanted = resource.status, stored(rendered)
        if all(status.get(key) == value for key, value in wanted.items()):
            return
        stale = {key: None for key in status.get("resources", {}) if key not in wanted["resources"]}
        wanted["resources"] = stale | wanted["resources"]
        try:
            await self._ctx.api.definitions.patch_status(name, {"status": wanted})
        except NotFound:
            return

    def _boot_timeout_s(self, resource: CustomResource, topology: Topology) -> int:
        """Return how long a device may take to boot, on the worker that gives it the most time."""
        used = {device.definition for device in topology.devices}
        asked_s, by_worker = boot_timeout_of(resource.spec), self._boot_timeouts.values()
        return longest(self._start_timeout_s, asked_s, used, by_worker, topology.cpu_limit)

    def _warn(self, resource: CustomResource, conditions: Sequence[ResourceCondition]) -> None:
        """Emit one Warning Event for each new fault."""
        warned = self._warned.get(resource.metadata.uid, set())
        bad = (c for c in conditions if (c.status == "False") != (c.type == definitionstatus.IMPEDED))
        faults = {(c.reason, c.message): c for c in bad}
        known = definition_status(resource)
        self._warned[resource.metadata.uid] = set(faults)
        for (reason, message), item in faults.items():
            before = known.condition(item.type)
            if before is not None and (before.reason, before.message) == (reason, message):
                continue
            if (reason, message) in warned:
                continue
            if not reason_of(reason).passing:
                self._ctx.events.emit(ref_of(resource, "LabletDefinition"), "Warning", reason, message)

    def _show(self, resource: CustomResource, kept: list[Content], fault: Fault | None, environment: str) -> None:
        """Update what Pods need of a definition; one that is being deleted accepts no new Pods."""
        name = resource.metadata.name
        usable = kept if resource.metadata.deletion_timestamp is None else []
        terms = terms_of(name, resource.spec)
        expose = expose_of(resource.spec)
        view = Definition(
            name,
            resource.metadata.uid,
            environment,
            tuple(usable),
            fault,
            terms,
            expose,
            owner_of(resource),
            boot_timeout_of(resource.spec),
        )
        if self.items.get(name) != view:
            self.items[name] = view
            self._changed()


def _fault(error: InputError | Invalid | Forbidden) -> Fault:
    """Convert a refusal that will not change by itself into a fault of the definition."""
    if isinstance(error, InputError):
        return error.fault
    return Fault(DefinitionReason.API_REFUSED, f"the API server refused an object of this definition: {error.message}")


def _deleting() -> Fault:
    return Fault(DefinitionReason.DELETING, "the definition is being deleted")
