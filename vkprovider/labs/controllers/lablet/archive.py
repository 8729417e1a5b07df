"""What learners leave behind, in ConfigMaps; old ones are deleted."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from vkprovider.lablet import names, observations
from vkprovider.lablet.archives import ArchiveEntry, Leftovers, Verdict, lasting_id, owner_label, parts_of
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.ports import INFRASTRUCTURE_NODE_TYPES
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.lablet.shownname import name_in
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.labs.pure.lablet.leftovers import StoredWork, surplus
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import Conflict, InputError, Invalid, NotFound, OutsideError
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import unix

_log: Final = structlog.get_logger(__name__)
_SWEEP_EVERY_S: Final = 600.0
_PAGE: Final = 20
"""Each may have a megabyte."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Configurations and responses, stored in ConfigMaps of the provider's namespace.

    Attributes:
        leads: Return whether this replica is the one that deletes old ConfigMaps.
    """

    _ctx: Context
    _settings: LabletSettings
    leads: Callable[[], bool]

    async def keep(
        self,
        worker: Worker,
        claim: Claim,
        devices: tuple[DeviceFact, ...],
        *,
        username: str = "",
        responses: Any = None,
        unread: OutsideError | None = None,
        hidden: Iterable[str] | None = None,
    ) -> tuple[Leftovers, dict[str, OutsideError]]:
        """Extract the configurations of a lab's devices and store them; a device that fails does not stop the others.

        External connectors and unmanaged switches have no configuration, and are not asked for one.

        Args:
            worker: The lablet's.
            claim: The lablet's.
            devices: Of its lab.
            username: See `leftovers.of_claim`.
            responses: The learner's answers in the Lab Delivery System.
            unread: Why there are none, if they could not be read.
            hidden: Labels of the devices that learners do not see; None if that is not known.

        Returns:
            What is stored, and by label the error for each device whose configuration exists and could not be read;
            that of the answers has the label "".

        Raises:
            OutsideError: The API server refused the write; the worker's errors are returned, not raised.
        """
        booted = [device for device in devices if device.state == observations.BOOTED]
        running = tuple(device for device in booted if device.definition not in INFRASTRUCTURE_NODE_TYPES)
        configs, faults = await worker.labs.extract_configs(claim.lab_id, running) if claim.lab_id else ({}, {})
        if unread is not None:
            faults = {**faults, "": unread}
        why = {label: error.message for label, error in faults.items()}
        left = leftovers.of_claim(
            claim, configs, why, at=self._ctx.now_unix, username=username, responses=responses, hidden=hidden
        )
        if configs or responses is not None:
            await self._write(worker, await self._described(left, claim), claim.begin_from)
        return left, {label: error for label, error in faults.items() if not isinstance(error, Invalid)}

    async def grade(self, worker: Worker, claim: Claim, left: Leftovers | None, verdict: Verdict) -> None:
        """Store the grader's verdict with what the claim's learner left, also if that is nothing else.

        It is stored before the claim has it: what follows in the claim, the return to the pool, waits for that.

        Args:
            worker: The lablet's.
            claim: The lablet's.
            left: What is stored, if anything is.
            verdict: The grader's.

        Raises:
            OutsideError: The API server refused the write.
        """
        graded = leftovers.graded(left, claim, verdict, at=claim.collected_at or self._ctx.now_unix)
        await self._write(worker, await self._described(graded, claim), claim.begin_from)

    async def _described(self, left: Leftovers, claim: Claim) -> Leftovers:
        """Add what a lablet's Pod says: all its labels, of which the informer keeps only ours, and the learner's name.

        Without the Pod there is neither.
        """
        pod = await self._ctx.api.pods.within(claim.namespace).metadata_only.get(claim.pod)
        if pod is None or pod.metadata.uid != claim.pod_uid:
            return msgspec.structs.replace(left, labels={})
        notes = pod.metadata.annotations
        theirs = left.username in {notes.get(names.ANNOTATION_LEARNER), notes.get(names.ANNOTATION_USERNAME)}
        shown = name_in(notes) if theirs else ""
        owner = await self._owner_in(pod.metadata) if theirs else ""
        return msgspec.structs.replace(
            left, labels=pod.metadata.labels, shown=shown or left.shown, owner=owner or left.owner
        )

    async def _owner_in(self, meta: Metadata) -> str:
        """Return whose user lab a Pod is; "" outside the Namespaces of a portal, where anybody writes annotations."""
        owner = meta.annotations.get(names.ANNOTATION_OWNER, "")
        home = await self._ctx.api.namespaces.get(meta.namespace) if owner else None
        return owner if home is not None and names.LABEL_PORTAL in home.metadata.labels else ""

    async def begun_from(self, id_: str, pod: Metadata, learner: str) -> Leftovers:
        """Return the saved work that the lab of a Pod begins with, but for devices that its learner does not see.

        It is of the Pod's own user in the Namespace of a portal, else of the lablet's learner in the same Namespace.

        Raises:
            InputError: `CreateContainerConfigError`: there is no such work, or none of this user.
            OutsideError: The API server did not say.
        """
        left = await self.find(id_)
        if left is None or not await self._is_theirs(left, pod, learner):
            raise InputError(
                Trouble.CREATE_CONTAINER_CONFIG_ERROR,
                f"the saved work {id_} that the lab is to begin with is not kept for its user any more; end the lab, "
                "and start one without it",
            )
        return left.for_owner()

    async def _is_theirs(self, left: Leftovers, pod: Metadata, learner: str) -> bool:
        if owner := await self._owner_in(pod):
            return left.owner == owner
        if left.owner or not learner or (left.namespace, left.username) != (pod.namespace, learner):
            return False
        home = await self._ctx.api.namespaces.get(pod.namespace)
        return home is not None and left.at >= (unix(home.metadata.creation_timestamp) or 0)

    async def _write(self, worker: Worker, left: Leftovers, begun: str) -> None:
        """Store leftovers; what the lablet's lab begins from, `begun`, stays beside them."""
        ctx = self._ctx
        body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation)
        try:
            await ctx.api.config_maps.metadata_only.create(body, guard=worker.guard)
        except Conflict:
            old = await self.find(left.pod_uid)
            if old is not None and old.username and not left.username:
                await self._set_aside(worker, left)
                return
            if old is not None and (lasting_id(old.pod_uid, old.at) == begun or not leftovers.same_learner(old, left)):
                await self._set_aside(worker, old)
            left = leftovers.merged(old, left)
            body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation)
            await ctx.api.config_maps.metadata_only.replace(body, guard=worker.guard)

    async def _set_aside(self, worker: Worker, left: Leftovers) -> None:
        """Store leftovers beside those of the Pod's last learner, so that neither replace the other."""
        ctx, name = self._ctx, leftovers.earlier_name_of(left)
        body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation, name=name)
        with contextlib.suppress(Conflict):  # stored before
            await ctx.api.config_maps.metadata_only.create(body, guard=worker.guard)

    async def find(self, pod_uid: str) -> Leftovers | None:
        """Return the stored archive of a lablet; None if there is none, or if it is damaged.

        Args:
            pod_uid: The Pod's UID; UID-TIME finds what was left at that time, also by an earlier learner of that Pod.
        """
        uid, time = parts_of(pod_uid)
        config_map = await self._ctx.api.config_maps.get(leftovers.name_of(pod_uid))
        if config_map is None and time:
            config_map = await self._ctx.api.config_maps.get(leftovers.name_of(uid))
        try:
            left = leftovers.read(config_map) if config_map is not None else None
        except InputError as error:
            _log.warning("leftovers cannot be read", pod=pod_uid, error=str(error))
            return None
        return left if left is None or not time or left.at == time else None

    async def page(self, namespace: str, *, size: int, after: str) -> tuple[list[ArchiveEntry], str]:
        """List what learners of a namespace left, one page in the order of the ids; see `Resource.page`.

        Raises:
            Gone: The token `after` has expired.
            Invalid: It is not one.
        """
        labels = f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS},{names.LABEL_NAMESPACE}={namespace}"
        stored = self._ctx.api.config_maps.metadata_only
        found, after = await stored.page(labels=labels, page_size=size, after=after)
        entries = [leftovers.entry_of(one.metadata) for one in found]
        return [entry for entry in entries if entry is not None and entry.namespace == namespace], after

    async def of_owner(self, owner: str) -> list[ArchiveEntry]:
        """List what a user has saved, the newest first."""
        labels = f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS},{names.LABEL_OWNER}={owner_label(owner)}"
        found = await self._ctx.api.config_maps.metadata_only.list(labels=labels)
        entries = [entry for one in found if (entry := leftovers.entry_of(one.metadata)) is not None]
        return sorted(entries, key=lambda entry: -entry.at)

    async def run(self) -> None:
        """Delete old leftovers from time to time while this replica leads, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S * (0.5 + self._ctx.dice()))
            if not self.leads():
                continue
            try:
                await self.sweep()
            except OutsideError as error:
                _log.warning("old leftovers cannot be deleted", error=str(error))

    async def _describe(self, config_map: ConfigMap) -> None:
        """Let the metadata of what an older version has stored say whose it is, so that the page lists it."""
        meta = config_map.metadata
        with contextlib.suppress(InputError, Conflict, NotFound):  # damaged, written meanwhile, or gone
            left = leftovers.read(config_map)
            ctx = self._ctx
            body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation, name=meta.name)
            body["metadata"]["resourceVersion"] = meta.resource_version
            await ctx.api.config_maps.metadata_only.replace(body)

    async def _drop(self, name: str, version: str) -> bool:
        """Delete what is stored, and return whether it is gone: what was written again since then stays."""
        try:
            await self._ctx.api.config_maps.delete(name, resource_version=version)
        except Conflict:
            return False
        return True

    async def sweep(self) -> None:
        """Delete leftovers written longer ago than `kept_s`, and the oldest ones where there are too many bytes."""
        config_maps = self._ctx.api.config_maps
        oldest = self._ctx.now_unix - self._settings.kept_s if self._ctx.is_sure() else 0
        labels = f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS}"
        kept: list[StoredWork] = []
        async for page in config_maps.pages(labels=labels, page_size=_PAGE):
            for config_map in page:
                written = leftovers.written_at(config_map)
                if written is not None and written < oldest:
                    await self._drop(config_map.metadata.name, config_map.metadata.resource_version)
                elif (one := leftovers.kept_of(config_map)) is not None:
                    kept.append(one)
                    if names.LABEL_NAMESPACE not in config_map.metadata.labels:
                        await self._describe(config_map)
        for one in surplus(kept, self._settings.kept_bytes_max):
            if not await self._drop(one.name, one.version):
                continue
            self._ctx.events.emit(
                ObjectRef("v1", "Pod", one.namespace, one.pod, one.pod_uid),
                "Warning",
                Happened.KEPT_DROPPED,
                f"what was kept of it ({one.size_bytes // 1024} KiB) was deleted: of all namespaces at most "
                f"{self._settings.kept_bytes_max // 2**20} MiB are kept, of one a quarter of that",
            )
