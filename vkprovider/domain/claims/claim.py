"""One row of a worker's claims: a lablet that has, or may have, a lab there."""

import msgspec

from vkprovider.api import names
from vkprovider.api.messages import Fault
from vkprovider.domain.ports.allocator import Held, held
from vkprovider.domain.session.delivery import Session, Verdict


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One lablet's claim.

    Attributes:
        lab_id: The lab, once it is known; only for a claim without one is the lab searched by mark and title.
        started_at: When the lab was started (Unix seconds), 0 before.
        ready_at: When it last converged (Unix seconds), 0 if never: a learner may have worked in it since.
        restarts: How often the lab, or a part of it, was started again.
        afresh: How many of these starts were of the whole lab, wiped or imported again.
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
        closing_reason: Why the learner's work is being collected; "" while the learner's time is not over.
        collected_at: When it was collected (Unix seconds).
        verdict: The grader's verdict.
        stopped_at: Since when the lab is stopped on request (Unix seconds).
        reset: The last reset request that was carried out.
        lent_by: The pool to which the lablet returns when the learner's time is over.
        lent_back: The pool whose label is set on the Pod again once it is ready.
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
    started_at: int = msgspec.field(name="started", default=0)
    ready_at: int = 0
    restarts: int = 0
    recoveries: int = 0
    resetting: bool = False
    outcome: str = ""
    outcome_reason: str = ""
    outcome_message: str = ""
    last_reason: str = ""
    last_message: str = ""
    last_at: int = 0
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
    closing_reason: str = msgspec.field(name="closing", default="")
    collected_at: int = msgspec.field(name="collected", default=0)
    verdict: Verdict | None = None
    stopped_at: int = msgspec.field(name="stopped", default=0)
    reset: str = ""
    lent_by: str = ""
    lent_back: str = ""
    ports_fault: Fault | None = None
    renews: str = ""

    def restarts_of(self, label: str | None) -> int:
        """Return how often a device was started again; None is the lab."""
        return self.restarts if label is None else self.afresh + self.device_restarts.get(label, 0)

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
    def held(self) -> list[Held]:
        """Its ports with their protocols."""
        return held(self.ports, self.udp) if self.ports else []

    def same_ports(self, other: "Claim") -> bool:
        """Return whether both hold the same ports for the same slots."""
        return self.ports is other.ports or (self.ports == other.ports and set(self.udp) == set(other.udp))

    @property
    def title(self) -> str:
        """The lab's title."""
        return names.lab_title(self.definition, self.definition_uid, self.pod_uid)
