"""A reason with its message, in the three forms in which it reaches a user."""

from typing import Literal

import msgspec

from vkprovider.platform.reasons import NO_REASON, Reason


class Fault(msgspec.Struct, frozen=True, gc=False):
    """Why something cannot be done, or not yet: a value, where an error would be raised elsewhere.

    Attributes:
        reason: Fit for a condition or a waiting state.
        message: What is wrong, where, and what to do about it.
    """

    reason: Reason
    message: str

    def __str__(self) -> str:
        """Return reason and message as one text."""
        return f"{self.reason}: {self.message}"


class Condition(msgspec.Struct, frozen=True, gc=False):
    """A condition without its times, so that two of them can be compared.

    Attributes:
        type: `Ready`, for instance.
        status: `True`, `False` or `Unknown`.
        reason: May be `NO_REASON` in a condition of a Pod.
        message: For people.
    """

    type: str
    status: str
    reason: Reason = NO_REASON
    message: str = ""

    @property
    def fault(self) -> Fault:
        """Its reason and message."""
        return Fault(self.reason, self.message)


class Notice(msgspec.Struct, frozen=True, gc=False):
    """An Event to be emitted.

    Attributes:
        type: `Normal` or `Warning`.
        reason: Kubernetes shows it as the Event's.
        message: For people; Kubernetes calls it the note.
    """

    type: Literal["Normal", "Warning"]
    reason: Reason
    message: str
