"""What handlers work with: the request and the route table."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from vkpsim.lds.errors import invalid
from vkpsim.lds.grading import Grader
from vkpsim.lds.model import Session
from vkpsim.lds.world import World

T = TypeVar("T")

DEFAULT_LIMIT: Final = 500
LARGEST_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with another status than 200."""

    status: int
    body: Any
    retry_after_s: int | None = None


@dataclass(slots=True, kw_only=True)
class Call:
    """One authenticated request at one time."""

    world: World
    grader: Grader
    now: float
    base_url: str
    """The URL of the LDS, without a path."""
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    session_id: str = ""
    """The session it was about; the access log notes it."""
    changed: bool = False
    """Whether a GET, too, has changed something."""

    def session(self) -> Session:
        """Find the session of the path.

        Raises:
            LdsError: It does not exist.
        """
        self.session_id = self.path["session"]
        return self.world.session(self.session_id)

    def read(self, shape: type[T]) -> T:
        """Read the body as JSON of a shape; unknown keys are ignored.

        Raises:
            LdsError: It does not have that shape.
        """
        try:
            return msgspec.json.decode(self.body, type=shape)
        except msgspec.MsgspecError as error:
            raise invalid(error) from error

    def page(self, items: list[Session]) -> tuple[list[Session], str | None]:
        """Return the page of a list, sorted by number, that the query requests.

        Returns:
            The page, and the cursor of the next one.

        Raises:
            LdsError: Limit or cursor make no sense.
        """
        limit, cursor = self.query.get("limit", str(DEFAULT_LIMIT)), self.query.get("cursor", "0")
        if not limit.isdecimal() or not 1 <= int(limit) <= LARGEST_LIMIT:
            raise invalid(f"limit: expected 1 to {LARGEST_LIMIT}, got {limit}")
        if not cursor.isdecimal():
            raise invalid("cursor: expected the `next` of an earlier page")
        rest = [item for item in items if item.number > int(cursor)]
        page = rest[: int(limit)]
        return page, str(page[-1].number) if len(rest) > len(page) else None


def unix_s(moment: dt.datetime, name: str) -> float:
    """Read a time.

    Raises:
        LdsError: It has no zone.
    """
    if moment.tzinfo is None:
        raise invalid(f"{name}: a time needs a zone, such as 2026-01-17T10:30:00Z")
    return moment.timestamp()


Handler = Callable[[Call], Any]
"""A handler returns JSON, an `Answer`, or None for an empty 204; it refuses by an `LdsError`."""


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint."""

    method: str
    path: str
    handler: Handler
