"""A tiny world for `decide`: one Pod, one CML worker, one claim store, and a shell that does what steps say.

The shell follows the docstrings of `Step` and `Facts` and nothing else. Whatever is not in the claim store or in the
API server is lost in a crash. Every rule that the bridge must never break is asserted where it would be broken.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.unit.domain import builders
from vkprovider.api import labs, names
from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet import lifecycle
from vkprovider.domain.lablet import status as podstatus
from vkprovider.domain.lablet.decide import decide
from vkprovider.domain.lablet.facts import Decision, Facts, Limits, Presence, Report, Step
from vkprovider.domain.lablet.inputs import NOTHING, inputs_of
from vkprovider.domain.lablet.lifecycle import State

LIMITS = Limits()
WALL = 1_800_000_000


class CallFailed(Exception):  # noqa: N818 (an answer, not an error of ours)
    """The worker refused, or did not answer."""


@dataclass
class ModelLab:
    """A lab on the model worker.

    Attributes:
        shown_ready: Somebody saw it Ready, so that somebody may have worked in it.
    """

    id: str
    title: str
    states: list[str]
    ever_started: bool = False
    stopping: bool = False
    shown_ready: bool = False


@dataclass
class ModelCml:
    """The labs of one worker, with CML's rules."""

    devices: int = 2
    labs: dict[str, ModelLab] = field(default_factory=dict)
    late: list[ModelLab] = field(default_factory=list)
    away: bool = False
    stuck: bool = False
    count: int = 0

    def import_(self, title: str, *, late: bool = False) -> str:
        self.count += 1
        lab = ModelLab(f"lab-{self.count:03}", title, [labs.DEFINED] * self.devices)
        if late:
            self.late.append(lab)
        else:
            self.labs[lab.id] = lab
        return lab.id

    def find(self, title: str) -> list[str]:
        return sorted(lab.id for lab in self.labs.values() if lab.title == title)

    def _lab(self, lab_id: str) -> ModelLab:
        if lab_id not in self.labs:
            raise CallFailed("404")
        return self.labs[lab_id]

    def start(self, lab_id: str) -> None:
        lab = self._lab(lab_id)
        lab.ever_started, lab.stopping = True, False
        lab.states = [labs.QUEUED if s in {labs.DEFINED, labs.STOPPED} else s for s in lab.states]

    def stop(self, lab_id: str) -> None:
        self._lab(lab_id).stopping = True

    def wipe(self, lab_id: str) -> None:
        lab = self._lab(lab_id)
        if set(lab.states) - {labs.STOPPED, labs.DEFINED}:
            raise CallFailed("400 stop it first")
        lab.states = [labs.DEFINED] * self.devices

    def delete(self, lab_id: str) -> None:
        if set(self._lab(lab_id).states) - {labs.DEFINED}:
            raise CallFailed("400 stop and wipe it first")
        del self.labs[lab_id]

    def advance(self) -> None:
        """Let CML go one step further with whatever it is doing."""
        self.labs |= {lab.id: lab for lab in self.late}
        self.late.clear()
        onward = {labs.QUEUED: labs.STARTED, labs.STARTING: labs.STARTED, labs.STARTED: labs.BOOTED}
        for lab in self.labs.values():
            if lab.stopping:
                lab.states = [labs.STOPPED if s in labs.ACTIVE else s for s in lab.states]
                lab.stopping = False
            elif not self.stuck:
                lab.states = [onward.get(s, s) for s in lab.states]

    def reboot(self) -> None:
        """Stop every device at once."""
        for lab in self.labs.values():
            lab.states = [labs.STOPPED if s in labs.ACTIVE else s for s in lab.states]

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
            lab.states = [labs.BOOTED if s == labs.DISCONNECTED or s not in labs.KNOWN else s for s in lab.states]


@dataclass
class Memory:
    """What a replica knows of the lablet, and loses when it is killed."""

    claim: Claim | None = None
    claim_saved: bool = True
    searched: bool = False
    presence: Presence = Presence.UNKNOWN
    devices: tuple[DeviceFact, ...] = ()
    gone_confirmed: bool = False
    starting_since: float = 0.0
    start_sent_at: float = 0.0
    retry_at: float = 0.0
    ready_since: float = 0.0
    stop_sent_at: float = 0.0
    delete_sent: bool = False
    extracted: bool = False
    archive_failed: bool = False
    state: State | None = None


