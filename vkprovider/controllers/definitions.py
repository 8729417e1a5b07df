"""LabletDefinition → content ConfigMaps and RuntimeClass."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import Conflict, Forbidden, InputError, Invalid, NotFound
from vkprovider.api.models import LabletDefinitionSpec, parse_definition_spec
from vkprovider.api.objects import ConfigMap, CustomResource, RuntimeClass
from vkprovider.controllers.context import Context
from vkprovider.controllers.nodes import ref_of
from vkprovider.domain import claims as claim_rules
from vkprovider.domain import content as contents
from vkprovider.domain import topology as topologies
from vkprovider.domain.content import Content
from vkprovider.domain.intent import Definition
from vkprovider.domain.podstatus import iso
from vkprovider.domain.resources import Resources, need_of
from vkprovider.kube.queue import KeyedQueue, Result

_log: Final = structlog.get_logger(__name__)
_encode: Final = msgspec.json.encode
_config_map: Final = msgspec.json.Decoder(ConfigMap)
_runtime_class: Final = msgspec.json.Decoder(RuntimeClass)
_DEFINITIONS: Final = f"/apis/{names.API_VERSION}/labletdefinitions"
_RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"
_DEVICES_LISTED_MAX: Final = 500
"""In the status, which must fit into one object together with an inline topology."""
_LEAVE_AGAIN_S: Final = 2.0
_DROP_AFTER_S: Final = 60.0
"""How long a version stays after no new pod may name it: a replica may just be writing a claim on it."""


class _ConfigMaps(msgspec.Struct, frozen=True):
    items: list[ConfigMap] = []


_config_maps: Final = msgspec.json.Decoder(_ConfigMaps)


class Definitions:
    """The LabletDefinitions.

    Attributes:
        items: By name, as pods need them.
        contents: By digest, every version that exists.
        changed: Called when pods should be looked at again.
    """

    def __init__(
        self,
        ctx: Context,
        resource: Callable[[str], CustomResource | None],
        runtime_class: Callable[[str], RuntimeClass | None],
        stored: Callable[[], list[ConfigMap]],
        leads: Callable[[], bool],
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            resource: The LabletDefinition of a name.
            runtime_class: The RuntimeClass of a name.
            stored: The content ConfigMaps.
            leads: Whether this replica writes; the others only take in what it has written.
        """
        self._ctx = ctx
        self._leads = leads
        self._resource = resource
        self._runtime_class = runtime_class
        self._stored = stored
        self._config_maps = f"/api/v1/namespaces/{ctx.namespace}/configmaps"
        self.items: dict[str, Definition] = {}
        self.contents: dict[str, Content] = {}
        self._dropped_at: dict[str, float] = {}
        self.changed: Callable[[], None] = lambda: None
        self.queue: KeyedQueue[str] = KeyedQueue(self.reconcile, name="definitions", workers=4)

    def need(self, digest: str) -> Resources | None:
        """Tell what a lablet of a content takes."""
        content = self.contents.get(digest)
        return content.need if content is not None else None

    async def reconcile(self, name: str) -> Result:
        """Bring content and RuntimeClass of one definition up to date."""
        resource = self._resource(name)
        self._forget_others(name, resource.metadata.uid if resource is not None else "")
        if resource is None:
            return Result()
        fault: InputError | None = None
        kept: list[Content] = []
        try:
            spec = parse_definition_spec(resource.spec)
        except InputError as error:
            return await self._refuse(resource, error) if self._leads() else Result()
        if not self._leads():
            await self._follow(resource, spec)
            return Result()
        try:
            if resource.metadata.deletion_timestamp is not None:
                fault = await self._leave(resource)
            else:
                await self._hold(resource)
                await self._take_in(resource, spec)
        except (InputError, Invalid, Forbidden) as error:
            fault = _fault(error)
        kept, dropped = await self._sort(resource, spec)
        try:
            if kept and resource.metadata.deletion_timestamp is None:
                await self._write_runtime_class(resource, spec, kept)
        except (InputError, Invalid, Forbidden) as error:
            fault, kept = fault or _fault(error), []
        await self._publish(resource, kept, fault, spec.environment)
        waits = [await self._drop(dropped)] if dropped else []
        if fault is not None:
            waits.append(_LEAVE_AGAIN_S if fault.reason == "InUse" else self._ctx.tuning.reconcile_s)
        return Result(min(waits) if waits else None)

    async def _follow(self, resource: CustomResource, spec: LabletDefinitionSpec) -> None:
        """Take in what the replica that leads has written."""
        kept, _ = await self._sort(resource, spec)
        said = _ready_of(resource)
        ready = kept and said.get("status") != "False" and resource.metadata.deletion_timestamp is None
        fault = None if ready else InputError(said.get("reason", "NoContent"), said.get("message", "no content yet"))
        self._show(resource, kept, fault, spec.environment)

    async def _refuse(self, resource: CustomResource, fault: InputError) -> Result:
        """Say that a spec is wrong; what was kept of an earlier one stays, and a deletion goes on."""
        after_s = None
        if resource.metadata.deletion_timestamp is not None:
            fault, after_s = await self._leave(resource), _LEAVE_AGAIN_S
        before = self.items.get(resource.metadata.name)
        kept, environment = (before.kept, before.environment) if before is not None else ((), "default")
        await self._publish(resource, list(kept), fault, environment)
        return Result(after_s)

    def _forget_others(self, name: str, uid: str) -> None:
        """Forget what is known of an earlier definition of that name: its objects go away with it."""
        known = self.items.get(name)
        if known is None or known.uid == uid:
            return
        del self.items[name]
        for digest in [c.digest for c in self.contents.values() if c.definition == name]:
            del self.contents[digest]
        self.changed()

    # --------------------------------------------------------------------------------------------- content

    async def _take_in(self, resource: CustomResource, spec: LabletDefinitionSpec) -> None:
        """Store the content as a new version, if it is one.

        Raises:
            InputError: It is wrong; what is stored stays.
        """
        name = resource.metadata.name
        text = await self._text(resource, spec)
        if text is None:
            return
        digest = contents.digest_of(resource.metadata.uid, spec.version, text)
        mine = {c.digest: c for c in await self._read_all(resource, spec)}
        newest = max((c.sequence for c in mine.values()), default=0)
        if digest in mine and mine[digest].sequence == newest:
            need_of(mine[digest].topology, spec.resources, self._ctx.node_definitions)
            return
        topology = await asyncio.to_thread(topologies.parse, text)
        need_of(topology, spec.resources, self._ctx.node_definitions)
        body = contents.build(
            definition=name,
            uid=resource.metadata.uid,
            namespace=self._ctx.namespace,
            spec=spec,
            text=text,
            sequence=newest + 1,
        )
        if digest in mine:  # an older version is current again: only its place changes, and that is in its annotations
            await self._ctx.kube.delete(f"{self._config_maps}/{mine[digest].config_map}")
        try:
            raw = await self._ctx.kube.create(self._config_maps, _encode(body))
        except Conflict:
            raw = await self._ctx.kube.get(f"{self._config_maps}/{body['metadata']['name']}")
        content = await self._read(_config_map.decode(raw), spec)
        self.contents[content.digest] = content
        note = f"version {spec.version} of {len(topology.devices)} devices is ready"
        self._ctx.events.emit(ref_of(resource, "LabletDefinition"), "Normal", "ContentStored", note)

    async def _text(self, resource: CustomResource, spec: LabletDefinitionSpec) -> str | None:
        """Read the source; None if it is a ConfigMap that nobody asked to be read again."""
        source = spec.source
        if source.inline is not None and source.config_map is None:
            return source.inline
        if source.config_map is None or source.inline is not None:
            raise InputError("SourceInvalid", "set exactly one of spec.source.inline and spec.source.configMap")
        asked = resource.metadata.annotations.get(names.ANNOTATION_REFRESH, "")
        if resource.status.get("observedGeneration") == resource.metadata.generation and (
            resource.status.get("refresh", "") == asked and _is_ready(resource)
        ):
            return None
        where = source.config_map
        path = f"/api/v1/namespaces/{where.namespace}/configmaps/{where.name}"
        try:
            found = _config_map.decode(await self._ctx.kube.get(path))
        except NotFound:
            raise InputError("SourceNotFound", f"ConfigMap {where.namespace}/{where.name} does not exist") from None
        except Forbidden:
            raise InputError(
                "SourceForbidden",
                f"ConfigMap {where.namespace}/{where.name} may not be read; bind it: kubectl -n {where.namespace} "
                "create rolebinding vkprovider-topologies --clusterrole=vkprovider-topology-reader "
                f"--serviceaccount={self._ctx.namespace}:vkprovider",
            ) from None
        if where.key not in found.data:
            keys = ", ".join(sorted(found.data)) or "none"
            raise InputError(
                "SourceNotFound", f"ConfigMap {where.namespace}/{where.name} has no key {where.key!r}; it has {keys}"
            )
        return found.data[where.key]

    async def _read(self, config_map: ConfigMap, spec: LabletDefinitionSpec) -> Content:
        """Read a stored version, in a thread: a large topology takes seconds, and Leases must be renewed meanwhile."""
        return await asyncio.to_thread(contents.read, config_map, spec, self._ctx.node_definitions)

    async def _read_all(self, resource: CustomResource, spec: LabletDefinitionSpec) -> list[Content]:
        """Read every stored version of a definition."""
        name, found = resource.metadata.name, {}
        for config_map in self._stored():
            if config_map.metadata.annotations.get(contents.ANNOTATION_DEFINITION) != name:
                continue
            if all(o.uid != resource.metadata.uid for o in config_map.metadata.owner_references):
                continue  # of a deleted definition of the same name
            known = next((c for c in self.contents.values() if c.config_map == config_map.metadata.name), None)
            if known is None:
                try:
                    known = await self._read(config_map, spec)
                except InputError as error:
                    _log.warning("content cannot be read", config_map=config_map.metadata.name, error=str(error))
                    continue
            found[known.digest] = known
        for content in self.contents.values():
            if content.definition == name:
                found.setdefault(content.digest, content)
        self.contents |= found
        return list(found.values())

    async def _sort(self, resource: CustomResource, spec: LabletDefinitionSpec) -> tuple[list[Content], list[Content]]:
        everything = []
        for content in await self._read_all(resource, spec):
            try:
                need = need_of(content.topology, spec.resources, self._ctx.node_definitions)
            except InputError:
                continue  # nobody can be charged for it (any more); if it is the current one, its fault says so
            if need != content.need:
                content = contents.with_need(content, need)  # noqa: PLW2901 (the overrides changed)
                self.contents[content.digest] = content
            everything.append(content)
        kept, dropped = contents.split_kept(everything, keep=spec.keep_versions, used=())
        for content in kept:
            self._dropped_at.pop(content.digest, None)
        return kept, dropped

    async def _drop(self, dropped: list[Content]) -> float:
        """Delete versions that no new pod may name and no lablet runs; gives the seconds until the next look."""
        now = self._ctx.now()
        since = {c.digest: self._dropped_at.setdefault(c.digest, now) for c in dropped}
        due = [c for c in dropped if since[c.digest] + _DROP_AFTER_S <= now]
        if not due:
            return max(0.0, min(since.values()) + _DROP_AFTER_S - now)
        try:
            used = {claim.digest for claim in await self._all_claims()}
        except InputError as error:
            _log.warning("nothing is dropped", error=str(error))
            return _DROP_AFTER_S
        for content in due:
            if content.digest in used:
                continue
            with contextlib.suppress(NotFound):
                await self._ctx.kube.delete(f"{self._config_maps}/{content.config_map}")
            self.contents.pop(content.digest, None)
            self._dropped_at.pop(content.digest, None)
        return _DROP_AFTER_S

    async def _all_claims(self) -> list[claim_rules.Claim]:
        """Read the claims of every worker, whoever owns it.

        Raises:
            InputError: One of them cannot be read: nothing may be dropped.
        """
        selector = {"labelSelector": f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}"}
        raw = await self._ctx.kube.get(self._config_maps, selector)
        found: list[claim_rules.Claim] = []
        for config_map in _config_maps.decode(raw).items:
            worker = config_map.metadata.name.removesuffix(names.claims_name(""))
            found += claim_rules.read(config_map, worker=worker, installation=self._ctx.installation).claims.values()
        return found

    # --------------------------------------------------------------------------------------------- RuntimeClass

    async def _write_runtime_class(
        self, resource: CustomResource, spec: LabletDefinitionSpec, kept: list[Content]
    ) -> None:
        name = resource.metadata.name
        wanted = contents.runtime_class(
            name, resource.metadata.uid, self._ctx.installation, spec, contents.charged(kept)
        )
        found = self._runtime_class(name)
        if found is not None and self._is_ours(found, resource) and contents.same_runtime_class(found, wanted):
            return
        path = f"{_RUNTIME_CLASSES}/{name}"
        try:
            found = _runtime_class.decode(await self._ctx.kube.get(path))
        except NotFound:
            try:
                await self._ctx.kube.create(_RUNTIME_CLASSES, _encode(wanted))
            except Conflict:
                raise InputError(
                    "RuntimeClassConflict", f"RuntimeClass {name} was just made by somebody else"
                ) from None
            return
        if found.metadata.annotations.get(names.ANNOTATION_INSTALLATION) != self._ctx.installation:
            raise InputError(
                "RuntimeClassConflict",
                f"RuntimeClass {name} exists and is not of this definition; rename the LabletDefinition, or delete it",
            )
        if self._is_ours(found, resource) and contents.same_runtime_class(found, wanted):
            return
        overhead: dict[str, str | None] = dict(wanted["overhead"]["podFixed"])
        for key in found.overhead.get("podFixed", {}):
            overhead.setdefault(key, None)
        selector: dict[str, str | None] = dict(wanted["scheduling"]["nodeSelector"])
        for key in found.scheduling.get("nodeSelector", {}):
            selector.setdefault(key, None)
        patch = {
            "metadata": {  # it may have been left by an earlier definition of that name
                "resourceVersion": found.metadata.resource_version,
                "ownerReferences": wanted["metadata"]["ownerReferences"],
            },
            "overhead": {"podFixed": overhead},
            "scheduling": {"nodeSelector": selector, "tolerations": wanted["scheduling"]["tolerations"]},
        }
        await self._ctx.kube.merge_patch(path, _encode(patch))

    def _is_ours(self, found: RuntimeClass, resource: CustomResource) -> bool:
        return found.metadata.annotations.get(names.ANNOTATION_INSTALLATION) == self._ctx.installation and any(
            o.uid == resource.metadata.uid for o in found.metadata.owner_references
        )

    # --------------------------------------------------------------------------------------------- removal

    async def _hold(self, resource: CustomResource) -> None:
        """Hold a definition by a finalizer: its content is what its lablets run."""
        if names.FINALIZER in resource.metadata.finalizers:
            return
        body = {"metadata": {"finalizers": [*resource.metadata.finalizers, names.FINALIZER]}}
        await self._ctx.kube.merge_patch(f"{_DEFINITIONS}/{resource.metadata.name}", _encode(body))

    async def _leave(self, resource: CustomResource) -> InputError:
        """Let a deleted definition go when no lablet runs it any more; new pods are refused meanwhile."""
        name = resource.metadata.name
        used = sum(claim.definition == name for claim in await self._all_claims())
        abandoned = resource.metadata.annotations.get(names.ANNOTATION_ABANDON) == "true"
        if used and not abandoned:
            return InputError(
                "InUse", f"{used} lablets; delete their pods, or annotate {names.ANNOTATION_ABANDON}=true"
            )
        runtime_class = self._runtime_class(name)
        if runtime_class is not None and self._is_ours(runtime_class, resource):
            with contextlib.suppress(NotFound, Conflict):
                await self._ctx.kube.delete(f"{_RUNTIME_CLASSES}/{name}", uid=runtime_class.metadata.uid)
        finalizers = [f for f in resource.metadata.finalizers if f != names.FINALIZER]
        if finalizers != resource.metadata.finalizers:
            with contextlib.suppress(NotFound):
                body = _encode({"metadata": {"finalizers": finalizers}})
                await self._ctx.kube.merge_patch(f"{_DEFINITIONS}/{name}", body)
        return InputError("Deleting", "the definition is being deleted")

    # --------------------------------------------------------------------------------------------- status

    async def _publish(
        self, resource: CustomResource, kept: list[Content], fault: InputError | None, environment: str
    ) -> None:
        name = resource.metadata.name
        before = self.items.get(name)
        said = _ready_of(resource)
        news = fault is not None and (said.get("reason"), said.get("message")) != (fault.reason, fault.message)
        if before is not None and before.fault is not None and str(before.fault) == str(fault):
            fault, news = before.fault, False
        self._show(resource, kept, fault, environment)
        if fault is not None and news and fault.reason != "Deleting":
            self._ctx.events.emit(ref_of(resource, "LabletDefinition"), "Warning", fault.reason, fault.message)
        wanted = _status(resource, kept, fault, self._ctx.now_unix)
        if all(resource.status.get(key) == value for key, value in wanted.items()):
            return
        stale = {key: None for key in resource.status.get("resources", {}) if key not in wanted["resources"]}
        wanted["resources"] = stale | wanted["resources"]
        try:
            await self._ctx.kube.merge_patch(f"{_DEFINITIONS}/{name}/status", _encode({"status": wanted}))
        except NotFound:
            return

    def _show(self, resource: CustomResource, kept: list[Content], fault: InputError | None, environment: str) -> None:
        """Let pods see a definition."""
        name = resource.metadata.name
        usable = kept if fault is None or fault.reason not in {"InUse", "Deleting"} else []
        view = Definition(name, resource.metadata.uid, environment, tuple(usable), fault)
        if self.items.get(name) != view:
            self.items[name] = view
            self.changed()


