"""The steps of a lablet, carried out one at a time; each may be repeated, and what it leaves behind is noted."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import msgspec

from vkprovider.api import labs as words
from vkprovider.api import names
from vkprovider.api.errors import (
    Conflict,
    Forbidden,
    InputError,
    Invalid,
    NotFound,
    OutsideError,
    StepFailed,
    Unavailable,
)
from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Metadata
from vkprovider.controllers.context import PODS, Context
from vkprovider.controllers.lablet.archive import Archive
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.lablet.portcheck import range_of
from vkprovider.controllers.lablet.telling import Teller
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.claims.ports import udp_names
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet import intent
from vkprovider.domain.lablet.facts import Facts, Step
from vkprovider.domain.lablet.inputs import inputs_of
from vkprovider.domain.lablet.intent import Definition
from vkprovider.domain.lablet.stepfault import api_fault, may_pass, worker_fault
from vkprovider.domain.session.delivery import Session
from vkprovider.domain.topology import mappings
from vkprovider.rest.errors import may_have_happened

T = TypeVar("T")
_LEARNERS: Final = (
    names.ANNOTATION_USERNAME,
    names.ANNOTATION_TIMESLOT_START,
    names.ANNOTATION_TIMESLOT_END,
    names.ANNOTATION_DESIRED_STATE,
)
"""What is taken off a Pod when its learner's time is over."""

_COLLECT_TRIES: Final = 5
"""How often what a learner leaves is asked for again before the end goes on without it."""


class _PodHead(msgspec.Struct, frozen=True):
    metadata: Metadata


_head: Final = msgspec.json.Decoder(_PodHead)


