"""One row of a worker's claims: a lablet that has, or may have, a lab there.

A claim changes by its verbs alone; each returns the changed claim. Times are Unix seconds.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.archives import Verdict
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.messages import Fault
from vkprovider.platform.ports.allocator import HeldPort, held
from vkprovider.platform.reasons import NO_REASON, Reason

_replace = msgspec.structs.replace
_SET_BACK_S: Final = 10
"""A worker's clock that is set back by more is believed; two notes in one second are not the same."""


class Wish(StrEnum):
    """What becomes of a device that is stopped, wiped or started on request."""

    OFF = "off"
    """It is stopped, and stays so."""
    RESTART = "restart"
    """It is stopped, then started."""
    WIPE = "wipe"
    """It is stopped and wiped, then started."""
    CLEAR = "clear"
    """It is stopped and wiped, and stays so."""
    START = "start"
    """It is started."""
    BOOT = "boot"
    """It was told to start, and boots."""


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One lablet's claim.

    Attributes:
        lab_id: The lab, once it is known; only for a claim without one is the lab searched by mark and title.
        asked_at: The worker's time that was noted before the import of the lab (Unix seconds), which the lab's notes
            name too; 0 in rows of older versions, in rebuilt ones, and if the worker does not say what time it is.
        first_asked_at: That of the first of several imports that were asked for until one was answered; 0 if the last
            was the only one.
        started_at: When the lab was started (Unix seconds), 0 before.
        ready_at: When it last converged (Unix seconds), 0 if never: a learner may have worked in it since.
        restarts: How often the lab failed, and was wiped or imported again and started: what counts as restarts of the
            Pod. Rows of older versions count every start again here.
        uncounted: Starts again that are no failures: without a wipe, on request, or with new content.
        afresh: How many of all starts again were of the whole lab, wiped or imported again.
        device_restarts: How often a device was started again by itself, by label; only devices that were.
        recoveries: Starts without a wipe since it was last stable.
        resetting: The lab is being stopped and wiped, to be started again.
        renews: The digest of the content whose lab is being replaced by one of new content, until that is ready.
        outcome: The terminal phase that is written when the lab is gone: `Succeeded` or `Failed`.
        last_reason, last_message, last_at: Why and when it last stopped being ready.
        last_started_at: Since when it had been running (Unix seconds).
        last_devices: Labels of the devices that stopped; empty if all of them did.
        ports: The outside port of each slot; held on this worker as long as the row exists.
        udp: Names of the slots whose port is a UDP port; those of all others are TCP ports.
        learner: Whose lablet it is, from the import of its lab until the lab is wiped for the next one; "" while warm.
        noted: What the lab's notes say of learner and session, in the words of `binding`.
        session: The learner's session, from right before its creation until the lablet is warm again.
        sessions: How many there have been.
        closing_reason: Why the learner's work is being collected; `NO_REASON` while the learner's time is not over.
        collected_at: When it was collected (Unix seconds).
        verdict: The grader's verdict.
        stopped_at: Since when the lab is stopped on request (Unix seconds).
        reset: The last reset request that was carried out.
        device_requests: What was asked of single devices and is taken up in `wishes`, by label, as the Pod has it.
        wishes: The devices that are stopped, wiped or started on request, by label; nobody judges the lab by them.
        lent_by: The pool to which the lablet returns when the learner's time is over.
        lent_back: The pool whose label is set on the Pod again once it is ready.
        exposed: The mux to which it lends its ports, from right before that until that is withdrawn; "" else.
        rest_until: Until when its ports are not for another learner, because they were lent to a mux (Unix seconds).
        later: When a device began to boot that CML had queued, or started in a later stage (Unix seconds), by label; 0
            while it waits. Of all others `started_at` counts.
        begin_from: The id of the saved work whose configurations the lab is imported with; "" for none.
        reimports: A wipe would not give the devices what they are to begin with: the lab was imported with other
            configurations, or CML has extracted some since, with which it starts a wiped device. The next wipe ends in
            a new import.
        ports_fault: Why the ports of a lab that was found after its claim was lost cannot be used; None if they can.
    """

    pod_uid: str = msgspec.field(name="podUID")
    namespace: str
    pod: str
    definition: str
    definition_uid: str = msgspec.field(name="definitionUID")
    version: str
    digest: str
    lab_id: str = ""
    asked_at: int = msgspec.field(name="asked", default=0)
    first_asked_at: int = msgspec.field(name="firstAsked", default=0)
    started_at: int = msgspec.field(name="started", default=0)
    ready_at: int = 0
    restarts: int = 0
    recoveries: int = 0
    resetting: bool = False
    outcome: str = ""
    outcome_reason: Reason = NO_REASON
    outcome_message: str = ""
    last_reason: Reason = NO_REASON
    last_message: str = ""
    last_at: int = 0
    uncounted: int = 0
    afresh: int = 0
    device_restarts: dict[str, int] = {}
    last_started_at: int = msgspec.field(name="lastStarted", default=0)
    last_devices: tuple[str, ...] = ()
    ports: dict[str, int] = {}
    udp: tuple[str, ...] = ()
    learner: str = ""
    noted: str = ""
    session: Session | None = None
    sessions: int = 0
    closing_reason: Reason = msgspec.field(name="closing", default=NO_REASON)
    collected_at: int = msgspec.field(name="collected", default=0)
    verdict: Verdict | None = None
    stopped_at: int = msgspec.field(name="stopped", default=0)
    reset: str = ""
    device_requests: dict[str, str] = {}
    wishes: dict[str, Wish] = {}
    lent_by: str = ""
    lent_back: str = ""
    ports_fault: Fault | None = None
    renews: str = ""
    exposed: str = ""
    rest_until: int = 0
    later: dict[str, int] = {}
    begin_from: str = ""
    reimports: bool = False

    @property
    def starts_again(self) -> int:
        """How often the lab, or a part of it, was started again, for whatever reason."""
        return self.restarts + self.uncounted

    def starts_again_of(self, label: str | None) -> int:
        """Return how often a device was started again; None is the lab."""
        return self.starts_again if label is None else self.afresh + self.device_restarts.get(label, 0)

    def ended_with(self, label: str | None) -> bool:
        """Return whether a device was among those that stopped last; None is the lab."""
        return bool(self.last_reason) and (label is None or not self.last_devices or label in self.last_devices)

    @property
    def bound_to(self) -> str:
        """The learner whose lablet it is; rows without one are older than the field and name only the session's."""
        return self.learner or (self.session.username if self.session is not None else "")

    @property
    def binding(self) -> str:
        """Learner and session as the lab's notes name them; "" while warm."""
        if self.session is None:
            return self.learner
        return f"{self.learner} {self.session.key} {self.session.deployment}"

    @property
    def held(self) -> list[HeldPort]:
        """Its ports with their protocols."""
        return held(self.ports, self.udp) if self.ports else []

    def same_ports(self, other: "Claim") -> bool:
        """Return whether both hold the same ports for the same slots."""
        return self.ports is other.ports or (self.ports == other.ports and set(self.udp) == set(other.udp))

    @property
    def title(self) -> str:
        """The lab's title."""
        return names.lab_title(self.definition, self.definition_uid, self.pod_uid)

    # ----------------------------------------------------------------------------------------- lab and ports

    def asking(self, at: int) -> "Claim":
        """Note the worker's time before an import; each import has a note of its own."""
        return _replace(self, asked_at=self._asked_after(at), first_asked_at=self.first_asked_at or self.asked_at)

    def with_lab(self, lab_id: str, *, asked_at: int, learner: str, noted: str) -> "Claim":
        """Name its lab, that was imported or found, and what the lab's notes say."""
        return _replace(self, lab_id=lab_id, asked_at=asked_at, learner=learner, noted=noted)

    def with_lab_of(self, other: "Claim") -> "Claim":
        """Name the lab of another version of this claim, with the ports that the lab has."""
        found = self.with_lab(other.lab_id, asked_at=other.asked_at, learner=other.learner, noted=other.noted)
        return found.with_ports(other.ports, other.udp, other.ports_fault)

    def without_lab(self) -> "Claim":
        """Name no lab: it was taken down at the end of the lablet, whose times are still shown."""
        return _replace(self, lab_id="", asked_at=0, first_asked_at=0)

    def lost_lab(self, at: int) -> "Claim":
        """Name no lab: another client deleted it, or a wipe could not give it its devices back. One is imported.

        The worker's time is noted with that, so that no copy of the old lab can be taken for the new one.
        """
        return _replace(
            self,
            lab_id="",
            asked_at=self._asked_after(at),
            first_asked_at=0,
            started_at=0,
            resetting=False,
            reimports=False,
            later={},
            wishes={},
        )

    def _asked_after(self, at: int) -> int:
        """Return a note that is not the last one: a second later, unless the worker's clock was set back by more."""
        if at and not 0 <= self.asked_at - at <= _SET_BACK_S:
            return at
        return self.asked_at + 1 if self.asked_at else 0

    def with_ports(self, ports: dict[str, int], udp: tuple[str, ...], fault: Fault | None = None) -> "Claim":
        """Hold these ports; `fault` says why they cannot be used."""
        return _replace(self, ports=ports, udp=udp, ports_fault=fault)

    def exposing(self, mux: str) -> "Claim":
        """Record the mux to which its ports are about to be lent."""
        return _replace(self, exposed=mux)

    def withdrawn(self, rest_until: int) -> "Claim":
        """Record that its ports are lent to no mux any more, and until when they rest."""
        return _replace(self, exposed="", rest_until=rest_until)

    def with_notes(self, noted: str) -> "Claim":
        """Record what the lab's notes say now, as in `binding`."""
        return _replace(self, noted=noted)

    # ----------------------------------------------------------------------------------------- starts

    def started(self, now: int) -> "Claim":
        """Record a start."""
        return _replace(self, started_at=now, later={})

    def noting(self, later: dict[str, int]) -> "Claim":
        """Record which devices began later than the lab."""
        return _replace(self, later=later)

    def ready(self, at: int) -> "Claim":
        """Record that it converged; a lab of new content has taken the old one's place."""
        return _replace(self, ready_at=at, renews="", later={})

    def shown_ready(self, now: int) -> "Claim":
        """Recall that it was ready, which its Pod shows and a crash lost."""
        return _replace(self, ready_at=self.started_at or now)

    def stable(self) -> "Claim":
        """Forget earlier starts without a wipe."""
        return _replace(self, recoveries=0)

    def paused(self, now: int) -> "Claim":
        """Record that it is stopped on request; a start after that is no recovery."""
        return _replace(self, stopped_at=now, recoveries=0, wishes={})

    def resumed(self, now: int) -> "Claim":
        """Record that it is started on request."""
        return _replace(self, stopped_at=0, started_at=now, later={})

    def wishing(self, wishes: Mapping[str, Wish], requests: Mapping[str, str] | None = None) -> "Claim":
        """Record what becomes of single devices; with `requests`, that these are taken up in it."""
        taken = self.device_requests if requests is None else dict(requests)
        return _replace(self, wishes=dict(wishes), device_requests=taken)

    def continued(self, labels: tuple[str, ...], message: str, now: int) -> "Claim":
        """Record a start of devices that had stopped, without a wipe; it stays ready, for a learner may have worked."""
        return _replace(
            self,
            recoveries=self.recoveries + 1,
            uncounted=self.uncounted + 1,
            device_restarts=self.device_restarts | {d: self.device_restarts.get(d, 0) + 1 for d in labels},
            started_at=now,
            later={},
            last_reason=Trouble.DEVICE_STOPPED,
            last_message=message,
            last_at=now,
            last_started_at=self.ready_at or self.started_at,
            last_devices=labels,
        )

    def restarted(self, reason: Reason, message: str, now: int) -> "Claim":
        """Begin afresh after a failure: the lab, if there is one, is wiped.

        A lab that was stopped on request and is lost stays stopped: `stopped_at` stands as long as the request.
        """
        return self._afresh(reason, message, now, restarts=self.restarts + 1, resetting=bool(self.lab_id))

    def reset_on(self, request: str, message: str, now: int) -> "Claim":
        """Begin afresh on request: the lab is wiped and, if it was stopped on request, started."""
        counted = self.uncounted + 1
        return self._afresh(
            Happened.RESET,
            message,
            now,
            uncounted=counted,
            reset=request,
            resetting=True,
            reimports=self.reimports or bool(self.lab_id and self.ready_at),  # consoles extract and note nothing
            stopped_at=0,
        )

    def beginning_from(self, id_: str) -> "Claim":
        """Have the lab begin from saved work, or from the topology alone, when it is next wiped."""
        return _replace(self, begin_from=id_, reimports=bool(self.lab_id))

    def extracting(self) -> "Claim":
        """Record that CML is about to extract configurations: it starts a device that is wiped after that with them."""
        return _replace(self, reimports=True)

    def renewing(self, message: str, now: int) -> "Claim":
        """Begin afresh with new content: the lab is deleted, not wiped, so `renews` is set instead of `resetting`."""
        counted = self.uncounted + 1
        return self._afresh(Progress.RENEWING_CONTENT, message, now, uncounted=counted, renews=self.digest)

    def handed_back(self) -> "Claim":
        """Become a warm lablet of the pool that had lent it: nothing of its learner is left, and the lab is wiped.

        That is no failure: no restart is counted, and `last_…` still names the last one. The lab's notes count as those
        of the learner, because a crash may have lost that they were written.
        """
        return self._forgets_that_it_ran(
            learner="",
            noted=self.noted or self.binding,
            session=None,
            closing_reason=NO_REASON,
            collected_at=0,
            verdict=None,
            lent_by="",
            lent_back=self.lent_by,
            resetting=bool(self.lab_id),
            begin_from="",
            reimports=self.reimports or bool(self.begin_from),
            stopped_at=0,
        )

    def _afresh(self, reason: Reason, message: str, now: int, **changes: Any) -> "Claim":
        return self._forgets_that_it_ran(
            afresh=self.afresh + 1,
            last_reason=reason,
            last_message=message,
            last_at=now,
            last_started_at=self.ready_at or self.started_at or now,
            last_devices=(),
            **changes,
        )

    def _forgets_that_it_ran(self, **changes: Any) -> "Claim":
        return _replace(self, started_at=0, ready_at=0, recoveries=0, later={}, wishes={}, **changes)

    def wiped(self) -> "Claim":
        """Record that the lab is wiped, and may be started."""
        return _replace(self, resetting=False)

    def renewed(self, fresh: "Claim", at: int) -> "Claim":
        """Take up the content and ports of a new claim; the lab of the old content is gone. `at`: see `lost_lab`."""
        renewed = self.lost_lab(at).with_ports(fresh.ports, fresh.udp)
        return _replace(renewed, version=fresh.version, digest=fresh.digest)

    def keeping_content(self) -> "Claim":
        """Replace no content any more."""
        return _replace(self, renews="", resetting=False)

    # ----------------------------------------------------------------------------------------- its learner

    def of_learner(self, learner: str) -> "Claim":
        """Name the learner whose lablet it is."""
        return _replace(self, learner=learner)

    def requesting(self, session: Session) -> "Claim":
        """Name a session that is about to be made, and its learner."""
        return _replace(self, learner=session.username, session=session, sessions=self.sessions + 1)

    def with_session(self, session: Session | None) -> "Claim":
        """Record what is known of its session now."""
        return _replace(self, session=session)

    def closing(self, reason: Reason, *, lent_by: str) -> "Claim":
        """Record that the learner's time is over; what was asked of the lab before counts no more."""
        return _replace(self, closing_reason=reason, stopped_at=0, resetting=False, lent_by=lent_by)

    def collected(self, now: int) -> "Claim":
        """Record that the learner's work is collected."""
        return _replace(self, collected_at=now)

    def graded(self, verdict: Verdict) -> "Claim":
        """Record the grader's verdict."""
        return _replace(self, verdict=verdict)

    def back_in_pool(self) -> "Claim":
        """Record that the pool's label is set again."""
        return _replace(self, lent_back="")

    def ended(self, phase: str, reason: Reason, message: str) -> "Claim":
        """Record how it ends, before anything is taken down."""
        return _replace(self, outcome=phase, outcome_reason=reason, outcome_message=message, resetting=False)
