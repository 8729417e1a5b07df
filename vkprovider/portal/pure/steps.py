"""The steps of a user lab, each of which may be repeated, or go on where another replica ended."""

from typing import NamedTuple

from vkprovider.portal.pure.reasons import UserLabReason


class Look(NamedTuple):
    """Ask the API server itself before something is decided from the absence of an object, or is final.

    The answer is the lab as it is now: its Pod, whether the user has another lab, and whether the Secret of its
    request was written.
    """


class Make(NamedTuple):
    """Make what is still missing of the lab, the Pod last.

    Attributes:
        end_at: When the user's time ends, in Unix seconds; None for a warm lab.
    """

    end_at: int | None


class Assign(NamedTuple):
    """Make what is still missing of the lab, and give its warm Pod to the user.

    Attributes:
        end_at: When the user's time ends, in Unix seconds.
    """

    end_at: int


class DeletePod(NamedTuple):
    """Delete the Pod.

    Attributes:
        uid: Of the Pod, a precondition.
    """

    uid: str


class Free(NamedTuple):
    """Take the finalizers of others from a Pod that has been deleted and has no lab any more.

    Attributes:
        uid: Of the Pod, a precondition.
    """

    uid: str


class DeleteNamespace(NamedTuple):
    """Delete the Namespace with all that is in it, if it is still as the record says."""


class Complete(NamedTuple):
    """Record that the lab was made, if the record is still as it was read."""


class Fail(NamedTuple):
    """Record that the operation under way, or a lab that was made, has failed, if the record is still as it was read.

    Attributes:
        reason: Why.
        text: The same for people.
    """

    reason: UserLabReason
    text: str


class End(NamedTuple):
    """Begin to delete the lab, as if somebody had asked for that, if the record is still as it was read.

    Attributes:
        reason: Why.
    """

    reason: UserLabReason


LabStep = Look | Make | Assign | DeletePod | Free | DeleteNamespace | Complete | Fail | End


class LabPlan(NamedTuple):
    """What is to be done for a user lab.

    Attributes:
        step: The next step; None to wait.
        wake_at: When to decide again even if nothing changes, in Unix seconds; None if a change brings that.
    """

    step: LabStep | None = None
    wake_at: float | None = None
