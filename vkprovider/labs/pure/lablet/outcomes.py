"""What a step yields: an outcome if it went well, a failure if not; and where and when that was."""

from collections.abc import Mapping

import msgspec

from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.lablet.observations import DeviceFact
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.objects import Pod
from vkprovider.platform.reasons import NO_REASON, Reason


class Done(msgspec.Struct, frozen=True, gc=False):
    """The step is done, and there is nothing to add."""


class Abandoned(msgspec.Struct, frozen=True, gc=False):
    """The step was cancelled, because its worker fell silent."""


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """The new claim."""

    claim: Claim


class Acted(msgspec.Struct, frozen=True, gc=False):
    """The worker carried the step out.

    Attributes:
        lab_id: The lab that was imported; "" if the claim names it.
        gone: The worker said that there is no such lab.
        devices: As the step left them; None until they are observed.
        notices: Events about what was left out.
        warnings: The worker's, about the topology that it imported.
    """

    lab_id: str = ""
    gone: bool = False
    devices: tuple[DeviceFact, ...] | None = None
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()


class Adopted(msgspec.Struct, frozen=True, gc=False):
    """A search has found the claim's lab.

    Attributes:
        claim: With the lab, the ports that it really has, and the learner whom its notes name.
        devices: None until they are observed.
    """

    claim: Claim
    devices: tuple[DeviceFact, ...] | None = None


class Unsure(msgspec.Struct, frozen=True, gc=False):
    """A search has found labs, and cannot tell which is the claim's, or whether the only one is.

    Attributes:
        labs: Each with title, id and the time of its creation.
    """

    labs: tuple[str, ...]


class Archived(msgspec.Struct, frozen=True):
    """The devices' configurations, and the answers if they were collected, are in the archive.

    Attributes:
        errors: By label, of the devices whose configuration exists and could not be read.
    """

    leftovers: Leftovers
    errors: Mapping[str, OutsideError]


class Provisioned(msgspec.Struct, frozen=True, gc=False):
    """The session is made and has its devices."""

    session: Session


class Rescheduled(msgspec.Struct, frozen=True, gc=False):
    """The LDS was asked for another end of the session.

    Attributes:
        fault: Why the LDS keeps the end that it has; None if it has the new one.
        final: Whether asking again cannot help.
    """

    fault: Fault | None = None
    final: bool = True


class SessionArchived(msgspec.Struct, frozen=True, gc=False):
    """The session is archived, or cannot be.

    Attributes:
        problem: Why it cannot be archived at all; "" if it is.
    """

    problem: str = ""


class Graded(msgspec.Struct, frozen=True, gc=False):
    """The grader's verdict."""

    verdict: Verdict


Outcome = (
    Done
    | Abandoned
    | Claimed
    | Acted
    | Adopted
    | Unsure
    | Archived
    | Provisioned
    | Rescheduled
    | SessionArchived
    | Graded
)


class Circumstances(msgspec.Struct, frozen=True, gc=False):
    """Where and when an outcome is recorded.

    Attributes:
        worker: The worker's name.
        pod: As the informer has it.
        now: Monotonic seconds.
        now_unix: Unix seconds.
    """

    worker: str
    pod: Pod | None
    now: float
    now_unix: int


class Failure(msgspec.Struct, frozen=True):
    """A step that failed.

    Attributes:
        fault: Reason and message for the Pod.
        pause_s: How long the step is not tried again.
        event: The reason of the Event, where it is another one than the fault's.
        error: The error of the system that the step is about; None if the fault is an input's or another system's.
        not_done: The system certainly did not carry the step out.
    """

    fault: Fault
    pause_s: float
    error: OutsideError | None = None
    not_done: bool = False
    event: Reason = NO_REASON
