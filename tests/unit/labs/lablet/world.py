"""A tiny world for `decide` and `after`: one Pod, one CML worker, one claim store.

The decisions, and what steps leave in memory and claim, are the product's; only the systems that steps call are models.
What is not in the claim store or in the API server is lost in a crash. Every rule that the bridge must never break is
asserted where it would be broken.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypedDict

import msgspec

from tests.unit.labs import builders
from vkprovider.lablet import names, observations, standing
from vkprovider.lablet.exposure import Access, ExposedPort, Exposure
from vkprovider.lablet.inputs import NOTHING, inputs_of
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import leftovers, steps
from vkprovider.labs.pure.lablet import status as podstatus
from vkprovider.labs.pure.lablet.after import After, after, begun, decided, failed
from vkprovider.labs.pure.lablet.boots import NO_PATIENCE
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.decisions.stepfault import fault_of, fault_report
from vkprovider.labs.pure.lablet.exposing import NOT_EXPOSED, Exposing, NoSlice
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.identity import (
    KnownLab,
    certain,
    described,
    is_leftover,
    matches,
    notes_of,
    origin_of,
    renewed,
    shown_lab,
)
from vkprovider.labs.pure.lablet.memory import Memory, Presence, lab_seen, refreshed
from vkprovider.labs.pure.lablet.outcomes import (
    Acted,
    Adopted,
    Archived,
    Circumstances,
    Claimed,
    Done,
    Failure,
    Outcome,
    Unsure,
)
from vkprovider.labs.pure.lablet.recovered import MarkedLab, adopted, recovered
from vkprovider.labs.pure.lablet.steps import Step
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import DeadlineExceeded, Invalid, NotFound, OutsideError, Unavailable
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import iso
from vkprovider.rest.dialect import may_have_happened


class Writer(TypedDict):
    """Who writes the notes of labs."""

    installation: str
    replica: str
    epoch: int


LIMITS = LabletSettings(start_timeout_s=300.0)
LAB = "lab: {version: 0.3.0}\nnodes: [{id: n0, label: h0, node_definition: alpine, x: 0, y: 0}]\nlinks: []\n"
CONTENT = Content("netlab", "1.2.0", builders.DIGEST, 1, topologies.parse(LAB), Resources(), "content-1")
WALL = 1_800_000_000
WRITER: Final[Writer] = {"installation": "inst", "replica": "r", "epoch": 1}
AUTHORS: Final = "OSPF in two areas"
"""The author's description of the lab."""


@dataclass
class ModelLab:
    """A lab on the model worker.

    Attributes:
        shown_ready: Somebody saw it Ready, so that somebody may have worked in it.
        created: Unix seconds.
        copy: Somebody saved it; nobody else may touch it.
        extracted: CML has extracted configurations of it.
        tainted: It was wiped after that: CML would start it with them.
    """

    id: str
    title: str
    states: list[str]
    notes: str = ""
    description: str = AUTHORS
    ever_started: bool = False
    stopping: bool = False
    shown_ready: bool = False
    created: int = 0
    copy: bool = False
    extracted: bool = False
    tainted: bool = False


