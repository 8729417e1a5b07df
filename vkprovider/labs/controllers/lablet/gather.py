"""The facts about one lablet, gathered from what this replica has in memory; no call is made, and nothing is written.

Facts are gathered before every step, several times a turn, so whatever stands here is paid for each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.inputs import NOTHING, inputs_of
from vkprovider.lablet.labs import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.controllers.lablet.ports.slices import slice_of
from vkprovider.labs.controllers.lablet.state import Lablet
from vkprovider.labs.controllers.session.sessions import Sessions
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.boots import NO_PATIENCE, Patience
from vkprovider.labs.pure.lablet.exposing import NOT_EXPOSED, Exposing, NoSlice, address_fault, read_slice, wanted_of
from vkprovider.labs.pure.lablet.facts import Facts
from vkprovider.labs.pure.lablet.memory import Presence, lab_seen
from vkprovider.labs.pure.lablet.pod import intent
from vkprovider.labs.pure.lablet.pod.intent import Definition
from vkprovider.labs.pure.session.delivery import NO_DELIVERY
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.worker.node import is_ip
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import EndpointSlice, Pod
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers the facts of lablets.

    Attributes:
        lablets: All lablets of this replica, by Pod UID.
        definitions: By name.
        contents: By digest.
        slices: The EndpointSlices of exposed lablets, by `namespace/name`.
        boot_timeouts: How long CML waits for a device to boot, by worker and node definition.
        renewals: The digest of the content that a warm lablet is to take up now, by Pod UID.
    """

    ctx: Context
    lablets: Mapping[str, Lablet]
    definitions: Mapping[str, Definition]
    contents: Mapping[str, Content]
    sessions: Sessions
    slices: Mapping[str, EndpointSlice]
    boot_timeouts: Mapping[str, Mapping[str, int]]
    renewals: Mapping[str, str]

    def gather(self, lablet: Lablet, worker: Worker) -> Facts:
        """Return the facts about one lablet."""
        memory, pod, claim = lablet.memory, lablet.pod, worker.claims.claims.get(lablet.uid)
        refusal = None
        if claim is None and pod is not None and pod.metadata.deletion_timestamp is None and not pod.terminal:
            refusal = self._refusal(pod, worker)
        presence: Presence = Presence.UNKNOWN
        devices: tuple[DeviceFact, ...] = ()
        if claim is not None and claim.lab_id:
            presence, devices = lab_seen(memory, *worker.seen.look(claim.lab_id, memory.acted_at))
        inputs = inputs_of(pod.metadata) if pod is not None else NOTHING
        delivery = NO_DELIVERY
        if claim is not None:
            delivery = self.sessions.delivery(claim, inputs, archive_failed=memory.archive_failed)
        unsaved = worker.claims.fault_of(lablet.uid)
        return Facts(
            pod=pod,
            claim=claim,
            memory=memory,
            claim_saved=worker.claims.saved(lablet.uid),
            unsaved_because=unsaved.fault if unsaved is not None else None,
            gone_confirmed=memory.gone_confirmed or lablet.removal_seen,
            unexamined=not worker.claims.complete,
            refusal=refusal,
            presence=presence,
            devices=devices,
            observed_at=worker.seen.devices_at,
            silent=worker.seen.silent_because,
            worker_time=worker.labs.time(),
            extracted=memory.extracted or worker.labs.immediate,
            patience=self._patience(claim, worker) if claim is not None and claim.lab_id else NO_PATIENCE,
            renewal=self.renewals.get(lablet.uid, ""),
            inputs=inputs,
            delivery=delivery,
            exposing=self._exposing(claim, worker) if claim is not None else NOT_EXPOSED,
            now_unix=self.ctx.now_unix,
            sure=self.ctx.is_sure(),
        )

    def _patience(self, claim: Claim, worker: Worker) -> Patience:
        definition, content = self.definitions.get(claim.definition), self.contents.get(claim.digest)
        return Patience(
            definition.boot_timeout_s if definition is not None else None,
            self.boot_timeouts.get(worker.name, {}),
            content.topology.cpu_limit if content is not None else 100,
            worker.claims.starts.get(claim.digest, 0),
        )

    def _exposing(self, claim: Claim, worker: Worker) -> Exposing:
        definition = self.definitions.get(claim.definition)
        expose = definition.expose if definition is not None else None
        found = slice_of(self.slices, self.ctx.namespace, claim.pod_uid)
        wanted, lds = self._wanted(definition, claim, worker), expose is not None and expose.lds
        if found is None:
            return Exposing(wanted, lds=lds)
        seen, answer = read_slice(found)
        return Exposing(wanted, seen, found.metadata.uid, answer, lds)

    def _wanted(self, definition: Definition | None, claim: Claim, worker: Worker) -> Exposure | Fault | NoSlice:
        """Return the slice that should stand, or why there is none."""
        if definition is None:
            return NoSlice.UNKNOWN
        content, expose, ip = self.contents.get(claim.digest), definition.expose, worker.seen.ip
        if expose is None or (content is not None and not claim.ports):
            return NoSlice.UNWANTED
        if content is None or claim.ports_fault is not None or not is_ip(ip):
            return NoSlice.UNKNOWN
        fault = address_fault(worker.name, ip)
        if fault is not None:
            return fault
        wanted = wanted_of(expose, claim, content.topology.template, worker=worker.name, address=ip)
        return wanted if wanted is not None else NoSlice.UNWANTED

    def _refusal(self, pod: Pod, worker: Worker) -> InputError | None:
        """Return why a Pod without a claim may not begin."""
        try:
            content = intent.resolve(pod, self.definitions, environment=worker.spec.environment)
            if (fault := worker.refusal or worker.claims.refused.get(pod.metadata.uid)) is not None:
                return fault
            if worker.capacity is None:
                return InputError(Trouble.WORKER_NOT_READY, f"worker {worker.name} is not known well enough yet")
        except InputError as refusal:
            return refusal
        taken = Resources()
        for digest, count in worker.claims.digests.items():
            if count and (other := self.contents.get(digest)) is not None:
                taken = taken.plus(other.need.times(count))
        full = intent.shortage(
            content.need, taken, worker.capacity.total, lablets=len(worker.claims.claims), pods=worker.capacity.labs
        )
        if full is not None and any(self._is_leaving(uid) for uid in worker.claims.claims):
            return InputError(
                Progress.WAITING_FOR_RELEASE, "the lab of an earlier lablet is being removed from the worker"
            )
        return full

    def _is_leaving(self, uid: str) -> bool:
        lablet = self.lablets.get(uid)
        return lablet is not None and (lablet.memory.killing or lablet.pod is None)
