"""Who types at a console: a session that somebody took it over from watches, and types again when that one has left."""

import shlex
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, NamedTuple, TypeVar

TAKEN: Final = "another session has taken over: you watch until it leaves, and type again then; Ctrl-] leaves"
"""The line for a person who does not type any more."""
RETURNED: Final = "the session that had taken over has left: you type again"
"""The line for the same person afterwards."""

S = TypeVar("S", bound=Hashable)


class Writer(NamedTuple, Generic[S]):
    """A session that types, or that will again.

    Attributes:
        session: The session.
        attached: Whether a person is at it; else a command, which ends by itself.
        since: When it began, seconds since the epoch.
    """

    session: S
    attached: bool
    since: float

    @property
    def since_when(self) -> str:
        """The time of day at which it began: `09:58 UTC`."""
        return datetime.fromtimestamp(self.since, UTC).strftime("%H:%M UTC")


@dataclass(frozen=True, slots=True)
class Writers(Generic[S]):
    """The sessions that type, or that will again.

    Attributes:
        queue: Each took over from the one before it; the last one types.
    """

    queue: tuple[Writer[S], ...] = ()

    @property
    def writer(self) -> Writer[S] | None:
        """The one that types."""
        return self.queue[-1] if self.queue else None

    def claimed(self, by: Writer[S], *, take_over: bool) -> "Writers[S] | Writer[S]":
        """Return the writers after a session has asked to type, or the one that it has to wait for.

        A person gives way to somebody who takes over; a command to nobody, for it ends by itself.
        """
        writer = self.writer
        if writer is None or (writer.attached and take_over):
            return Writers((*self.queue, by))
        return writer

    def without(self, session: S) -> "Writers[S]":
        """Return the writers after a session has left."""
        return Writers(tuple(writer for writer in self.queue if writer.session != session))


def notices(before: Writers[S], after: Writers[S]) -> Iterator[tuple[S, str]]:
    """Yield the sessions that a change concerns which others made, each with the line that says so."""
    if before.writer is not None and before.writer in after.queue[:-1]:
        yield before.writer.session, TAKEN
    if after.writer is not None and after.writer in before.queue[:-1]:
        yield after.writer.session, RETURNED


def refusal(writer: Writer[S], label: str, pod: str) -> str:
    """Return the words for somebody who wants to type while a person does, with what they can do.

    Args:
        writer: The one who types.
        label: The device's.
        pod: The Pod's name.
    """
    device = shlex.quote(label)
    plugin = f"kubectl lablet console {pod} {device}"
    return (
        f"another session types at the console of {label} since {writer.since_when}: watch it with `{plugin} --watch`,"
        f" or take over with `{plugin} --take-over` (without the plugin: `kubectl exec -it {pod} -- console {device}"
        " --take-over`); the other one then watches, and types again when you leave"
    )
