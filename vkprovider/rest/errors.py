"""What is known after a call that failed, beyond the tree of `vkprovider.platform.errors`."""

from vkprovider.platform.errors import OutsideError, Throttled, Unavailable


class NotDone(Unavailable):
    """The call failed without any effect."""


class Unsent(NotDone):
    """No connection came about; nothing was sent."""


def may_have_happened(error: OutsideError) -> bool:
    """Return whether a call that failed may have been carried out all the same.

    A session is created on another deployment only if this is False of the first; otherwise the first is asked again
    with the same client key, or its events are awaited.
    """
    return isinstance(error, Unavailable) and not isinstance(error, NotDone | Throttled)