class Steps:
    """Carries out what `domain.lablet` decided."""

    def __init__(
        self,
        ctx: Context,
        workers: Workers,
        definitions: Mapping[str, Definition],
        contents: Mapping[str, Content],
        teller: Teller,
        archive: Archive,
        sessions: Sessions,
        room_made: Callable[[str], None],
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            workers: The workers.
            definitions: By name.
            contents: By digest, all that are kept.
            teller: Tells what was done.
            archive: Keeps what a learner leaves.
            sessions: Those of the LDS.
            room_made: Called with a worker's name when there is more room on it.
        """
        self._ctx = ctx
        self._workers = workers
        self._definitions = definitions
        self._contents = contents
        self._teller = teller
        self._archive = archive
        self._sessions = sessions
        self._room_made = room_made

    async def take(self, step: Step, lablet: Lablet, worker: Worker, facts: Facts) -> bool:
        """Carry out one step; False if what comes next must be waited for.

        Raises:
            Fenced: The node is not ours any more.
            InputError: The Pod or its content stands in the way.
            StepFailed: One of several systems that the step asks was no help.
            OutsideError: The worker or the API server refused, or did not answer.
        """
        counters = self._ctx.counters
        counters.steps[step.name] = counters.steps.get(step.name, 0) + 1
        claim = worker.claims.claims.get(lablet.uid)
        match step:
            case Step.CLAIM:
                return self._claim(lablet, worker)
            case Step.CONFIRM_GONE:
                assert facts.claim is not None  # noqa: S101 (decided from it)
                return await self._confirm_gone(lablet, facts.claim)
            case Step.DELETE_POD:
                return await self._delete_pod(lablet, worker)
            case Step.RELEASE:
                worker.claims.drop(lablet.uid)
                self._room_made(worker.name)
                return True
            case Step.SAVE:
                return True
            case Step.CLEAR_LEARNER | Step.RETURN_TO_POOL:
                return await self._change_pod(step, lablet, worker, claim)
            case Step.EXTRACT | Step.COLLECT:
                assert claim is not None  # noqa: S101 (decided from it)
                return await self._keep(step, lablet, worker, facts, claim)
            case Step.PROVISION | Step.ARCHIVE | Step.GRADE:
                assert claim is not None  # noqa: S101 (decided from it)
                return await self._deliver(step, lablet, worker, claim)
            case _:
                assert claim is not None  # noqa: S101 (every other step is about a claim's lab)
                return await self._act(step, lablet, worker, claim)

    def _claim(self, lablet: Lablet, worker: Worker) -> bool:
        pod = lablet.pod
        assert pod is not None  # noqa: S101 (decided from it)
        content = intent.resolve(pod, self._definitions, environment=worker.spec.environment)
        definition = self._definitions[content.definition]
        wanted = mappings.wanted_of(content.topology.template)
        ports: dict[str, int] = {}
        if wanted:
            tuning = self._ctx.tuning
            ports = worker.claims.allocate(
                wanted,
                range_of(worker.spec, tuning.port_range),
                per_instance_max=tuning.ports_per_instance_max,
                pod_uid=lablet.uid,
            )
        claim = Claim(
            pod_uid=lablet.uid,
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            definition=definition.name,
            definition_uid=definition.uid,
            version=content.version,
            digest=content.digest,
            reset=inputs_of(pod.metadata).reset,
            ports=ports,
            udp=udp_names(wanted),
        )
        worker.claims.put(claim)
        lablet.searched = pod.status.start_time is None  # else an earlier row may have been lost with a lab to it
        return False

    async def _confirm_gone(self, lablet: Lablet, claim: Claim) -> bool:
        """Ask the API server itself before a lab is taken down because its Pod is missing in our copy."""
        try:
            raw = await self._ctx.kube.get(PODS.format(claim.namespace, claim.pod))
        except NotFound:
            lablet.gone_confirmed = True
            return True
        if _head.decode(raw).metadata.uid == lablet.uid:
            raise Unavailable("the pod is there, our copy does not show it yet")
        lablet.gone_confirmed = True
        return True

    async def _delete_pod(self, lablet: Lablet, worker: Worker) -> bool:
        """Confirm a deletion, as a kubelet does."""
        pod = lablet.pod
        assert pod is not None  # noqa: S101 (decided from it)
        path = PODS.format(pod.metadata.namespace, pod.metadata.name)
        with contextlib.suppress(NotFound, Conflict):  # it is gone, or another one has its name
            await self._ctx.kube.delete(path, uid=lablet.uid, grace_s=0, guard=worker.guard, brief=True)
        lablet.delete_sent = True
        return False

    async def _change_pod(self, step: Step, lablet: Lablet, worker: Worker, claim: Claim | None) -> bool:
        """Take the learner off a Pod, or give it its pool's label again; the watch tells when that is done.

        Only if nobody has written to it since we read it: a Pod that has its label back may be another learner's.
        """
        pod = lablet.pod
        assert pod is not None  # noqa: S101 (decided from it)
        assert claim is not None  # noqa: S101 (as well)
        metadata: dict[str, object] = {"uid": lablet.uid, "resourceVersion": pod.metadata.resource_version}
        if step is Step.CLEAR_LEARNER:
            metadata["annotations"] = dict.fromkeys(_LEARNERS)
        else:
            metadata["labels"] = {names.LABEL_POOL: claim.lent_back}
            metadata["annotations"] = dict.fromkeys((names.ANNOTATION_LENT_BY, names.ANNOTATION_DELETION_COST))
        path = PODS.format(pod.metadata.namespace, pod.metadata.name)
        with contextlib.suppress(NotFound, Conflict):  # it is gone, or the watch is about to show what was written
            body = msgspec.json.encode({"metadata": metadata})
            await self._ctx.kube.merge_patch(f"{path}/status", body, guard=worker.guard, brief=True)
        return False

    async def _keep(self, step: Step, lablet: Lablet, worker: Worker, facts: Facts, claim: Claim) -> bool:
        """Keep what the devices hold, and at the end of the learner's time what was answered."""
        responses = None
        if step is Step.COLLECT:
            try:
                responses = await self._sessions.responses(worker, claim)
            except OutsideError:
                if lablet.failures < _COLLECT_TRIES:
                    raise  # else what the devices hold is kept without them
        keeping = self._archive.keep(worker, claim, facts.devices, responses=responses, username=facts.inputs.username)
        left, lost = await _stored(keeping)
        if lablet.failures < _COLLECT_TRIES and (passing := next(filter(may_pass, lost.values()), None)):
            raise StepFailed(*worker_fault(passing))
        lablet.extracted = True
        if lost:
            label, error = min(lost.items())
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            self._teller.emit(lablet, "Warning", "NotKept", f"no configuration of {label}{more}: {error.message}")
        if step is Step.COLLECT:
            lacking = ", ".join(sorted(left.faults))
            note = f"kept the configurations of {len(left.configs)} devices{f'; none of {lacking}' if lacking else ''}"
            self._teller.emit(lablet, "Normal", "Collected", note)
            worker.claims.put(msgspec.structs.replace(worker.claims.now(claim), collected=self._ctx.now_unix))
        return True

    async def _deliver(self, step: Step, lablet: Lablet, worker: Worker, claim: Claim) -> bool:
        """Carry out a step at the LDS or at the grader, and note in the row what came of it."""
        session, changed = claim.session, claim
        if step is Step.PROVISION:
            content = self._content_of(claim)
            ready = await self._provision(lablet, worker, claim, content)
            changed = msgspec.structs.replace(worker.claims.now(claim), session=ready)
            where = f"{ready.login_url or ready.base_url} (LDS deployment {ready.deployment})"
            self._teller.emit(lablet, "Normal", "SessionReady", f"{ready.username} can log in at {where}")
        elif step is Step.ARCHIVE:
            assert session is not None  # noqa: S101 (decided from it)
            left = await self._sessions.archive(worker, claim)
            lablet.archive_failed = False
            archived = msgspec.structs.replace(session, archived=self._ctx.now_unix)
            changed = msgspec.structs.replace(worker.claims.now(claim), session=archived)
            if left:
                self._teller.emit(lablet, "Warning", "LDSDeploymentUnknown", left)
            elif session.id:
                note = f"the session of {session.username} is archived"
                self._teller.emit(lablet, "Normal", "SessionArchived", note)
        else:
            verdict = await self._sessions.grade(claim, await _stored(self._archive.find(claim.pod_uid)))
            changed = msgspec.structs.replace(worker.claims.now(claim), verdict=verdict)
            passed = "passed" if verdict.passed else "not passed"
            self._teller.emit(lablet, "Normal", "Graded", f"{passed}, {verdict.message}")
        worker.claims.put(changed, lazy=not (changed.closing or changed.outcome))  # an end waits for its row
        return True

    async def _provision(self, lablet: Lablet, worker: Worker, claim: Claim, content: Content) -> Session:
        """Make the session; one that was certainly not made may be made elsewhere."""
        assert claim.session is not None  # noqa: S101 (decided from it)
        key = claim.session.key
        unasked, lablet.unasked = lablet.unasked == key, ""
        try:
            return await self._sessions.provision(worker, claim, content)
        except OutsideError as error:
            if unasked and not may_have_happened(error):
                lablet.unasked = key
                if not isinstance(error, Invalid | Forbidden):  # these any deployment would say
                    self._sessions.give_up(worker, claim)
            raise

    def _content_of(self, claim: Claim) -> Content:
        content = self._contents.get(claim.digest)
        if content is None:
            raise InputError(
                "ContentMissing",
                f"the content of {claim.definition} {claim.version} is gone; delete the pod, its successor takes the "
                "current version",
            )
        return content

    async def _act(self, step: Step, lablet: Lablet, worker: Worker, claim: Claim) -> bool:
        """Carry out a step on the worker; what it leaves behind is assumed until it is observed."""
        ctx, labs, lab_id = self._ctx, worker.labs, claim.lab_id
        match step:
            case Step.SEARCH:
                lab_id = await worker.finder.find(claim, worker.claims.claims)
                lablet.searched = True
                if not lab_id:
                    return True
                self._set_lab(worker, lablet, lab_id)
                self._teller.emit(lablet, "Normal", "Adopted", f"found lab {claim.title} on worker {worker.name}")
                # An observation that was asked for before may not know the lab yet.
            case Step.IMPORT:
                lablet.searched = False  # until the answer is there, the lab may be too
                devices = await self._import(lablet, worker, claim)
                lablet.searched = True
                lablet.acted_at, lablet.assumed = ctx.now(), devices
                return True
            case Step.START:
                await labs.start_lab(claim.lab_id)
                lablet.start_sent_at = ctx.now()
                lablet.starting_since = lablet.starting_since or lablet.start_sent_at
                lablet.stop_sent_at = 0.0
                lablet.extracted = False
                self._teller.emit(lablet, "Normal", "Started", f"Started lab {claim.title}")
            case Step.STOP:
                await self._unless_gone(lablet, labs.stop_lab(claim.lab_id))
                lablet.stop_sent_at = ctx.now()  # only now: a stop that was refused is sent again soon
                lablet.start_sent_at = 0.0
            case Step.WIPE:
                lablet.stop_sent_at = lablet.start_sent_at = lablet.starting_since = 0.0
                await self._unless_gone(lablet, labs.wipe_lab(claim.lab_id))
            case Step.DELETE_LAB:
                await self._unless_gone(lablet, labs.delete_lab(claim.lab_id))
                lablet.absent = True
                return True
            case _:
                raise AssertionError(step)
        lablet.acted_at, lablet.assumed = ctx.now(), None
        if labs.immediate and not lablet.absent:
            lablet.assumed = await labs.list_devices(lab_id)
        return True

    async def _unless_gone(self, lablet: Lablet, call: Awaitable[None]) -> None:
        try:
            await call
        except NotFound:
            lablet.absent = True

    async def _import(self, lablet: Lablet, worker: Worker, claim: Claim) -> tuple[DeviceFact, ...]:
        content, ctx = self._content_of(claim), self._ctx
        notes = (
            f"{names.mark(ctx.installation)}\npod: {claim.namespace}/{claim.pod}\n"
            f"replica: {ctx.replica}, epoch {self._workers.epoch(worker.name)}"
        )
        text = content.topology.render(title=claim.title, notes=notes, ports=claim.ports or None)
        lab_id = await worker.labs.import_lab(text, claim.title)
        self._set_lab(worker, lablet, lab_id)
        self._teller.emit(lablet, "Normal", "Created", f"Imported lab {claim.title} on worker {worker.name}")
        if worker.labs.immediate:
            return await worker.labs.list_devices(lab_id)
        return tuple(DeviceFact("", d.label, d.definition, words.DEFINED) for d in content.topology.devices)

    def _set_lab(self, worker: Worker, lablet: Lablet, lab_id: str) -> None:
        claim = worker.claims.claims[lablet.uid]
        worker.claims.put(msgspec.structs.replace(claim, lab_id=lab_id), lazy=True)


async def _stored(asking: Awaitable[T]) -> T:
    """Ask the API server in a step that asks others too, and have its faults called its own."""
    try:
        return await asking
    except OutsideError as error:
        raise StepFailed(*api_fault(error)) from error
