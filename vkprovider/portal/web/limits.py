"""How often somebody may do what costs the API server requests, whoever that is."""

import hashlib
from collections import OrderedDict
from typing import Final

from vkprovider.platform.http.answers import TooManyReviews
from vkprovider.platform.kube.pace import TokenBucket

_SENDERS_MAX: Final = 2000


class Limits:
    """Counts what each of many senders does."""

    def __init__(self, per_s: float, burst: float, words: str) -> None:
        """Count nothing yet.

        Args:
            per_s: How often a sender may in the long run.
            burst: How often at once.
            words: Why more is refused, and what to do.
        """
        self._per_s = per_s
        self._burst = burst
        self._words = words
        self._pace: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, sender: str) -> None:
        """Refuse a sender of whom too much was counted.

        Raises:
            Refused: 429.
        """
        pace = self._pace.get(sender)
        if pace is None:
            return
        wait_s = pace.reserve()
        pace.cancel()
        if wait_s > 0:
            raise TooManyReviews(self._words)

    def count(self, sender: str) -> None:
        """Note that a sender did it once more."""
        pace = self._pace.setdefault(sender, TokenBucket(self._per_s, self._burst))
        self._pace.move_to_end(sender)
        if len(self._pace) > _SENDERS_MAX:
            self._pace.popitem(last=False)
        if pace.reserve() > 0:
            pace.cancel()


def attempt_of(peer: str, secret: str) -> str:
    """Return the name of an attempt to log in: by the connection's other end, and what is shown there.

    A whole class may share one address, and all people that of a proxy, so that what one person tries must not count
    against the others. What a header says of the sender counts for nothing: anybody may write it. Tokens that nobody
    has asked the API server about have the limits of all reviews together.

    Args:
        peer: The other end of the connection.
        secret: The token or the code; the name does not tell it.
    """
    return f"{peer} {hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"