@dataclass
class ModelCml:
    """The labs of one worker, with CML's rules."""

    devices: int = 2
    labs: dict[str, ModelLab] = field(default_factory=dict)
    late: list[ModelLab] = field(default_factory=list)
    away: bool = False
    stuck: bool = False
    count: int = 0

    def import_(self, title: str, notes: str, *, created: int = WALL, late: bool = False, copy: bool = False) -> str:
        self.count += 1
        lab_id = f"lab-{self.count:03}"
        lab = ModelLab(lab_id, title, [observations.DEFINED] * self.devices, notes, created=created, copy=copy)
        if late:
            self.late.append(lab)
        else:
            self.labs[lab.id] = lab
        return lab.id

    def lab(self, lab_id: str) -> ModelLab:
        if lab_id not in self.labs:
            raise NotFound("404", status=404)
        return self.labs[lab_id]

    def start(self, lab_id: str) -> None:
        lab = self.lab(lab_id)
        assert not lab.tainted, "a wiped lab begins with what was extracted"
        lab.ever_started, lab.stopping = True, False
        lab.states = [
            observations.QUEUED if s in {observations.DEFINED, observations.STOPPED} else s for s in lab.states
        ]

    def stop(self, lab_id: str) -> None:
        self.lab(lab_id).stopping = True

    def wipe(self, lab_id: str) -> None:
        lab = self.lab(lab_id)
        if set(lab.states) - {observations.STOPPED, observations.DEFINED}:
            raise Invalid("stop it first", status=400)
        lab.tainted = lab.tainted or lab.extracted
        lab.states = [observations.DEFINED] * self.devices

    def delete(self, lab_id: str) -> None:
        if set(self.lab(lab_id).states) - {observations.DEFINED}:
            raise Invalid("stop and wipe it first", status=400)
        del self.labs[lab_id]

    def advance(self) -> None:
        """Let CML go one step further with whatever it is doing."""
        self.labs |= {lab.id: lab for lab in self.late}
        self.late.clear()
        onward = {
            observations.QUEUED: observations.STARTED,
            observations.STARTING: observations.STARTED,
            observations.STARTED: observations.BOOTED,
        }
        for lab in self.labs.values():
            if lab.stopping:
                lab.states = [observations.STOPPED if s in observations.ACTIVE else s for s in lab.states]
                lab.stopping = False
            elif not self.stuck:
                lab.states = [onward.get(s, s) for s in lab.states]

    def reboot(self) -> None:
        """Stop every device at once."""
        for lab in self.labs.values():
            lab.states = [observations.STOPPED if s in observations.ACTIVE else s for s in lab.states]

    def meddle(self, lab: ModelLab, device: int, state: str) -> None:
        """Bring a device into a state by other hands than ours."""
        lab.states[device] = state
        lab.ever_started = True

    def meddle_all(self, device: int, state: str) -> None:
        """Bring one device of every lab into a state."""
        for lab in self.labs.values():
            self.meddle(lab, device, state)

    def heal(self) -> None:
        """Make the worker an ordinary one again."""
        self.away = self.stuck = False
        for lab in self.labs.values():
            lab.states = [
                observations.BOOTED if s == observations.DISCONNECTED or s not in observations.KNOWN else s
                for s in lab.states
            ]


