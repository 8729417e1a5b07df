"""The world of `world`, with learners: a model LDS, timeslots, pools, and people who stop, reset and collect.

A learner has worked in a lab once the LDS said that the session started; without an LDS, once the lablet was shown
Ready. Nothing but what somebody asked for, or the end of the learner's time, may destroy that.
"""

import hashlib
from dataclasses import dataclass, field

import msgspec

from tests.unit.labs import builders
from tests.unit.labs.lablet.world import AUTHORS, ModelLab, World
from vkprovider.lablet import names, observations
from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import leftovers, outcomes, steps
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.identity import described
from vkprovider.labs.pure.lablet.outcomes import Archived, Done, Outcome
from vkprovider.labs.pure.lablet.steps import Step
from vkprovider.labs.pure.session.delivery import Delivery
from vkprovider.platform import wellknown
from vkprovider.platform.errors import DeadlineExceeded, Unavailable
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import iso
from vkprovider.rest.dialect import Unsent

POOL = "evening"
_LEARNERS = (
    names.ANNOTATION_USERNAME,
    names.ANNOTATION_TIMESLOT_START,
    names.ANNOTATION_TIMESLOT_END,
    names.ANNOTATION_DESIRED_STATE,
)


@dataclass
class ModelSession:
    """A session in the model LDS."""

    id: str
    username: str
    devices: bool = False
    slot_end: int = 0
    archived: bool = False


@dataclass
class ModelLds:
    """A Lab Delivery System: sessions by client key, and the events that are under way.

    Attributes:
        inbox: What reached a replica, by session: when it started and ended. Every replica reads it, a crash or not.
    """

    sessions: dict[str, ModelSession] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)
    inbox: dict[str, tuple[int, int]] = field(default_factory=dict)
    count: int = 0
    down: bool = False
    full: bool = False
    grader: bool = False

    @property
    def live(self) -> list[ModelSession]:
        return [session for session in self.sessions.values() if not session.archived]

    def create(self, key: str, username: str) -> ModelSession:
        """Make a session, or give the one of this key; an archived one has none."""
        made = self.sessions.get(key)
        if made is None or made.archived:
            self.count += 1
            made = self.sessions[key] = ModelSession(f"s-{self.count}", username)
        return made

    def log_in(self) -> None:
        """Have the learner of every live session log in."""
        self.events += [(session.id, "started") for session in self.live if session.devices]

    def log_out(self) -> None:
        """Have every live session end."""
        self.events += [(session.id, "ended") for session in self.live if session.devices]

    def deliver(self, number: int, wall: int, *, again: bool) -> None:
        """Bring one of the events under way, whichever; it may come again."""
        if not self.events:
            return
        at = number % len(self.events)
        session, kind = self.events[at] if again else self.events.pop(at)
        started, ended = self.inbox.get(session, (0, 0))
        self.inbox[session] = (started or wall, ended) if kind == "started" else (started, ended or wall)


