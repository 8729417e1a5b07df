"""How often somebody may fail to log in: tokens cannot be guessed, but each try costs the API server a review."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from vkprovider.kube.pace import TokenBucket
from vkprovider.serving.answers import TooManyReviews

_PER_S: Final = 0.5
_BURST: Final = 20.0
_SENDERS_MAX: Final = 2000


class Failures:
    """Counts logins that fail, for each address that they come from."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._pace: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, sender: str) -> None:
        """Refuse a login of a sender of whom too many have failed.

        Raises:
            Refused: 429.
        """
        pace = self._pace.get(sender)
        if pace is None:
            return
        wait_s = pace.reserve()
        pace.cancel()
        if wait_s > 0:
            raise TooManyReviews("too many logins from your address have failed; try again in a few seconds")

    def count(self, sender: str) -> None:
        """Note that a login of a sender has failed."""
        pace = self._pace.setdefault(sender, TokenBucket(_PER_S, _BURST))
        self._pace.move_to_end(sender)
        if len(self._pace) > _SENDERS_MAX:
            self._pace.popitem(last=False)
        if pace.reserve() > 0:
            pace.cancel()


def sender_of(headers: Mapping[str, str], peer: str) -> str:
    """Return the address from which a request comes: what the nearest proxy has noted, or the peer itself.

    Without a proxy a sender may write there what it likes; then only the limits of all reviews together hold.
    """
    return headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or peer