def _fault(error: InputError | Invalid | Forbidden) -> InputError:
    """Give what the API server will refuse again as a fault of the definition."""
    if isinstance(error, InputError):
        return error
    return InputError("ApiRefused", f"the API server refused an object of this definition: {error.message}")


def _ready_of(resource: CustomResource) -> dict[str, Any]:
    return next((c for c in resource.status.get("conditions", ()) if c.get("type") == "Ready"), {})


def _is_ready(resource: CustomResource) -> bool:
    return _ready_of(resource).get("status") == "True"


def _status(resource: CustomResource, kept: list[Content], fault: InputError | None, now: int) -> dict[str, Any]:
    status = "True" if fault is None and kept else "False"
    if fault is not None:
        reason, message = fault.reason, fault.message
    else:
        reason = "ContentReady" if kept else "NoContent"
        message = f"versions kept: {', '.join(c.version for c in kept)}" if kept else "no content yet"
    old = _ready_of(resource)
    changed = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "conditions": [
            {
                "type": "Ready",
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": changed or iso(now),
            }
        ],
        "observedGeneration": resource.metadata.generation,
        "refresh": resource.metadata.annotations.get(names.ANNOTATION_REFRESH, ""),
        "version": kept[0].version if kept else "",
        "versions": [{"version": c.version, "digest": c.digest, "resources": c.need.quantities()} for c in kept],
        "devices": [
            {"label": d.label, "container": d.container, "nodeDefinition": d.definition}
            for d in (kept[0].topology.devices[:_DEVICES_LISTED_MAX] if kept else ())
        ],
        "resources": contents.charged(kept).quantities() if kept else {},
    }
