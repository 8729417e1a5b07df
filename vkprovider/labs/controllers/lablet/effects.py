"""The side effects of a lablet's steps: one short coroutine each, which returns an outcome and changes no memory."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from vkprovider.lablet import names
from vkprovider.lablet import observations as words
from vkprovider.lablet.guests import guests_in
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.ports import HIDDEN_TAG, wanted_of
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.standing import learner_in
from vkprovider.labs.controllers.counters import DELETE_SENT, Counters
from vkprovider.labs.controllers.lablet.archive import Archive
from vkprovider.labs.controllers.lablet.gather import Environments, unexamined, withheld, withheld_warnings
from vkprovider.labs.controllers.lablet.ports import Slices, Twins, range_of
from vkprovider.labs.controllers.session.sessions import Sessions
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import intent, leftovers, outcomes, steps
from vkprovider.labs.pure.lablet.decisions.stepfault import api_fault, may_pass, worker_fault
from vkprovider.labs.pure.lablet.identity import Origin, certain, described, notes_of, origin_of, renewed
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.lablet.memory import restarts_shown
from vkprovider.labs.pure.lablet.outcomes import Acted, Adopted, Archived, Claimed, Done, Outcome
from vkprovider.labs.pure.lablet.recovered import MarkedLab, adopted
from vkprovider.labs.pure.lablet.steps import Collect, Extract, Step
from vkprovider.labs.pure.topology.configured import configured
from vkprovider.labs.settings.cluster import PortSettings
from vkprovider.platform.errors import (
    Conflict,
    DeadlineExceeded,
    InputError,
    Invalid,
    NotFound,
    OutsideError,
    StepFailed,
    Unavailable,
)
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Pod
from vkprovider.platform.ports.allocator import udp_names
from vkprovider.platform.runtime.context import Context

T = TypeVar("T")
_LEARNERS: Final = (
    *sorted(names.OF_LEARNER),
    names.ANNOTATION_LEARNER,
    names.ANNOTATION_SESSION_ID,
    names.ANNOTATION_SESSION_BASE_URL,
    names.ANNOTATION_SESSION_LOGIN_URL,
)
"""Annotations removed from a Pod when its learner's time is over: requests, and the reports of learner and session."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Executes steps.

    Attributes:
        port_rest_s: How long a port rests that was lent to a mux.
        epoch: Return the epoch in which this replica owns a worker's Node.
        definitions: By name.
        contents: By digest.
        twins: Looks for ports of other CMLWorkers' labs on the same controller.
        environments: Resolves the variables of Pods.
        slices: Lends ports to muxes.
    """

    ctx: Context
    counters: Counters
    ports: PortSettings
    port_rest_s: float
    epoch: Callable[[str], int]
    definitions: Mapping[str, Definition]
    contents: Mapping[str, Content]
    archive: Archive
    sessions: Sessions
    twins: Twins
    environments: Environments
    slices: Slices

    async def execute(self, step: Step, worker: Worker, turn_to_worker: Callable[[], None]) -> Outcome:
        """Execute one step.

        Args:
            step: What to do.
            worker: The lablet's.
            turn_to_worker: Called by a step that has called the LDS and is about to call the worker; it exchanges the
                slot, or raises `NoSlot`.

        Raises:
            NoSlot: Raised by `turn_to_worker`.
            InputError: The Pod, its definition or its content is wrong.
            StepFailed: One of several systems that the step calls failed.
            OutsideError: The system that the step is about refused, or did not answer.
        """
        match step:
            case steps.MakeClaim(pod=pod):
                return Claimed(self._make_claim(pod, worker))
            case steps.Renew(pod=pod, claim=claim):
                return Claimed(claim.renewed(self._make_claim(pod, worker), worker.labs.time()))
            case steps.ConfirmGone(claim=claim):
                return await self._confirm_gone(claim)
            case steps.ConfirmDeletion(pod=pod):
                return await self._delete_pod(pod, worker)
            case steps.RestoreUsername(pod=pod, username=username):
                return await self._patch_pod(pod, worker, annotations={names.ANNOTATION_USERNAME: username})
            case steps.ClearLearner(pod=pod):
                await self._shut_out(pod, worker)
                return await self._patch_pod(pod, worker, annotations=dict.fromkeys(_LEARNERS))
            case steps.ReturnToPool(pod=pod, pool=pool):
                await self._shut_out(pod, worker)
                lent = (names.ANNOTATION_LENT_BY, names.ANNOTATION_DELETION_COST, *names.OF_LEARNER)
                labels, annotations = {names.LABEL_POOL: pool}, dict.fromkeys(lent)
                return await self._patch_pod(pod, worker, labels=labels, annotations=annotations)
            case steps.Expose(wanted=wanted, seen_uid=seen_uid):
                await self.slices.write(wanted, seen_uid, worker)
                return Done()
            case steps.Withdraw(claim=claim):
                await self.slices.withdraw(claim.pod_uid, worker)
                return Done()
            case Extract():
                return await self._extract(step, worker, turn_to_worker)
            case steps.Provision(claim=claim, session=session, via=via):
                made = await self.sessions.provision(worker, claim, session, self._content_of(claim), via)
                return outcomes.Provisioned(made)
            case steps.Reschedule(session=session, slot_end=slot_end):
                return await self.sessions.reschedule(worker, session, slot_end)
            case steps.ArchiveSession(session=session):
                return outcomes.SessionArchived(await self.sessions.archive(worker, session))
            case steps.Grade(claim=claim):
                left = await _stored(self.archive.find(claim.pod_uid))
                left = left if left is not None and leftovers.is_of(left, claim) else None
                verdict = await self.sessions.grade(claim, left)
                await _stored(self.archive.grade(worker, claim, left, verdict))
                return outcomes.Graded(verdict)
            case _:
                return await self._call_worker(step, worker)

    # --------------------------------------------------------------------------------------------- claim

    def _make_claim(self, pod: Pod, worker: Worker) -> Claim:
        content = intent.resolve(pod, self.definitions, environment=worker.spec.environment)
        definition = self.definitions[content.definition]
        wanted = wanted_of(content.topology.template)
        ports: dict[str, int] = {}
        if wanted and not worker.lab_index.examined:
            raise unexamined(worker)
        if wanted:
            ports = worker.claims.allocate(
                wanted,
                range_of(worker.spec, self.ports.range),
                per_instance_max=self.ports.per_instance_max,
                rest_s=self.port_rest_s,
                pod_uid=pod.metadata.uid,
                avoid=worker.lab_index.ports,
            )
        begun = pod.status.start_time is not None  # it may have lost an earlier claim, whose lab has another note
        return Claim(
            pod_uid=pod.metadata.uid,
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            definition=definition.name,
            definition_uid=definition.uid,
            version=content.version,
            digest=content.digest,
            asked_at=0 if begun else worker.labs.time(),
            restarts=restarts_shown(pod),
            reset=(inputs := inputs_of(pod.metadata)).reset,
            device_requests=dict(inputs.devices),
            ports=ports,
            udp=udp_names(wanted),
            begin_from=inputs.begin_from,
        )

    # --------------------------------------------------------------------------------------------- API server

    async def _confirm_gone(self, claim: Claim) -> Outcome:
        """Ask the API server itself before a lab is taken down because its Pod is missing in the informer's cache."""
        pod = await self.ctx.api.pods.within(claim.namespace).metadata_only.get(claim.pod)
        if pod is not None and pod.metadata.uid == claim.pod_uid:
            raise Unavailable("the pod exists, the informer's cache does not show it yet")
        return Done()

    async def _delete_pod(self, pod: Pod, worker: Worker) -> Outcome:
        meta = pod.metadata
        pods = self.ctx.api.pods.within(meta.namespace).metadata_only
        guard = self.counters.timeline.sending(meta.uid, DELETE_SENT, worker.guard)
        with contextlib.suppress(Conflict):  # the name is another Pod's already
            await pods.delete(meta.name, uid=meta.uid, grace_s=0, guard=guard, lane=Lane.RESULT)
        return Done()

    async def _shut_out(self, pod: Pod, worker: Worker) -> None:
        """Take back what `classroom.access` gave the last learner of a Pod, before the Pod is anybody else's."""
        api, name, namespace = self.ctx.api, names.assignment_name(pod.metadata.name), pod.metadata.namespace
        uid = pod.metadata.uid
        if learner := learner_in(pod):
            await self._end_link(pod, names.link_account(learner), worker)
        for guest in guests_in(pod.metadata.annotations):
            await self._end_link(pod, names.link_account(guest, uid), worker)
        if await api.role_bindings.within(namespace).delete(name, guard=worker.guard):
            await api.roles.within(namespace).delete(name, guard=worker.guard)

    async def _end_link(self, pod: Pod, account: str, worker: Worker) -> None:
        """Delete the account of a link of a Pod's learner or guest, unless the link leads elsewhere already."""
        accounts = self.ctx.api.service_accounts.within(pod.metadata.namespace).metadata_only
        found = await accounts.get(account)
        if found is None or names.link_target(found.metadata.annotations)[1] != pod.metadata.uid:
            return
        meta = found.metadata
        with contextlib.suppress(Conflict):  # it was just led elsewhere
            await accounts.delete(meta.name, uid=meta.uid, resource_version=meta.resource_version, guard=worker.guard)

    async def _patch_pod(self, pod: Pod, worker: Worker, **metadata: Mapping[str, str | None]) -> Outcome:
        """Patch labels and annotations of a Pod, unless it has changed: with its label back, it may be lent again."""
        meta = pod.metadata
        pods = self.ctx.api.pods.within(meta.namespace).metadata_only
        with contextlib.suppress(NotFound, Conflict):  # gone, or the watch is about to show the change
            await pods.patch_status(
                meta.name,
                {"metadata": metadata},
                uid=meta.uid,
                resource_version=meta.resource_version,
                guard=worker.guard,
            )
        return Done()

    # --------------------------------------------------------------------------------------------- archive

    async def _extract(self, step: Extract, worker: Worker, turn_to_worker: Callable[[], None]) -> Outcome:
        responses, unread = None, None
        if isinstance(step, Collect):
            try:
                responses = await self.sessions.responses(worker, step.claim)
            except OutsideError as error:
                if step.insist or (_is_away(error) and await self._is_kept(step.claim)):
                    raise
                unread = error
            turn_to_worker()
        content, hidden = self.contents.get(step.claim.digest), None
        if content is not None:
            hidden = [device.label for device in content.topology.devices if HIDDEN_TAG in device.tags]
        keeping = self.archive.keep(
            worker,
            step.claim,
            step.devices,
            responses=responses,
            unread=unread,
            username=step.username,
            hidden=hidden,
        )
        access = worker.access
        left, errors = await _stored(keeping)
        passing = next(filter(may_pass, errors.values()), None) if step.insist else None
        if any(isinstance(error, NotFound) for error in errors.values()):
            passing = worker.doubt(access) or passing
        if passing is not None:
            fault = worker_fault(passing)
            raise StepFailed(fault.reason, fault.message)
        if unread is not None and _is_away(unread):  # nobody is graded before the LDS answers
            raise unread
        return Archived(left, errors)

    async def _is_kept(self, claim: Claim) -> bool:
        left = await _stored(self.archive.find(claim.pod_uid))
        return left is not None and leftovers.is_of(left, claim) and bool(left.configs)

    # --------------------------------------------------------------------------------------------- worker

    async def _call_worker(self, step: Step, worker: Worker) -> Outcome:
        labs = worker.labs
        match step:
            case steps.Search():
                return await self._search(step, worker)
            case steps.Import():
                return await self._import(step, worker)
            case steps.NoteLearner(claim=claim):
                return await self._note(claim, worker)
            case steps.Start(claim=claim):
                await self.twins.check(claim, worker)
                await labs.start_lab(claim.lab_id)
                return Acted(devices=await _assumed(worker, claim.lab_id))
            case steps.Stop(claim=claim):
                return await _unless_gone(worker, claim, labs.stop_lab(claim.lab_id))
            case steps.Wipe(claim=claim):
                return await _unless_gone(worker, claim, labs.wipe_lab(claim.lab_id))
            case steps.ChangeDevice(claim=claim, device=device, act=act):
                await labs.change_device(claim.lab_id, device, act)
                return Acted(devices=await _assumed(worker, claim.lab_id))
            case steps.DeleteLab(claim=claim):
                await _is_there(worker, labs.delete_lab(claim.lab_id))
                return Acted(gone=True)
            case _:
                return Done()  # its decision was all of it

    async def _search(self, step: steps.Search, worker: Worker) -> Outcome:
        await worker.check_access()
        labs, claim = worker.labs, step.claim
        matches = await worker.lab_index.find(claim, worker.claims.claims, step.shown)
        if not matches:
            await worker.check_access()  # the login may have changed since
            return Done()
        if (known := certain(claim, matches, step.shown)) is None:
            return outcomes.Unsure(tuple(sorted(f"lab {m.title} ({m.lab_id}, created {m.created})" for m in matches)))
        lab_id = known.lab_id
        lab, tags, devices = await labs.get_lab(lab_id), await labs.list_tags(lab_id), await _assumed(worker, lab_id)
        origin = origin_of(lab.lab_title, lab.lab_notes)
        if origin is None:  # its title was changed since it was found
            origin = Origin(claim.pod_uid, claim.namespace, claim.pod, claim.definition)
        found = MarkedLab(lab_id, lab.lab_title, lab.created or "", origin, tags)
        content, holders = self.contents.get(claim.digest), worker.claims.ports.holders
        return Adopted(adopted(claim, found, content, holders), devices)

    async def _note(self, claim: Claim, worker: Worker) -> Outcome:
        ctx, lab, epoch = self.ctx, await worker.labs.get_lab(claim.lab_id), self.epoch(worker.name)
        notes = renewed(lab.lab_notes, claim, installation=ctx.installation, replica=ctx.replica, epoch=epoch)
        description = described(lab.lab_description, claim.bound_to)
        changed = None if description == lab.lab_description else description
        try:
            await worker.labs.note_lab(claim.lab_id, notes, changed)
        except Invalid:
            if changed is None:
                raise
            await worker.labs.note_lab(claim.lab_id, notes)  # they alone decide whose lab it is
        return Done()

    async def _import(self, step: steps.Import, worker: Worker) -> Outcome:
        await worker.check_access()
        claim, ctx = step.claim, self.ctx
        content = self._content_of(claim)
        notes = notes_of(step.noted, installation=ctx.installation, replica=ctx.replica, epoch=self.epoch(worker.name))
        environment = await self.environments.of(step.pod, worker)
        text = content.topology.render(
            title=claim.title,
            notes=notes,
            description=described(content.topology.description, step.noted.bound_to),
            ports=claim.ports or None,
            environment=environment.containers,
        )
        absent: list[str] = []
        if claim.begin_from:
            left = await _stored(self.archive.begun_from(claim.begin_from, step.pod.metadata, step.noted.bound_to))
            text, absent = await asyncio.to_thread(configured, text, left.configs)
        try:
            imported = await worker.labs.import_lab(text, claim.title)
        except OutsideError as error:
            if environment.secret or claim.begin_from:
                raise withheld(error) from None
            raise
        devices = await _assumed(worker, imported.id)
        if devices is None:
            devices = tuple(DeviceFact("", d.label, d.definition, words.DEFINED) for d in content.topology.devices)
        warnings = imported.warnings or ()
        if warnings and (environment.secret or claim.begin_from):
            warnings = (withheld_warnings(len(warnings)),)
        if absent:
            gone = f"saved, and not in this version of the lab: {listed(absent, intent.WORDS_MAX)}"
            warnings = (*warnings, gone)
        return Acted(imported.id, devices=devices, notices=environment.notices, warnings=warnings)

    def _content_of(self, claim: Claim) -> Content:
        content = self.contents.get(claim.digest)
        if content is None:
            raise InputError(
                Trouble.CONTENT_MISSING,
                f"the content of {claim.definition} {claim.version} is gone; delete the pod, its successor uses the "
                "current version",
            )
        return content