class World:
    """One Pod, its worker, its row, and the replica that acts for it.

    Attributes:
        lost: There is no ConfigMap of claims, because someone deleted it.
        examined: The replica knows the claims: it has read them, or rebuilt them from the worker's labs.
        exposes: The definition lends the lablet's ports to a mux, and has the LDS told so.
        mux_answers: The mux leads to them.
        slice, slice_uid: What is lent, by its slice in the API server; None and "" for nothing.
        shown_slice, shown_uid: The same as the informer has it.
        left: Labs that were in doubt when lost claims were rebuilt, so that they are kept for a person.
    """

    def __init__(
        self, pod: Pod, *, deadline_s: float = 0.0, limits: LabletSettings = LIMITS, exposes: bool = False
    ) -> None:
        self.now = 1000.0
        self.pod: Pod | None = pod
        self.uid = pod.metadata.uid
        self.limits = limits
        self.deadline_at = self.now + deadline_s if deadline_s else 0.0
        self.cml = ModelCml()
        self.store: dict[str, Claim] = {}
        self.memory = Memory(met_at=self.now)
        self.claim: Claim | None = None
        self.claim_saved = True
        self.presence = Presence.UNKNOWN
        self.devices: tuple[DeviceFact, ...] = ()
        self.informer_misses_pod = False
        self.lost = False
        self.examined = True
        self.left: set[str] = set()
        self.exposes = exposes
        self.mux_answers = True
        self.patience = NO_PATIENCE
        self.slice: Exposure | None = None
        self.slice_uid = ""
        self.shown_slice: Exposure | None = None
        self.shown_uid = ""
        self._slices = count(1)
        self.steps: list[type[Step]] = []
        self.last: Decision | None = None
        self.attention = False

    @property
    def title(self) -> str:
        return builders.claim().title

    @property
    def ours(self) -> list[ModelLab]:
        """The labs of the Pod, without those that are kept for a person."""
        found = [lab for lab in (*self.cml.labs.values(), *self.cml.late) if lab.title == self.title]
        return [lab for lab in found if not lab.copy and lab.id not in self.left]

    @property
    def wall(self) -> int:
        return WALL + int(self.now)

    @property
    def may_end(self) -> bool:
        """Whether somebody wants the lablet to end, so that its work may go."""
        pod = self.pod
        return (
            pod is None
            or pod.metadata.deletion_timestamp is not None
            or pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.TERMINATED
            or bool(self.deadline_at and self.now >= self.deadline_at)
        )

    @property
    def shown(self) -> Pod | None:
        """The Pod as the informer has it."""
        return None if self.informer_misses_pod else self.pod

    @property
    def place(self) -> Circumstances:
        return Circumstances("w1", self.shown, self.now, self.wall)

    def facts(self) -> Facts:
        away = self.cml.away
        self.memory = refreshed(self.memory, self.shown, self.claim, now=self.now, wall=self.wall, silent=away)
        presence, devices = Presence.UNKNOWN, self.devices
        if self.claim is not None and self.claim.lab_id:
            presence, devices = lab_seen(self.memory, self.presence, self.devices)
        return Facts(
            pod=self.shown,
            claim=self.claim,
            memory=self.memory,
            claim_saved=self.claim_saved,
            gone_confirmed=self.memory.gone_confirmed,
            unexamined=not self.examined,
            presence=presence,
            devices=devices,
            silent="worker w1 does not answer" if away else "",
            worker_time=self.wall,
            extracted=self.memory.extracted,
            patience=self.patience,
            inputs=inputs_of(self.pod.metadata) if self.pod is not None else NOTHING,
            exposing=self._exposing(self.claim) if self.claim is not None else NOT_EXPOSED,
            now_unix=self.wall,
        )

    def _exposing(self, claim: Claim) -> Exposing:
        seen, uid = self.shown_slice, self.shown_uid
        wanted: Exposure | NoSlice = NoSlice.UNWANTED
        if self.exposes:
            port = ExposedPort("h0-serial", "h0_serial", "TCP", 10011)
            wanted = Exposure(
                "w1", "labs", claim.namespace, claim.pod, claim.pod_uid, claim.bound_to, "198.51.100.1", (port,)
            )
        answer = {"h0_serial": Access("live", "203.0.113.1", 20000)} if self.mux_answers else {}
        return Exposing(wanted, seen, uid, answer, self.exposes)

    # What happens to the slice.

    def see_slice(self) -> None:
        """Let the informer show the slice as it is."""
        self.shown_slice, self.shown_uid = self.slice, self.slice_uid

    def lose_slice(self) -> None:
        """Let somebody delete the slice."""
        self.slice, self.slice_uid = None, ""

    def sweep(self) -> None:
        """Delete the slice of a lablet that has no claim, as a pass does."""
        if self.examined and self.claim is None and self.shown_uid == self.slice_uid:
            self.lose_slice()

    # What happens around the replica.

    def crash(self) -> None:
        """Kill the replica; the next one reads the claim store."""
        self.memory = Memory(met_at=self.now)
        self.claim, self.claim_saved = self.store.get(self.uid), True
        self.presence, self.devices = Presence.UNKNOWN, ()
        self.examined = not self.lost

    def lose_claims(self) -> None:
        """Delete the claims while no replica runs."""
        self.store.clear()
        self.lost = True
        self.crash()

    def examine(self) -> None:
        """Rebuild lost claims from the worker's labs, as a new owner does before anything else."""
        if self.examined or self.cml.away:
            return
        found = [marked(lab) for lab in self.cml.labs.values()]
        pods = {self.uid: self.pod} if self.pod is not None else {}  # all are listed before
        self.left |= {lab.lab_id for lab in found}
        for row in recovered(found, pods, {lab.origin.digest: CONTENT for lab in found}):
            self.claim, self.claim_saved = row, False
            self.left.discard(row.lab_id)
        self.examined = True

    def persist(self) -> None:
        """Write the claim that waits to be written."""
        if self.claim is not None and not self.claim_saved:
            self.store[self.uid] = self.claim
            self.claim_saved, self.lost = True, False

    def observe(self) -> None:
        """Look at the worker, as the bulk observation does; meanwhile the watches tell what is new."""
        self.examine()
        self.see_slice()
        if self.cml.away or self.claim is None or not self.claim.lab_id:
            return
        everything = [known(one) for one in self.cml.labs.values()]
        for one in everything:
            if is_leftover(self.claim, one, everything) and set(self.cml.lab(one.lab_id).states) == {
                observations.DEFINED
            }:
                assert not self.cml.lab(one.lab_id).copy, "a copy is taken for a leftover"
                self.cml.delete(one.lab_id)
        lab = self.cml.labs.get(self.claim.lab_id)
        self.presence = Presence.PRESENT if lab else Presence.ABSENT
        self.devices = builders.devices(*lab.states) if lab else ()

    def work(self, turns: int, *, persist: bool = True) -> None:
        """Let a stretch of time go by in which nothing goes wrong, except perhaps that no row can be written."""
        for _ in range(turns):
            if persist:
                self.persist()
            self.observe()
            if isinstance(self.act().step, steps.Wait):
                self.cml.advance()
                self.now += 1.0

    def lose_observation(self) -> None:
        """Make the last observation useless, and what was assumed without one."""
        self.presence, self.devices = Presence.UNKNOWN, ()
        self.memory = msgspec.structs.replace(self.memory, assumed=None)

    def delete_pod(self, *, force: bool = False) -> None:
        """Delete the Pod as a user does; forced, it is gone at once."""
        if self.pod is None:
            return
        if force and not self.pod.metadata.finalizers:
            self.pod = None
        else:
            self._change_metadata(self.pod, deletion_timestamp="2026-01-01T00:00:00Z")

    def save_copy(self, state: str) -> None:
        """Let somebody save a copy of the lab that the Pod shows; labs are saved minutes after their import."""
        lab = self.cml.labs.get(shown_lab(self.pod))
        if lab is not None and not self.cml.away:
            created = max(self.wall, lab.created + 100)
            copy = self.cml.labs[self.cml.import_(lab.title, lab.notes, created=created, copy=True)]
            copy.states = [state] * self.cml.devices

    def desire_end(self) -> None:
        """Ask for the end of the lablet by annotation."""
        if self.pod is not None:
            annotations = self.pod.metadata.annotations | {names.ANNOTATION_DESIRED_STATE: "Terminated"}
            self._change_metadata(self.pod, annotations=annotations)

    def _change_metadata(self, pod: Pod, **fields: Any) -> None:
        self.pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **fields))

    # One decision, carried out.

    def act(self, answer: str = "ok") -> Decision:
        """Decide the next step and execute it.

        Args:
            answer: `ok`; `lost`: done, but no answer arrives; `failed`: not done; `killed-before` and `killed-after`:
                the replica dies before or after the step.
        """
        facts = self.facts()
        decision = self.last = decide(facts, self.now, self.limits)
        self.steps.append(type(decision.step))
        self._check_awaits(facts, decision)
        if answer == "killed-before":
            self.crash()
            return decision
        before = self.memory.state
        self._apply(decided(self.memory, facts, decision, worker="w1", now=self.now))
        state = self.memory.state
        assert state is None or standing.allowed(before, state), f"{before} → {state}"
        if decision.report is not None:
            waiting = decision.report.waiting
            self.attention = waiting is not None and waiting.reason == "NeedsAttention"
        self._report(decision.report)
        if isinstance(decision.step, steps.Forget):
            assert self.uid not in self.store
            self.memory, self.informer_misses_pod = Memory(met_at=self.now), False
        elif not isinstance(decision.step, steps.Wait):
            self._carry_out(decision.step, facts, answer)
        if answer == "killed-after":
            self.crash()
        return decision

    def _apply(self, result: After) -> None:
        self.memory = result.memory
        if result.claim is not None and result.claim != self.claim:
            self.claim, self.claim_saved = result.claim, False

    def _report(self, report: Report | None) -> None:
        if report is None or self.pod is None or self.informer_misses_pod:
            return
        wanted = podstatus.render(self.pod, report, self.claim, {}, "198.51.100.1")
        before = self.pod
        if podstatus.read_status(before, wanted) != wanted:
            self.pod = podstatus_applied(before, wanted, self.claim, self.wall)
        if before.terminal:
            assert self.pod.terminal, "a phase went back"
        if before.status.phase == "Running":
            assert self.pod.status.phase != "Pending", "a phase went back"
        if self.pod.terminal and not before.terminal:
            assert not self.ours, f"a terminal phase while {self.ours} is there"
        if report.ready:
            assert self.claim is not None
            lab = self.cml.labs.get(self.claim.lab_id)
            if lab is not None:
                lab.shown_ready = True

    def _carry_out(self, step: Step, facts: Facts, answer: str) -> None:
        self.memory = begun(self.memory, step)
        try:
            outcome = self._execute(step, facts, answer)
        except OutsideError as error:
            fault = fault_of(type(step), error)
            failure = Failure(fault, 1.0, error, not may_have_happened(error))
            self._apply(failed(self.memory, self.claim, step, failure, self.place))
            self.presence, self.devices = Presence.UNKNOWN, ()
            self._report(fault_report(self.facts(), fault))
            return
        result = after(self.memory, self.claim, step, outcome, self.place)
        self._apply(result)
        if result.claim is None:
            self.claim, self.claim_saved = None, True

    def _execute(self, step: Step, facts: Facts, answer: str) -> Outcome:
        match step:
            case steps.Save():
                return Done()
            case steps.MakeClaim(pod=pod):
                assert facts.claim is None
                return Claimed(builders.claim(asked_at=self.wall if pod.status.start_time is None else 0))
            case steps.ConfirmGone():
                self.informer_misses_pod = False
                if self.pod is not None:
                    raise Unavailable("the informer lags", status=503)
                return Done()
            case steps.ConfirmDeletion():
                return self._delete_pod(answer)
            case steps.Expose(wanted=wanted, seen_uid=seen_uid):
                return self._lend(wanted, seen_uid, answer)
            case steps.Withdraw():
                if answer == "failed":
                    raise Unavailable("503", status=503)
                self.lose_slice()
                if answer == "lost":
                    raise DeadlineExceeded("no answer")
                return Done()
            case steps.Release():
                assert self.slice is None, "the claim is dropped while a mux leads to its ports"
                assert not self.ours, f"the claim is dropped while {self.ours} is there"
                if answer == "failed":
                    raise Unavailable("503", status=503)
                self.store.pop(self.uid, None)
                return Done()
            case _:
                return self._call_worker(step, facts, answer)

    def _lend(self, wanted: Exposure, seen_uid: str, answer: str) -> Outcome:
        stored = self.store.get(self.uid)
        assert stored is not None, "ports are lent without a saved claim"
        assert stored.exposed == wanted.mux, "the saved claim does not say that ports are lent"
        assert stored.bound_to == wanted.learner, "the slice is of another learner than the saved claim"
        if answer == "failed":
            raise Unavailable("503", status=503)
        if seen_uid == self.slice_uid:
            self.slice, self.slice_uid = wanted, f"slice-{next(self._slices)}"
        if answer == "lost":
            raise DeadlineExceeded("no answer")
        return Done()

    def _delete_pod(self, answer: str) -> Outcome:
        assert self.pod is not None
        assert self.pod.metadata.deletion_timestamp is not None, "a Pod was deleted that no user deleted"
        assert not self.ours, f"the Pod is deleted while {self.ours} is there"
        if answer == "failed":
            raise Unavailable("503", status=503)
        if not self.pod.metadata.finalizers:
            self.pod = None
        if answer == "lost":
            raise DeadlineExceeded("no answer")
        return Done()

    def _call_worker(self, step: Step, facts: Facts, answer: str) -> Outcome:
        cml, claim = self.cml, facts.claim
        assert claim is not None, "the worker is called for a lablet without a claim"
        assert not facts.silent, "a silent worker is called"
        self.presence, self.devices = Presence.UNKNOWN, ()
        if answer == "failed":
            raise Unavailable("503", status=503)
        try:
            outcome = self._act_on_lab(step, facts, claim)
        except NotFound:
            if isinstance(step, steps.Start):
                raise
            outcome = Acted(gone=True)
        if answer == "lost":
            raise DeadlineExceeded("no answer")
        assert not cml.away
        return outcome

    def _act_on_lab(self, step: Step, facts: Facts, claim: Claim) -> Outcome:
        cml = self.cml
        match step:
            case steps.Search(shown=shown):
                assert not claim.lab_id
                found = matches(claim, [known(lab) for lab in cml.labs.values()], shown)
                if not found:
                    return Done()
                if (one := certain(claim, found, shown)) is None:
                    return Unsure(tuple(lab.lab_id for lab in found))
                self.left.discard(one.lab_id)
                return Adopted(adopted(claim, marked(cml.lab(one.lab_id)), CONTENT, {}))
            case steps.Import():
                assert not claim.lab_id
                assert self.store.get(self.uid) == claim, "an import without a saved claim"
                lab_id = cml.import_(claim.title, notes_of(step.noted, **WRITER), created=self.wall)
                cml.labs[lab_id].description = described(AUTHORS, step.noted.bound_to)
                return Acted(lab_id, devices=builders.devices(*[observations.DEFINED] * cml.devices))
            case _:
                assert claim.lab_id, f"{step} without a lab"
                assert claim.lab_id not in cml.labs or not cml.labs[claim.lab_id].copy, f"{step} of a copy"
        self._check_destruction(step, facts, claim)
        match step:
            case steps.Extract():
                if claim.lab_id in cml.labs:
                    self.extract(cml.labs[claim.lab_id])
                return Archived(leftovers.of_claim(claim, {}, {}, at=self.wall), {})
            case steps.NoteLearner(claim=noted):
                lab = cml.lab(claim.lab_id)
                lab.notes = renewed(lab.notes, noted, **WRITER)
                lab.description = described(lab.description, noted.bound_to)
                return Done()
            case steps.Start():
                cml.start(claim.lab_id)
            case steps.Stop():
                cml.stop(claim.lab_id)
            case steps.Wipe():
                cml.wipe(claim.lab_id)
            case _:
                assert isinstance(step, steps.DeleteLab)
                cml.delete(claim.lab_id)
                return Acted(gone=True)
        return Acted()

    def extract(self, lab: ModelLab) -> None:
        """Let CML extract the configurations of the devices that run."""
        lab.extracted = lab.extracted or observations.BOOTED in lab.states

    def _check_destruction(self, step: Step, facts: Facts, claim: Claim) -> None:
        if isinstance(step, steps.Stop | steps.Wipe | steps.DeleteLab):
            assert self.slice is None, f"{step} while a mux leads to the lab"
        active = {device.state for device in facts.devices} - {observations.DEFINED, observations.STOPPED}
        if isinstance(step, steps.Wipe | steps.DeleteLab):
            assert facts.presence is Presence.PRESENT
            assert not active, f"{step} while {active}"
        if isinstance(step, steps.DeleteLab):
            assert not any(device.state == observations.STOPPED for device in facts.devices), "a delete before the wipe"
            replaced = claim.renews == claim.digest or not facts.devices
            if claim.resetting and claim.reimports:
                assert self.store.get(self.uid) == claim, "the lab is deleted before the claim says that it is replaced"
                replaced = True
            assert self.may_end or claim.outcome or replaced, "the lab of a living Pod is deleted"
        destroys = isinstance(step, steps.Stop | steps.Wipe | steps.DeleteLab)
        if destroys and self.somebody_worked_in(self.cml.labs.get(claim.lab_id)):
            gone = self.pod is None or self.pod.terminal
            assert self.may_end or gone or self.may_destroy(step), f"{step}: work is destroyed ({claim})"
        runs = observations.BOOTED in {device.state for device in facts.devices}
        if isinstance(step, steps.Stop) and claim.ready_at and runs:
            assert facts.extracted or self.nobody_had(claim), f"the configurations are not kept before {step}"

    def nobody_had(self, claim: Claim) -> bool:  # noqa: ARG002 (for worlds with pools)
        """Whether a lab is that of a free lablet of a pool."""
        return False

    def somebody_worked_in(self, lab: ModelLab | None) -> bool:
        """Whether somebody may have worked in a lab."""
        return lab is not None and lab.shown_ready

    def may_destroy(self, step: Step) -> bool:  # noqa: ARG002 (for worlds in which somebody may ask for it)
        """Whether somebody asked for a lab to be stopped or wiped that goes on living."""
        return False

    # A calm world.

    def settle(self, *, rounds: int = 300) -> None:
        """Let everything work until nothing is left to do; fail if it takes too long, or if nobody would wake up."""
        for _ in range(rounds):
            self.observe()
            decision = self.act()
            if isinstance(decision.step, steps.Forget) and self.pod is None:
                return
            if not isinstance(decision.step, steps.Wait):
                continue
            if self._finalizers_go():
                continue
            if self._at_rest(decision):
                return
            self._check_wakes(decision)
            self.persist()
            self.cml.advance()
            self.sweep()
            self.now += max(1.0, min(decision.after_s if decision.after_s is not None else 1.0, 60.0))
        raise AssertionError(f"does not come to rest: {self.steps[-20:]}, {self.last}, {self.memory}, {self.pod}")

    def _finalizers_go(self) -> bool:
        """Do what a Job controller does to a Pod that has ended."""
        if self.pod is None or not self.pod.terminal or not self.pod.metadata.finalizers:
            return False
        if self.memory.delete_sent:
            self.pod = None
        else:
            self._change_metadata(self.pod, finalizers=[])
        return True

    def _at_rest(self, decision: Decision) -> bool:
        report = decision.report
        if self.claim is not None and not self.claim_saved:
            return False
        rests = self.claim is not None and self.claim.lent_back and self.claim.rest_until > self.wall
        if rests or decision.awaits_access:
            return False
        ready = decision.report is not None and decision.report.ready
        if self.exposes and ready and self.lends and self.slice is None:
            return False
        if self.pod is None:
            return False
        if self.pod.metadata.deletion_timestamp is not None:
            return False
        if self.pod.terminal:
            return self.uid not in self.store
        stable = self.claim is not None and not self.claim.recoveries
        if report is None:
            return False
        paused = report.state is State.STOPPED and decision.after_s is not None and not decision.observe
        return (report.ready and stable) or paused or self.attention

    def settle_and_end(self) -> None:
        """Let everything come right, then delete the Pod: nothing may be left."""
        self.informer_misses_pod = False
        self.cml.heal()
        self.settle()
        if self.pod is not None and self.pod.metadata.deletion_timestamp is None:
            self.delete_pod()
            self.settle()
        self.see_slice()
        self.sweep()
        assert self.slice is None, "a slice is left"
        assert not self.ours
        assert not self.store
        assert self.pod is None

    def check(self) -> None:
        """Assert what holds at any time."""
        assert sum(lab.ever_started for lab in self.ours) <= 1, "two labs of one Pod were started"
        if self.slice is not None and self.slice.learner and self.claim is not None and self.claim.lab_id:
            assert self.claim.bound_to in {"", self.slice.learner}, "a mux leads one learner to the lab of another"
        if self.pod is None and self.uid not in self.store and not self.lost:
            assert not self.ours, f"{self.ours} has neither Pod nor row"

    @property
    def lends(self) -> bool:
        """Whether a lablet that is Ready lends its ports: a free one of a pool does not."""
        return self.claim is not None and not self.nobody_had(self.claim)

    def _somebody_waits_for_the_row(self) -> bool:
        """Whether the row is written at once, with a wake; a change in mid-life is written with others, silently."""
        claim = self.claim
        if claim is None or self.claim_saved:
            return False
        session = claim.session
        awaited = (
            claim.outcome
            or claim.closing_reason
            or claim.exposed
            or claim.rest_until
            or (session is not None and not session.ready_at)
        )
        stored = self.store.get(self.uid)
        return bool(stored is None or awaited or _awaited_of(stored) != _awaited_of(claim))

    def _check_awaits(self, facts: Facts, decision: Decision) -> None:
        """A wait that would end otherwise if the claim were stored says that it awaits it."""
        if decision.step is not steps.WAIT or decision.claim is not None or decision.awaits_claim:
            return
        stored = msgspec.structs.replace(facts, claim_saved=True, unsaved_because=None)
        assert decide(stored, self.now, self.limits) == decision

    def _check_wakes(self, decision: Decision) -> None:
        memory = self.memory
        wakes = (
            decision.observe
            or decision.after_s is not None
            or self._somebody_waits_for_the_row()
            or (decision.report is not None and decision.report.terminal is not None)
            or (decision.report is not None and decision.report.ready)
            or memory.delete_sent
            or not self.examined
            or self.attention
        )
        assert wakes, f"nobody would ask again after {decision}, {memory}"


def _awaited_of(claim: Claim) -> tuple[object, ...]:
    return (claim.learner, claim.asked_at, claim.reimports, claim.resetting)


def marked(lab: ModelLab) -> MarkedLab:
    """Return what the notes of a lab say."""
    origin = origin_of(lab.title, lab.notes)
    assert origin is not None
    return MarkedLab(lab.id, lab.title, iso(lab.created), origin, {"h0": ()})


def known(lab: ModelLab) -> KnownLab:
    """Return what is read of a lab."""
    return KnownLab(lab.id, lab.title, marked=True, created=iso(lab.created), origin=origin_of(lab.title, lab.notes))


def podstatus_applied(pod: Pod, wanted: podstatus.LabletStatus, claim: Claim | None, now_unix: int) -> Pod:
    """Write a status as the shell and the API server do."""
    after = builders.patched(pod, podstatus.patch(pod, wanted, claim, now_unix))
    assert podstatus.read_status(after, wanted) == wanted, "the patch does not say what was wanted"
    kinds = {kind for c in after.status.container_statuses for kind in c.state}
    assert after.terminal or "terminated" not in kinds, "a container is terminated while the Pod is not terminal"
    return after