class LearnerWorld(World):
    """One Pod with its learners.

    Attributes:
        lds: None where no LDS is configured.
        granted: Somebody asked for the lab to be wiped, or the learner's time is over.
        wiped: That was done.
        newest: The digest of the definition's current content.
        seen_by: The learners who may have worked in a lab since it was imported or wiped, by its id.
        named: The learners whom the row of a lab has named since then; what was lost before anyone saw it counts not.
        kept: What the provider has stored of each learner's session: learner and session, and the grade.
        lost_once: Claims were lost, and with them that a learner's time was over: the learner may have it again.
    """

    def __init__(self, pod: Pod, *, lds: ModelLds | None, exposes: bool = False) -> None:
        super().__init__(pod, exposes=exposes)
        self.lds = lds
        self.granted = self.wiped = self.lost_once = False
        self.resets = 0
        self.newest = builders.DIGEST
        self.seen_by: dict[str, set[str]] = {}
        self.named: dict[str, set[str]] = {}
        self.kept: dict[tuple[str, str], Verdict | None] = {}

    # What people do.

    @property
    def notes(self) -> dict[str, str]:
        return self.pod.metadata.annotations if self.pod is not None else {}

    @property
    def leaving(self) -> bool:
        return self.pod is None or self.pod.metadata.deletion_timestamp is not None or self.pod.terminal

    @property
    def wanted(self) -> str:
        return self.notes.get(names.ANNOTATION_DESIRED_STATE, "").upper()

    def _note(self, **changes: str | None) -> None:
        assert self.pod is not None
        notes = dict(self.notes)
        for word, value in changes.items():
            key = f"{wellknown.GROUP}/{word.replace('_', '-')}"
            if value is None:
                notes.pop(key, None)
            else:
                notes[key] = value
        self._change_metadata(self.pod, annotations=notes)

    def assign(self, username: str, slot_s: int) -> None:
        """Give a warm lablet to a learner, as `kubectl lablet assign` does."""
        pod = self.pod
        if pod is None or self.leaving or self.notes.keys() & {*_LEARNERS, names.ANNOTATION_LENT_BY}:
            return
        if not any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
            return
        end = iso(self.wall + slot_s) if slot_s else None
        pool = pod.metadata.labels.get(names.LABEL_POOL)
        self._note(username=username, timeslot_end=end, lent_by=pool)
        labels = {key: value for key, value in pod.metadata.labels.items() if key != names.LABEL_POOL}
        assert self.pod is not None
        self._change_metadata(self.pod, labels=labels)

    def renew(self) -> None:
        """Store new content of the definition."""
        self.newest = hashlib.sha256(self.newest.encode()).hexdigest()

    def change_timeslot(self, slot_s: int) -> None:
        """Prolong or shorten the learner's time."""
        if not self.leaving and names.ANNOTATION_USERNAME in self.notes and slot_s:
            self._note(timeslot_end=iso(self.wall + slot_s))

    def edit_username(self, username: str | None) -> None:
        """Write or remove the username as every user may who may patch Pods, where no policy forbids it."""
        if self.pod is not None:
            self._note(username=username)

    def remove_reports(self) -> None:
        """Remove what the provider reports about the learner."""
        if self.pod is not None:
            self._note(learner=None, lds_session_id=None, lds_login_url=None)

    def stop(self) -> None:
        """Ask for a stop."""
        if not self.leaving and not self.wanted:
            self._note(desired_state="STOPPED")

    def start(self) -> None:
        """Take the stop back."""
        if not self.leaving and self.wanted == State.STOPPED:
            self._note(desired_state=None)

    def collect(self) -> None:
        """Ask for the end of the learner's time."""
        if not self.leaving and self.wanted in {"", State.STOPPED}:
            self._note(desired_state="COLLECTING")

    def reset(self) -> None:
        """Ask for the lab to be wiped."""
        if not self.leaving:
            self.resets += 1
            self._note(reset=str(self.resets))
            self.grant()

    def serve(self, username: str) -> None:
        """Let a learner come and log in, if all goes well meanwhile."""
        self.work(15)
        self.assign(username, 0)
        self.work(10)
        if self.lds is not None:
            self.lds.log_in()
            for number in range(len(self.lds.events)):
                self.lds.deliver(number, self.wall, again=True)
        self.work(3)

    def forget(self, username: str) -> None:
        """Let the replica do what it can while no row is written, somebody ask for the lablet, and the replica die."""
        self.work(25, persist=False)
        self.assign(username, 0)
        self.work(3, persist=False)
        self.crash()

    def lose_claims(self) -> None:
        self.lost_once = True
        self.named.clear()
        super().lose_claims()

    def examine(self) -> None:
        """Rebuild lost claims; a session that they do not name is archived by the sweep of strays."""
        before = self.examined
        super().examine()
        if self.examined and not before:
            session = self.claim.session if self.claim is not None else None
            for key, one in (self.lds.sessions if self.lds is not None else {}).items():
                one.archived = one.archived or session is None or key != session.key

    def crash_loop(self) -> None:
        """Let the devices stop whenever they have come up."""
        for _ in range(5):
            self.cml.reboot()
            self.work(2)
            self.now += 400.0
            self.work(8)

    def grant(self) -> None:
        """Note that the lab may be wiped, once."""
        self.granted, self.wiped = True, False

    def is_over(self) -> bool:
        """Whether the learner's time is over."""
        claim = self.claim or self.store.get(self.uid)
        session = claim.session if claim is not None else None
        if self.lds is not None and session is not None and self.lds.inbox.get(session.id, (0, 0))[1]:
            return True
        inputs = inputs_of(self.pod.metadata) if self.pod is not None else None
        end = (inputs.slot_end if inputs else 0) or (session.slot_end if session is not None else 0)
        somebody = bool((claim and claim.bound_to) or (inputs and inputs.username))
        return (somebody and 0 < end <= self.wall) or self.wanted == State.COLLECTING

    # What is known, and what must hold.

    def facts(self) -> Facts:
        lds, facts = self.lds, msgspec.structs.replace(super().facts(), renewal=self.newest)
        if lds is None:
            return facts
        session = facts.claim.session if facts.claim is not None else None
        started, ended = lds.inbox.get(session.id, (0, 0)) if session is not None else (0, 0)
        delivery = Delivery(
            wanted=True,
            deployment="eu-1",
            refusal=Fault(Trouble.NO_LDS_DEPLOYMENT, "all are full") if lds.full else None,
            started_at=started,
            ended_at=ended,
            grader=lds.grader,
            archive_failed=self.memory.archive_failed,
        )
        return msgspec.structs.replace(facts, delivery=delivery)

    def act(self, answer: str = "ok") -> Decision:
        if self.is_over() and not self.granted:
            self.grant()
        return super().act(answer)

    def _report(self, report: Report | None) -> None:
        before = self.pod
        super()._report(report)
        if report is None or before is None:
            return
        claim = self.claim
        if self.lds is None and report.ready and claim is not None and claim.learner and not claim.closing_reason:
            _only(self.seen_by, claim.lab_id, claim.learner)
        if report.ready and claim is not None and not claim.closing_reason and claim.lab_id in self.cml.labs:
            whose = {claim.learner}
            if self.lds is not None and (claim.session is None or not claim.session.ready_at):
                whose.add("")  # a learner is named with the session, and sees nothing before
            shown = self.cml.labs[claim.lab_id].description
            assert shown in {described(AUTHORS, learner) for learner in whose}, f"{shown!r} in CML, not {whose}"
        assert self.pod is not None
        if self.pod.terminal and not before.terminal:
            assert not self._live(), f"a terminal phase while {self._live()} is live"
        if report.ready and self.granted and self.wiped and not self.is_over():
            self.granted = False

    def _live(self) -> list[ModelSession]:
        return self.lds.live if self.lds is not None else []

    def somebody_worked_in(self, lab: ModelLab | None) -> bool:
        if self.lds is None:
            claim = self.claim
            returning = claim is not None and bool(claim.lent_back)  # nobody gets it before it is back
            username = inputs_of(self.pod.metadata).username if self.pod is not None else ""
            free = claim is not None and claim.renews == claim.digest and not username
            return super().somebody_worked_in(lab) and not returning and not free
        return lab is not None and any(self.lds.inbox.get(session.id, (0, 0))[0] for session in self.lds.live)

    def may_destroy(self, step: Step) -> bool:
        return self.granted or (isinstance(step, steps.Stop) and self.wanted == State.STOPPED)

    def nobody_had(self, claim: Claim) -> bool:
        pooled = self.pod is not None and names.LABEL_POOL in self.pod.metadata.labels
        username = inputs_of(self.pod.metadata).username if self.pod is not None else ""
        return bool(pooled or claim.lent_back) and not username and not claim.bound_to

    def check(self) -> None:
        super().check()
        assert len(self._live()) <= 1, f"two live sessions of one lablet: {self._live()}"
        if self.pod is None and self.uid not in self.store and not self.lost:
            assert not self._live(), f"{self._live()} has neither Pod nor row"
        self._check_who_sees_what()

    def _check_who_sees_what(self) -> None:
        """No learner sees what another one did: one learner to a lab between two wipes, one to a session."""
        row = self.store.get(self.uid)
        if row is None:
            return
        if row.session is not None:
            assert row.session.username == row.learner
        for session in self._live():
            assert session.username == row.learner, f"{session} is delivered with the lab of {row.learner!r}"
        lab = self.cml.labs.get(row.lab_id)
        if lab is None or set(lab.states) == {
            observations.DEFINED
        }:  # perhaps never started, so that nothing is to be wiped
            self._is_fresh(row.lab_id)
        elif row.learner and not row.closing_reason:
            _only(self.named, row.lab_id, row.learner)
            if self._live():
                _only(self.seen_by, row.lab_id, row.learner)

    def _is_fresh(self, lab_id: str) -> None:
        for learners in (self.seen_by, self.named):
            learners.pop(lab_id, None)

    # Steps.

    def _execute(self, step: Step, facts: Facts, answer: str) -> Outcome:
        claim = facts.claim
        match step:
            case steps.Renew():
                assert claim is not None
                assert claim.lab_id not in self.cml.labs, "new content while the old lab is there"
                return outcomes.Claimed(msgspec.structs.replace(claim, digest=self.newest, lab_id="", resetting=False))
            case steps.Reschedule():
                return self._reschedule(step, answer)
            case steps.Provision() | steps.ArchiveSession() | steps.Grade():
                assert claim is not None
                return self._call_lds(step, claim, answer)
            case steps.Collect():
                assert claim is not None
                assert not facts.silent, "a silent worker is called"
                if answer in {"failed", "lost"}:
                    raise Unavailable("503", status=503)
                if claim.lab_id in self.cml.labs:
                    self.extract(self.cml.labs[claim.lab_id])
                return Archived(self._keep(claim), {})
            case steps.ClearLearner() | steps.ReturnToPool() | steps.RestoreUsername():
                assert claim is not None
                if answer == "failed":
                    raise Unavailable("503", status=503)
                self._change_pod(step, claim)
                return Done()
            case steps.Release() | steps.ConfirmDeletion():
                assert not self._live(), f"{step} while {self._live()} is live"
                return super()._execute(step, facts, answer)
            case steps.Wipe():
                outcome = super()._execute(step, facts, answer)
                self.wiped = True
                for lab in self.ours:
                    if set(lab.states) == {observations.DEFINED}:
                        lab.shown_ready = False
                        self._is_fresh(lab.id)
                return outcome
            case _:
                return super()._execute(step, facts, answer)

    def _keep(self, claim: Claim) -> Leftovers:
        left = leftovers.of_claim(claim, {}, {}, at=self.wall, username=claim.bound_to)
        graded = left.grade
        assert graded is None or graded.message == f"the work of {left.username}", "a grade of another learner"
        self.kept[left.username, left.session_id] = graded
        return left

    def _call_lds(self, step: Step, claim: Claim, answer: str) -> Outcome:
        lds = self.lds
        assert lds is not None
        if isinstance(step, steps.Grade):
            assert lds.grader
            if answer == "failed":
                raise Unavailable("503", status=503)
            verdict = Verdict(passed=True, message=f"the work of {claim.bound_to}")
            self._keep(claim.graded(verdict))
            if answer == "lost":  # it is stored before the claim knows of it
                raise Unavailable("503", status=503)
            return outcomes.Graded(verdict)
        session = claim.session
        assert session is not None
        if isinstance(step, steps.Provision):
            saved = self.store.get(self.uid)
            assert saved is not None, "a session is made for a lablet without a claim"
            assert saved.session is not None, "a session is made that no claim names"
            assert saved.session.key == session.key
        if lds.down:
            raise Unsent("no connection")
        if answer == "failed":
            raise Unavailable("503", status=503)
        if isinstance(step, steps.Provision):
            known = lds.sessions.get(session.key)
            assert self.lost_once or known is None or not known.archived, "a session is made again that was archived"
            made = lds.create(session.key, session.username)
            assert made.username == session.username, f"the session of {made.username} is shown to {session.username}"
            if answer == "lost":
                raise DeadlineExceeded("no answer")
            made.devices, made.slot_end = True, session.slot_end
            return outcomes.Provisioned(msgspec.structs.replace(session, id=made.id, ready_at=self.wall))
        if session.key in lds.sessions:  # archiving what is unknown is success
            lds.sessions[session.key].archived = True
        if answer == "lost":
            raise DeadlineExceeded("no answer")
        return outcomes.SessionArchived()

    def _reschedule(self, step: steps.Reschedule, answer: str) -> Outcome:
        assert self.lds is not None
        session = self.lds.sessions[step.session.key]
        assert not session.archived, "an archived session is prolonged"
        if self.lds.down or answer in {"failed", "lost"}:
            return outcomes.Rescheduled(Fault(Happened.TIMESLOT_NOT_CHANGED, "no answer"), final=False)
        session.slot_end = step.slot_end
        return outcomes.Rescheduled()

    def _change_pod(self, step: Step, claim: Claim) -> None:
        assert self.pod is not None
        if isinstance(step, steps.RestoreUsername):
            assert step.username == claim.learner
            self._note(username=step.username)
            return
        if isinstance(step, steps.ClearLearner):
            assert self.granted, f"{self.notes} is taken off a Pod whose time is not over"
            assert not self._live(), "a learner is taken off whose session is live"
            if self.lds is not None and self.lds.grader and claim.learner and claim.verdict is not None:
                mine = (claim.learner, claim.session.id if claim.session is not None else "")
                assert self.kept.get(mine) == claim.verdict, "a learner is taken off whose grade is not stored"
            self._note(username=None, timeslot_start=None, timeslot_end=None, desired_state=None)
            self.remove_reports()
            return
        assert not inputs_of(self.pod.metadata).username, "a learner's Pod goes back to the pool"
        assert (claim.lent_back or self.notes[names.ANNOTATION_LENT_BY]) == POOL
        self._note(lent_by=None)
        self._change_metadata(self.pod, labels={**self.pod.metadata.labels, names.LABEL_POOL: claim.lent_back})

    # The end.

    def settle_and_end(self) -> None:
        lds = self.lds
        if lds is not None:
            lds.down = lds.full = False
        self.informer_misses_pod = False
        self.cml.heal()
        self.settle()
        self.now += 11.0  # a username that was put back a moment ago is put back again, the LDS asked again
        self.settle()
        self.check()
        ready = self.last is not None and self.last.report is not None and self.last.report.ready
        username = inputs_of(self.pod.metadata).username if self.pod is not None else ""
        if lds is not None and not self.leaving and ready:
            assert [session.username for session in lds.live] == ([username] if username else [])
            asked = inputs_of(self.pod.metadata).slot_end if self.pod is not None else 0
            assert all(asked in {0, session.slot_end} or asked <= self.wall for session in lds.live)
        if not self.leaving and ready and self.claim is not None:
            assert self.claim.learner == username, f"{username!r} is shown in the lab of {self.claim.learner!r}"
        if not self.leaving and ready and not username:
            assert names.ANNOTATION_LENT_BY not in self.notes, "a warm lablet was not given back to its pool"
        super().settle_and_end()
        assert not self._live(), "a session is left"


def _only(learners: dict[str, set[str]], lab_id: str, learner: str) -> None:
    """Record a learner of a lab, who must be the only one."""
    of_lab = learners.setdefault(lab_id, set())
    of_lab.add(learner)
    assert len(of_lab) == 1, f"lab {lab_id} was seen by {of_lab}"
