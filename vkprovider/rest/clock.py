"""The clock of a server, by the `Date` of its answers: whole seconds, never ahead of it."""

from email.utils import parsedate_to_datetime

from tunnels.base import Response


class ServerClock:
    """What time it is on a server; unknown before its first answer with a date."""

    def __init__(self) -> None:
        self._date = 0.0
        self._seen_at = 0.0

    def note(self, response: Response, at: float) -> None:
        """Note the date of an answer, if it has one.

        Args:
            response: The answer.
            at: When it arrived, by a monotonic clock.
        """
        try:
            self._date = parsedate_to_datetime(response.headers["date"]).timestamp()
        except (KeyError, ValueError, OverflowError):
            return
        self._seen_at = at

    def at(self, now: float) -> int:
        """Return the server's Unix seconds at `now`, by the same monotonic clock; 0 while they are unknown."""
        return int(self._date + max(0.0, now - self._seen_at)) if self._date else 0
