"""What is known of one lablet, gathered for a decision; nobody is asked for it.

Facts are gathered before every step, several times a turn, so whatever stands here is paid for each time.
"""

from collections.abc import Mapping
from datetime import datetime

from vkprovider.api.errors import InputError
from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Pod
from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet import intent
from vkprovider.domain.lablet.facts import Facts, Presence
from vkprovider.domain.lablet.inputs import NOTHING, inputs_of
from vkprovider.domain.lablet.intent import Definition
from vkprovider.domain.session.delivery import NO_DELIVERY
from vkprovider.domain.topology.resources import Resources


class FactFinder:
    """Gathers the facts of lablets."""

    def __init__(
        self,
        ctx: Context,
        lablets: Mapping[str, Lablet],
        definitions: Mapping[str, Definition],
        contents: Mapping[str, Content],
        sessions: Sessions,
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            lablets: All of this replica's, by Pod UID.
            definitions: By name.
            contents: By digest, all that are kept.
            sessions: Those of the LDS.
        """
        self._ctx = ctx
        self._items = lablets
        self._definitions = definitions
        self._contents = contents
        self._sessions = sessions

    def of(self, lablet: Lablet, worker: Worker) -> Facts:
        """Gather what is known now of one lablet."""
        ctx, now, pod = self._ctx, self._ctx.now(), lablet.pod
        claim = worker.claims.claims.get(lablet.uid)
        refusal = None
        if claim is None and pod is not None and pod.metadata.deletion_timestamp is None and not pod.terminal:
            refusal = self._refusal(pod, worker)
        lablet.refused = refusal is not None
        presence: Presence = Presence.UNKNOWN
        devices: tuple[DeviceFact, ...] = ()
        if claim is not None and claim.lab_id:
            presence, devices = worker.look(claim.lab_id, lablet.acted_at)
            if lablet.absent:
                presence, devices = Presence.ABSENT, ()
            elif presence is Presence.UNKNOWN and lablet.assumed is not None:
                presence, devices = Presence.PRESENT, lablet.assumed
            if claim.started > claim.ready_at and not lablet.starting_since:
                lablet.starting_since = now - max(0, ctx.now_unix - claim.started)
        inputs, delivery = NOTHING, NO_DELIVERY
        if pod is not None:
            inputs = inputs_of(pod.metadata)
        if claim is not None:
            delivery = self._sessions.delivery(claim, inputs, archive_failed=lablet.archive_failed)
        if pod is not None and pod.spec.active_deadline_seconds is not None:
            told = (pod.spec.active_deadline_seconds, pod.status.start_time)  # somebody may lower it
            if told != lablet.deadline_of:
                lablet.deadline_of, lablet.deadline_at = told, self._deadline(pod, lablet)
        return Facts(
            pod=pod,
            claim=claim,
            claim_saved=worker.claims.saved(lablet.uid),
            gone_confirmed=lablet.gone_confirmed,
            refusal=refusal,
            searched=lablet.searched,
            presence=presence,
            devices=devices,
            observed_at=worker.devices_at,
            silent=worker.silent,
            starting_since=lablet.starting_since,
            retry_at=lablet.retry_at,
            ready_since=lablet.ready_since,
            deadline_at=lablet.deadline_at,
            start_sent_at=lablet.start_sent_at,
            stop_sent_at=lablet.stop_sent_at,
            delete_sent=lablet.delete_sent,
            extracted=lablet.extracted or worker.labs.immediate,
            inputs=inputs,
            delivery=delivery,
            now_unix=ctx.now_unix,
        )

    def _deadline(self, pod: Pod, lablet: Lablet) -> float:
        if pod.status.start_time is None:
            age_s = self._ctx.now() - lablet.met_at
        else:
            age_s = self._ctx.wall() - datetime.fromisoformat(pod.status.start_time).timestamp()
        return self._ctx.now() - max(0.0, age_s) + (pod.spec.active_deadline_seconds or 0)

    def _refusal(self, pod: Pod, worker: Worker) -> InputError | None:
        try:
            content = intent.resolve(pod, self._definitions, environment=worker.spec.environment)
            if worker.claims.fault is not None:
                return worker.claims.fault
            if worker.capacity is None:
                return InputError("WorkerNotReady", f"worker {worker.name} is not known well enough yet")
        except InputError as refusal:
            return refusal
        taken = Resources()
        for digest, count in worker.claims.digests.items():
            if count and (other := self._contents.get(digest)) is not None:
                taken = taken.plus(other.need.times(count))
        full = intent.shortage(
            content.need, taken, worker.capacity, lablets=len(worker.claims.claims), pods=worker.pods
        )
        if full is not None and any(self._is_leaving(uid) for uid in worker.claims.claims):
            return InputError("WaitingForRelease", "the lab of an earlier lablet is being removed from the worker")
        return full

    def _is_leaving(self, uid: str) -> bool:
        lablet = self._items.get(uid)
        return lablet is not None and (lablet.killing or lablet.pod is None)
