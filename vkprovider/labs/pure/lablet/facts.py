"""Facts about one lablet, and the form of a decision."""

import math
from typing import Final

import msgspec

from vkprovider.lablet.inputs import NOTHING, Inputs
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import NO_PATIENCE, Boots, StartPatience, under_way
from vkprovider.labs.pure.lablet.devicework import judged
from vkprovider.labs.pure.lablet.exposing import NOT_EXPOSED, Exposing
from vkprovider.labs.pure.lablet.memory import BLANK, Memory, Presence
from vkprovider.labs.pure.lablet.steps import Step
from vkprovider.labs.pure.session.delivery import NO_DELIVERY, Delivery
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.objects import Pod

UNSURE_S: Final = 5.0
"""How soon a replica looks again whether the time is certain."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """Everything that is known of one lablet.

    Attributes:
        pod: As the informer has it; None if it does not exist.
        claim: As it is in memory; None if the lablet has none.
        memory: What this replica remembers.
        claim_saved: Whether the API server has the claim as it is here.
        gone_confirmed: A Pod of this UID certainly does not exist: the API server said so, or its removal was watched.
        unsaved_because: Why the API server does not have the claim; None if it has it, or gets it with the next write.
        unexamined: The claims were lost, and the labs of the worker are not examined yet: one may be this lablet's.
        refusal: Why the Pod may not begin; only while it has no claim.
        presence, devices: The lab, as observed after the last step that changed it.
        observed_at: When that observation was requested.
        silent: Why the worker does not answer; "" if it does.
        worker_time: The worker's own time in Unix seconds, never ahead of it; 0 while it is unknown.
        extracted: The devices' configurations need not be archived before a stop.
        patience: How long its start may take.
        renewal: The digest of the content that this warm lablet is to take up now; "" if it is not its turn.
        inputs: What the Pod's annotations ask for.
        exposing: What is known of its ports and a mux.
        delivery: What is known of the LDS for this lablet.
        now_unix: The API server's clock, for timeslots and for what is written into the claim; all other times are
            monotonic.
        sure: Whether that clock is certain: until it is, nothing ends because its time has passed.
    """

    pod: Pod | None
    claim: Claim | None
    memory: Memory = BLANK
    claim_saved: bool = True
    unsaved_because: Fault | None = None
    gone_confirmed: bool = False
    unexamined: bool = False
    refusal: InputError | None = None
    presence: Presence = Presence.UNKNOWN
    devices: tuple[DeviceFact, ...] = ()
    observed_at: float = math.inf
    silent: str = ""
    worker_time: int = 0
    extracted: bool = False
    patience: StartPatience = NO_PATIENCE
    renewal: str = ""
    inputs: Inputs = NOTHING
    delivery: Delivery = NO_DELIVERY
    exposing: Exposing = NOT_EXPOSED
    now_unix: int = 0
    sure: bool = True

    @property
    def judged(self) -> tuple[DeviceFact, ...]:
        """The devices by which the lab is judged; the others are stopped, wiped or started on request."""
        return judged(self.claim, self.devices)


class Report(msgspec.Struct, frozen=True, gc=False):
    """The content of the Pod's status.

    Attributes:
        waiting: Why the containers wait; None if they run.
        phase: The phase to move to, if it may; a phase never goes back.
        silent: The worker does not answer: containers stay as they were reported, Ready turns False.
        terminal: Why the phase is final; None if it is not.
        counts: Nothing runs, and the Pod is Ready all the same, without an address: its DaemonSet must not wait for it.
    """

    state: State
    phase: str = "Pending"
    waiting: Fault | None = None
    devices: tuple[DeviceFact, ...] = ()
    silent: str = ""
    terminal: Fault | None = None
    counts: bool = False

    @property
    def ready(self) -> bool:
        """Whether the Pod is Ready."""
        return self.phase == "Running" and self.waiting is None and not self.silent and self.terminal is None


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One step, what to report meanwhile, and when to ask again at the latest.

    Attributes:
        report: None leaves the status as it is (too little is known to change it).
        claim: The claim as it should be, where it changes.
        retry_at: The earliest time of the next start, where it changes.
        forgets_starts: Earlier starts and stops no longer count: a start that follows has all its time.
        events: To be emitted on the Pod.
        observe: The next observation of the worker is awaited.
        awaits_access: The session waits for a mux.
        awaits_claim: It may be another one once the API server has the claim; whoever stores that asks again.
        announces_end: The end of the learner's timeslot that an Event of this decision announces (Unix seconds).
    """

    step: Step
    report: Report | None = None
    claim: Claim | None = None
    after_s: float | None = None
    retry_at: float | None = None
    forgets_starts: bool = False
    observe: bool = False
    events: tuple[Notice, ...] = ()
    awaits_access: bool = False
    awaits_claim: bool = False
    announces_end: int = 0

    def no_later_than(self, after_s: float | None) -> "Decision":
        """Return the decision, asked for again after `after_s` at the latest; None sets no limit."""
        if after_s is None or (self.after_s is not None and self.after_s <= after_s):
            return self
        return msgspec.structs.replace(self, after_s=after_s)

    def awaiting_claim(self) -> "Decision":
        """Return the decision, asked for again when the claim is stored."""
        return msgspec.structs.replace(self, awaits_claim=True)


def boots_of(facts: Facts, now: float) -> Boots | None:
    """Return which devices are on their way; what is remembered of it while the lab cannot be seen."""
    memory = facts.memory
    if facts.silent or facts.presence is Presence.UNKNOWN:
        return memory.boots
    return under_way(
        memory.boots,
        facts.claim,
        facts.judged,
        starting_since=memory.starting_since,
        now=now,
        now_unix=facts.now_unix,
    )


def phase_of(facts: Facts) -> str:
    """Return the Pod's phase."""
    return facts.pod.status.phase if facts.pod is not None else "Pending"
