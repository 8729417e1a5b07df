"""Facts about one lablet, and decisions: the vocabulary of `lablet`, `running` and `ending`."""

import math
from enum import Enum, auto

import msgspec

from vkprovider.api.errors import InputError
from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.inputs import NOTHING, Inputs
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.session.delivery import NO_DELIVERY, Delivery


class Step(Enum):
    """What to do next; each is safe to repeat."""

    NONE = auto()
    CLAIM = auto()  # write the lablet's row
    SAVE = auto()  # write the changed row, then go on
    SEARCH = auto()  # look for a lab of ours by mark and title
    IMPORT = auto()
    START = auto()
    STOP = auto()
    WIPE = auto()
    DELETE_LAB = auto()
    CONFIRM_GONE = auto()  # ask the API server itself whether the Pod is gone
    PROVISION = auto()  # make the learner's session and set its devices
    EXTRACT = auto()  # keep the devices' configurations
    COLLECT = auto()  # keep them and the learner's responses
    GRADE = auto()
    ARCHIVE = auto()  # archive the session
    CLEAR_LEARNER = auto()  # take the learner off the Pod
    RETURN_TO_POOL = auto()  # give the Pod its pool's label again
    DELETE_POD = auto()  # confirm the deletion, as a kubelet does
    RELEASE = auto()  # drop the row: the lab is known to be absent
    FORGET = auto()


class Presence(Enum):
    """Whether the lab is on the worker. Not having been able to look is UNKNOWN, never ABSENT."""

    UNKNOWN = auto()
    ABSENT = auto()
    PRESENT = auto()


class Limits(msgspec.Struct, frozen=True):
    """Settings that decisions depend on.

    Attributes:
        start_timeout_s: From start to convergence, queueing included.
        recoveries_max: Starts without a wipe before somebody has to look.
        stable_s: How long a lab is ready before its recoveries are forgotten.
        retry_first_s, retry_cap_s: The back-off between starts.
        stopped_max_s: How long a lab stays stopped on request.
        slot_s: How long a learner's timeslot is where nobody says.
        extract_on_stop: Configurations are extracted before a lab is stopped.
    """

    start_timeout_s: float = 300.0
    recoveries_max: int = 3
    stable_s: float = 600.0
    retry_first_s: float = 10.0
    retry_cap_s: float = 300.0
    stopped_max_s: float = 24 * 3600.0
    slot_s: float = 24 * 3600.0
    extract_on_stop: bool = True


class Facts(msgspec.Struct, frozen=True, gc=False):
    """Everything that is known of one lablet.

    Attributes:
        pod: As the API server has it; None if it is not there.
        gone_confirmed: The API server itself said that a Pod of this UID is not there.
        refusal: Why the Pod asks for nothing we can run; only while it has no claim.
        claim: Its row, and whether the API server has it as it is here.
        searched: No lab of ours is on the worker without being named in a row: the row is fresh, or somebody looked.
        presence, devices: The lab, as observed after the last step that changed it.
        observed_at: When the worker was asked for them.
        silent: Why the worker does not answer, if it does not.
        starting_since: When this start began, 0 if the lab is not being started.
        retry_at: Not before then is the lab started (again).
        ready_since: Since when it is ready, 0 if it is not.
        deadline_at: When the Pod's activeDeadlineSeconds end, 0 if it has none.
        start_sent_at: When the lab was last told to start, 0 if it was not.
        stop_sent_at: When the lab was last told to stop, 0 if it was not.
        delete_sent: The deletion of the Pod was confirmed; what is left of it is held by finalizers.
        extracted: Nothing is left to be extracted from the devices before they are stopped.
        inputs: What is asked of it.
        delivery: What is known of the LDS for it.
        now_unix: The wall clock, for what is written into the row and for timeslots; all other times are `now`'s clock.
    """

    pod: Pod | None
    claim: Claim | None
    claim_saved: bool = True
    gone_confirmed: bool = False
    refusal: InputError | None = None
    searched: bool = False
    presence: Presence = Presence.UNKNOWN
    devices: tuple[DeviceFact, ...] = ()
    observed_at: float = math.inf
    silent: str = ""
    starting_since: float = 0.0
    retry_at: float = 0.0
    ready_since: float = 0.0
    deadline_at: float = 0.0
    delete_sent: bool = False
    start_sent_at: float = 0.0
    stop_sent_at: float = 0.0
    extracted: bool = False
    inputs: Inputs = NOTHING
    delivery: Delivery = NO_DELIVERY
    now_unix: int = 0


class Report(msgspec.Struct, frozen=True, gc=False):
    """What the Pod's status should say.

    Attributes:
        waiting: Reason and message of the containers that wait; None if they run.
        phase: The phase to move to, if it may; a phase never goes back.
        silent: The worker does not answer: containers stay as they were reported, Ready turns False.
        terminal: Reason and message of a final phase.
    """

    state: State
    phase: str = "Pending"
    waiting: tuple[str, str] | None = None
    devices: tuple[DeviceFact, ...] = ()
    silent: str = ""
    terminal: tuple[str, str] | None = None

    @property
    def ready(self) -> bool:
        """Whether the Pod is Ready."""
        return self.phase == "Running" and self.waiting is None and not self.silent and self.terminal is None


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One step, what to report meanwhile, and when to ask again at the latest.

    Attributes:
        report: None leaves the status as it is (too little is known to change it).
        claim: The row as it should be, where it changes.
        retry_at: The earliest time of the next start, where it changes.
        anew: What the lab was told before does not count any more: a start that follows has all its time.
        events: Type, reason and note of what somebody should read.
        observe: The next observation of the worker is awaited.
    """

    step: Step
    report: Report | None = None
    claim: Claim | None = None
    after_s: float | None = None
    retry_at: float | None = None
    anew: bool = False
    observe: bool = False
    events: tuple[tuple[str, str, str], ...] = ()


def phase_of(facts: Facts) -> str:
    """Tell the phase that the Pod has."""
    return facts.pod.status.phase if facts.pod is not None else "Pending"