class World:
    """One Pod, its worker, its row, and the replica that acts for it."""

    def __init__(self, pod: Pod, *, deadline_s: float = 0.0, limits: Limits = LIMITS) -> None:
        self.now = 1000.0
        self.pod: Pod | None = pod
        self.uid = pod.metadata.uid
        self.limits = limits
        self.deadline_at = self.now + deadline_s if deadline_s else 0.0
        self.cml = ModelCml()
        self.store: dict[str, Claim] = {}
        self.memory = Memory()
        self.informer_misses_pod = False
        self.steps: list[Step] = []
        self.last: Decision | None = None
        self.attention = False

    @property
    def title(self) -> str:
        return builders.claim().title

    @property
    def ours(self) -> list[ModelLab]:
        return [lab for lab in (*self.cml.labs.values(), *self.cml.late) if lab.title == self.title]

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

    def facts(self) -> Facts:
        memory = self.memory
        row = memory.claim
        if row is not None and row.started > row.ready_at and not memory.starting_since:
            memory.starting_since = self.now - (self.wall - row.started)
        return Facts(
            pod=None if self.informer_misses_pod else self.pod,
            claim=memory.claim,
            claim_saved=memory.claim_saved,
            gone_confirmed=memory.gone_confirmed,
            searched=memory.searched,
            presence=memory.presence,
            devices=memory.devices,
            silent="worker w1 does not answer" if self.cml.away else "",
            starting_since=memory.starting_since,
            start_sent_at=memory.start_sent_at,
            retry_at=memory.retry_at,
            ready_since=memory.ready_since,
            deadline_at=self.deadline_at,
            stop_sent_at=memory.stop_sent_at,
            delete_sent=memory.delete_sent,
            extracted=memory.extracted,
            inputs=inputs_of(self.pod.metadata) if self.pod is not None else NOTHING,
            now_unix=self.wall,
        )

    # What happens around the replica.

    def crash(self) -> None:
        """Kill the replica; the next one reads the claim store."""
        row = self.store.get(self.uid)
        self.memory = Memory(claim=row)

    def persist(self) -> None:
        """Write the row that waits to be written."""
        memory = self.memory
        if memory.claim is not None and not memory.claim_saved:
            self.store[self.uid] = memory.claim
            memory.claim_saved = True

    def observe(self) -> None:
        """Look at the worker, as the bulk observation does."""
        memory = self.memory
        if self.cml.away or memory.claim is None or not memory.claim.lab_id:
            return
        lab = self.cml.labs.get(memory.claim.lab_id)
        memory.presence = Presence.PRESENT if lab else Presence.ABSENT
        memory.devices = builders.devices(*lab.states) if lab else ()
        if {device.state for device in memory.devices} == {labs.BOOTED}:
            memory.starting_since = 0.0

    def work(self, turns: int, *, persist: bool = True) -> None:
        """Let a stretch of time go by in which nothing goes wrong, except perhaps that no row can be written."""
        for _ in range(turns):
            if persist:
                self.persist()
            self.observe()
            if self.act().step is Step.NONE:
                self.cml.advance()
                self.now += 1.0

    def lose_observation(self) -> None:
        """Let the last observation be of no use any more."""
        self.memory.presence, self.memory.devices = Presence.UNKNOWN, ()

    def delete_pod(self, *, force: bool = False) -> None:
        """Delete the Pod as a user does; forced, it is gone at once."""
        if self.pod is None:
            return
        if force and not self.pod.metadata.finalizers:
            self.pod = None
        else:
            self._change_metadata(self.pod, deletion_timestamp="2026-01-01T00:00:00Z")

    def desire_end(self) -> None:
        """Ask for the end of the lablet by annotation."""
        if self.pod is not None:
            annotations = self.pod.metadata.annotations | {names.ANNOTATION_DESIRED_STATE: "Terminated"}
            self._change_metadata(self.pod, annotations=annotations)

    def _change_metadata(self, pod: Pod, **fields: Any) -> None:
        self.pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **fields))

    # One decision, carried out.

    def act(self, answer: str = "ok") -> Decision:
        """Ask for the next step and carry it out.

        Args:
            answer: `ok`; `lost`: done, but nobody hears of it; `failed`: not done; `killed-before` and `killed-after`:
                the replica dies before or after the step.
        """
        facts = self.facts()
        decision = self.last = decide(facts, self.now, self.limits)
        self.steps.append(decision.step)
        if answer == "killed-before":
            self.crash()
            return decision
        self._report(decision.report)
        self._remember(decision)
        try:
            self._carry_out(decision, facts, answer)
        except CallFailed:
            self.memory.presence, self.memory.devices = Presence.UNKNOWN, ()
        if answer == "killed-after":
            self.crash()
        return decision

    def _report(self, report: Report | None) -> None:
        if report is None or self.pod is None or self.informer_misses_pod:
            return
        memory = self.memory
        assert lifecycle.allowed(memory.state, report.state), f"{memory.state} → {report.state}"
        memory.state = report.state
        self.attention = report.waiting is not None and report.waiting[0] == "NeedsAttention"
        wanted = podstatus.render(self.pod, report, memory.claim, {}, "198.51.100.1")
        before = self.pod
        if podstatus.found(before, wanted) != wanted:
            self.pod = podstatus_applied(before, wanted, memory.claim, self.wall)
        if before.terminal:
            assert self.pod.terminal, "a phase went back"
        if before.status.phase == "Running":
            assert self.pod.status.phase != "Pending", "a phase went back"
        if self.pod.terminal and not before.terminal:
            assert not self.ours, f"a terminal phase while {self.ours} is there"
        if report.ready:
            assert memory.claim is not None
            lab = self.cml.labs.get(memory.claim.lab_id)
            if lab is not None:
                lab.shown_ready = True
        memory.ready_since = (memory.ready_since or self.now) if report.ready else 0.0

    def _remember(self, decision: Decision) -> None:
        memory = self.memory
        if decision.claim is not None:
            memory.claim, memory.claim_saved = decision.claim, False
        if decision.retry_at is not None:
            memory.retry_at = decision.retry_at
        if decision.anew:
            memory.starting_since = memory.start_sent_at = 0.0

    def _carry_out(self, decision: Decision, facts: Facts, answer: str) -> None:
        memory = self.memory
        match decision.step:
            case Step.NONE | Step.SAVE:
                pass
            case Step.CLAIM:
                assert facts.claim is None
                memory.claim, memory.claim_saved, memory.searched = builders.claim(), False, True
            case Step.CONFIRM_GONE:
                self.informer_misses_pod = False
                memory.gone_confirmed = self.pod is None
            case Step.DELETE_POD:
                self._delete_pod(answer)
            case Step.RELEASE:
                assert not self.ours, f"the row is dropped while {self.ours} is there"
                if answer != "failed":
                    self.store.pop(self.uid, None)
                    self.memory = Memory()
            case Step.FORGET:
                assert self.uid not in self.store
                self.memory, self.informer_misses_pod = Memory(), False
            case _:
                self._call_worker(decision.step, facts, answer)

    def _delete_pod(self, answer: str) -> None:
        assert self.pod is not None
        assert self.pod.metadata.deletion_timestamp is not None, "a Pod was deleted that nobody deleted"
        assert not self.ours, f"the Pod is deleted while {self.ours} is there"
        if answer == "failed":
            return
        self.memory.delete_sent = answer != "lost"
        if not self.pod.metadata.finalizers:
            self.pod = None

    def _call_worker(self, step: Step, facts: Facts, answer: str) -> None:
        memory, cml = self.memory, self.cml
        claim = facts.claim
        assert claim is not None, "the worker is called for a lablet without a row"
        assert not facts.silent, "a silent worker is called"
        memory.presence, memory.devices = Presence.UNKNOWN, ()
        if answer == "failed":
            raise CallFailed("503")
        if step is Step.SEARCH:
            assert not claim.lab_id
            if answer == "lost":
                raise CallFailed("no answer")
            if found := cml.find(claim.title):
                memory.claim = msgspec.structs.replace(claim, lab_id=found[0])
                memory.claim_saved = False
            else:
                memory.searched = True
            return
        if step is Step.IMPORT:
            assert not claim.lab_id
            assert self.store.get(self.uid) == claim, "an import without a saved row"
            lab_id = cml.import_(claim.title)
            if answer == "lost":
                memory.searched = False
                raise CallFailed("no answer")
            memory.claim = msgspec.structs.replace(claim, lab_id=lab_id)
            memory.claim_saved = False
            return
        assert claim.lab_id, f"{step} without a lab"
        self._check_destruction(step, facts, claim)
        if step is Step.EXTRACT:
            memory.extracted = True
        elif step is Step.START:
            memory.extracted = False
            cml.start(claim.lab_id)
            memory.start_sent_at, memory.stop_sent_at = self.now, 0.0
            memory.starting_since = memory.starting_since or self.now
        elif step is Step.STOP:
            cml.stop(claim.lab_id)
            memory.stop_sent_at, memory.start_sent_at = self.now, 0.0
        elif step is Step.WIPE:
            cml.wipe(claim.lab_id)
            memory.starting_since = memory.start_sent_at = 0.0
        else:
            assert step is Step.DELETE_LAB
            cml.delete(claim.lab_id)
        if answer == "lost":
            raise CallFailed("no answer")

    def _check_destruction(self, step: Step, facts: Facts, claim: Claim) -> None:
        active = {device.state for device in facts.devices} - {labs.DEFINED, labs.STOPPED}
        if step in {Step.WIPE, Step.DELETE_LAB}:
            assert facts.presence is Presence.PRESENT
            assert not active, f"{step} while {active}"
        if step is Step.DELETE_LAB:
            assert not any(device.state == labs.STOPPED for device in facts.devices), "a delete before the wipe"
            assert self.may_end or claim.outcome, "the lab of a living Pod is deleted"
        if step in {Step.STOP, Step.WIPE, Step.DELETE_LAB} and self.somebody_worked_in(self.cml.labs.get(claim.lab_id)):
            gone = self.pod is None or self.pod.terminal
            assert self.may_end or gone or self.may_destroy(step), f"{step}: work is destroyed ({claim})"
        if step is Step.STOP and claim.ready_at and labs.BOOTED in {device.state for device in facts.devices}:
            assert facts.extracted, f"the configurations are not kept before {step}"

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
            if decision.step is Step.FORGET and self.pod is None:
                return
            if decision.step is not Step.NONE:
                continue
            if self._finalizers_go():
                continue
            if self._at_rest(decision):
                return
            self._check_wakes(decision)
            self.persist()
            self.cml.advance()
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
        if self.memory.claim is not None and not self.memory.claim_saved:
            return False
        if self.pod is None:
            return False
        if self.pod.metadata.deletion_timestamp is not None:
            return False
        if self.pod.terminal:
            return self.uid not in self.store
        stable = self.memory.claim is not None and not self.memory.claim.recoveries
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
        assert not self.ours
        assert not self.store
        assert self.pod is None

    def check(self) -> None:
        """Assert what holds at any time."""
        assert sum(lab.ever_started for lab in self.ours) <= 1, "two labs of one Pod were started"
        if self.pod is None and self.uid not in self.store:
            assert not self.ours, f"{self.ours} has neither Pod nor row"

    def _somebody_waits_for_the_row(self) -> bool:
        """Whether the row is written at once, with a wake; a change in mid-life is written with others, silently."""
        memory = self.memory
        if memory.claim is None or memory.claim_saved:
            return False
        session = memory.claim.session
        awaited = memory.claim.outcome or memory.claim.closing or (session is not None and not session.ready)
        return self.uid not in self.store or bool(awaited)

    def _check_wakes(self, decision: Decision) -> None:
        memory = self.memory
        wakes = (
            decision.observe
            or decision.after_s is not None
            or self._somebody_waits_for_the_row()
            or (decision.report is not None and decision.report.terminal is not None)
            or (decision.report is not None and decision.report.ready)
            or memory.delete_sent
            or self.attention
        )
        assert wakes, f"nobody would ask again after {decision}, {memory}"


def podstatus_applied(pod: Pod, wanted: podstatus.Status, claim: Claim | None, now_unix: int) -> Pod:
    """Write a status as the shell and the API server do."""
    after = builders.patched(pod, podstatus.patch(pod, wanted, claim, now_unix))
    assert podstatus.found(after, wanted) == wanted, "the patch does not say what was wanted"
    kinds = {kind for c in after.status.container_statuses for kind in c.state}
    assert after.terminal or "terminated" not in kinds, "a container is terminated while the Pod is not terminal"
    return after
