"""An operation of the portal, followed to its end by its stream, and by the lab's status where no stream answers.

The status has the last word, because a stream can be cut, refused when a learner's token has expired, or answered by a
replica of the portal that does not know the operation yet. A lost stream therefore never is a failure.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final

from jupyterhub_vkprovider.dialects import Dialect, Kind, Line, Status, line_of, status_of
from jupyterhub_vkprovider.service import RefusedError, Service, SilentError, TokenFileError

_PAUSE_S: Final = 0.25
_PAUSE_MAX_S: Final = 4.0
_FRUITLESS_MAX: Final = 3
"""How many connections in a row may tell nothing before the status is asked."""
_LOG: Final = logging.getLogger("jupyterhub.vkprovider")


class Goal(Enum):
    """What an operation is to reach."""

    LAB = "lab"
    NO_LAB = "no lab"


_UNWANTED: Final = {
    Status.FAILED: (2, "The lab has failed."),
    Status.TERMINATING: (5, "The lab is being deleted while it starts. Start it again when it has gone."),
    Status.ABSENT: (5, "The lab was deleted while it started. Start it again."),
}
"""How often a status must be told in a row to end a start, as a replica may be late, and what it means."""


@dataclass(frozen=True)
class Observed:
    """What the portal says of a lab.

    Attributes:
        status: None if it tells none.
        body: The whole of it.
        silent: Whether it does not answer.
        date: When it says so, by its `Date`; "" if it does not tell.
    """

    status: Status | None
    body: dict[str, object]
    silent: bool = False
    date: str = ""


async def observe(service: Service) -> Observed:
    """Return the lab's status.

    Raises:
        RefusedError: The hub may not ask.
        TokenFileError: There is no token of the hub.
    """
    try:
        answer = await service.status()
    except SilentError as error:
        _LOG.debug("%s", error)
        return Observed(None, {}, silent=True)
    if answer.code == HTTPStatus.NOT_FOUND:
        return Observed(Status.ABSENT, {})
    try:
        body = json.loads(answer.body)
    except ValueError:
        _LOG.debug("the status of %s is no JSON: another server answers for the lab service", service.user)
        return Observed(None, {}, silent=True)
    return Observed(status_of(body), body if isinstance(body, dict) else {}, date=answer.date)


def settled(goal: Goal, status: Status | None, times: int) -> Line | None:
    """Return the last line of an operation, if a status that was told so many times in a row ends it."""
    match goal, status:
        case Goal.LAB, Status.RUNNING:
            return Line(Kind.COMPLETE, "The lab is ready.")
        case Goal.NO_LAB, Status.ABSENT:
            return Line(Kind.COMPLETE, "The lab has gone.")
        case Goal.LAB, Status.FAILED | Status.TERMINATING | Status.ABSENT:
            needed, text = _UNWANTED[status]
            return Line(Kind.FAILED, text) if times >= needed else None
        case Goal.NO_LAB, Status.FAILED:
            return Line(Kind.FAILED, "The lab could not be deleted.") if times >= _UNWANTED[status][0] else None
        case _:
            return None


async def follow(service: Service, dialect: Dialect, token: str, goal: Goal) -> AsyncGenerator[Line]:
    """Yield the lines of the current operation until it has ended; the last one is `complete` or `failed`.

    Args:
        service: The portal, for one user.
        dialect: Of the stream.
        token: The user's; "" if the hub has none, which leaves the status.
        goal: What ends the operation.
    """
    stream = _Stream(service, dialect, token)
    pause_s = _PAUSE_S
    told: Status | None = None
    times = 0
    while True:
        new, last = 0, None
        async with aclosing(stream.lines()) as lines:
            async for line in lines:
                new += 1
                if line.ends:
                    last = line
                    break
                yield line
        if new:
            pause_s = _PAUSE_S
        if last is not None or stream.useless:
            status = await _status(service)
            times = times + 1 if status is told else 1
            told = status
            end = settled(goal, status, times)
            if end is not None:
                yield last if last is not None and last.kind is end.kind and last.text else end
                return
            if status is None and last is not None:
                yield last
                return
        await asyncio.sleep(pause_s * random.uniform(0.75, 1.25))
        pause_s = min(_PAUSE_MAX_S, pause_s * 1.5)


async def _status(service: Service) -> Status | None:
    try:
        return (await observe(service)).status
    except (RefusedError, TokenFileError) as error:
        _LOG.warning("cannot ask for the lab of %s: %s", service.user, error)
        return None


class _Stream:
    """The lines of an operation over several connections, each line once."""

    def __init__(self, service: Service, dialect: Dialect, token: str) -> None:
        self._service = service
        self._dialect = dialect
        self._token = token
        self._last_id = ""
        self._seen: list[Line] = []
        self._fruitless = 0

    @property
    def useless(self) -> bool:
        """Whether it is refused, or its last connections told nothing."""
        return self._fruitless >= _FRUITLESS_MAX

    async def lines(self) -> AsyncGenerator[Line]:
        """Yield the lines of one connection that are new. It ends with the connection."""
        if not self._token:
            self._fruitless = _FRUITLESS_MAX
            return
        self._fruitless += 1
        # A portal without ids tells a new connection everything again.
        again = [] if self._last_id else self._seen.copy()
        try:
            async with aclosing(self._service.events(self._token, self._last_id)) as messages:
                async for message in messages:
                    self._last_id = message.id or self._last_id
                    line = line_of(message, self._dialect)
                    if line is None:
                        continue
                    if again and again.pop(0) == line:
                        continue
                    again.clear()
                    self._seen.append(line)
                    self._fruitless = 0
                    yield line
        except SilentError as error:
            _LOG.debug("%s", error)
        except RefusedError as error:
            self._fruitless = _FRUITLESS_MAX
            _LOG.debug("the stream of %s was refused: %s", self._service.user, error)