def _is_away(error: OutsideError) -> bool:
    """Return whether the LDS is away, or refuses the login, so that it may answer the same request later."""
    return may_pass(error) or isinstance(error, DeadlineExceeded)


async def _unless_gone(worker: Worker, claim: Claim, call: Awaitable[None]) -> Outcome:
    if not await _is_there(worker, call):
        return Acted(gone=True)
    return Acted(devices=await _assumed(worker, claim.lab_id))


async def _is_there(worker: Worker, call: Awaitable[None]) -> bool:
    """Await a call about a lab; return False if CML says that there is none.

    Raises:
        OutsideError: The call failed; or CML says so to somebody who may not see the lab, see `Worker.doubt`.
    """
    access = worker.access
    try:
        await call
    except NotFound:
        if (doubt := worker.doubt(access)) is not None:
            raise doubt from None
        return False
    return True


async def _assumed(worker: Worker, lab_id: str) -> tuple[DeviceFact, ...] | None:
    """Return the devices of a lab, if the worker acts at once; None if they must be observed."""
    return await worker.labs.list_devices(lab_id) if worker.labs.immediate else None


async def _stored(asking: Awaitable[T]) -> T:
    """Await an API-server call; re-raise its errors as `StepFailed`."""
    try:
        return await asking
    except OutsideError as error:
        fault = api_fault(error)
        raise StepFailed(fault.reason, fault.message) from error
