"""What can go wrong with a call of the LDS beyond the tree of `vkprovider.api.errors`, and what is known after it."""

from vkprovider.api.errors import Invalid, OutsideError, Throttled, TlsFailed, Unavailable


class Full(Unavailable):
    """The deployment holds as many sessions as it can; nothing was made."""


class Unsent(Unavailable):
    """No connection came about; nothing was sent."""


class Lacking(Invalid):
    """The deployment lacks the extension that the call needs; nothing was sent."""


def may_have_happened(error: OutsideError) -> bool:
    """Tell whether a call that failed may have been carried out all the same.

    A session is created on another deployment only if this is False of the first; else the first is asked again, with
    the same client key, or waited for by its events.
    """
    return isinstance(error, Unavailable) and not isinstance(error, Full | Unsent | Throttled | TlsFailed)
