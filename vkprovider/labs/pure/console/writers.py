"""Who types at a console, and when the learner of a lablet was last active.

As activity counts input at a console, and that the learner's session started. The state is the report on the Pod, so
that a replica that takes over, or starts again, goes on from there; it loses what was noted and not written, a minute
at most. A lablet that gets another learner begins without a report: nobody has opened it yet.
"""

import shlex
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from vkprovider.lablet import names
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.times import iso, unix

EVERY_S: Final = 60
"""How old a report is before the next one is written."""


class Activity(msgspec.Struct, frozen=True, gc=False):
    """Input at a console of a lablet.

    Attributes:
        at: When it came (Unix seconds); 0 if none has.
        learner: Whose lablet it was; "" while warm.
    """

    at: int = 0
    learner: str = ""


NO_ACTIVITY: Final = Activity()


def noted(known: Activity, annotations: Mapping[str, str], learner: str, now: int) -> Activity:
    """Return what is to be known of input that comes now; `known` itself if the report need not change for it.

    Args:
        known: The input that was noted last.
        annotations: Of the Pod.
        learner: Whose lablet it is.
        now: Unix seconds.
    """
    is_noted = known.learner == learner and known.at and now - known.at < EVERY_S
    if is_noted or not _is_due(_before(annotations, learner), now):
        return known
    return Activity(now, learner)


def reported(known: Activity, annotations: Mapping[str, str], claim: Claim) -> str:
    """Return the report that the Pod should have; "" for none.

    Args:
        known: The input that was noted last.
        annotations: Of the Pod.
        claim: The lablet's.
    """
    before = _before(annotations, claim.learner)
    typed_at = known.at if known.learner == claim.learner else 0
    at = max(typed_at, claim.session.started_at if claim.session is not None else 0)
    return iso(at) if at and _is_due(before, at) else before


def _before(annotations: Mapping[str, str], learner: str) -> str:
    """Return the report that a Pod has of this learner."""
    same = annotations.get(names.ANNOTATION_LEARNER, "") == learner
    return annotations.get(names.ANNOTATION_LAST_ACTIVITY, "") if same else ""


def _is_due(before: str, at: int) -> bool:
    """Return whether activity is reported, by the report before; one that cannot be read is replaced."""
    reported_at = unix(before)
    return reported_at is None or at - reported_at >= EVERY_S


TAKEN: Final = f"{names.CONSOLE_TAKEN}: you watch until it leaves, and type again then; Ctrl-] leaves"
"""The line for a person who does not type any more."""
RETURNED: Final = f"{names.CONSOLE_RETURNED}: you type again"
"""The line for the same person afterwards."""
LEFT: Final = f"{names.CONSOLE_LEFT}: nobody types now"
"""The line for those who watch."""

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


def notices(before: Writers[S], after: Writers[S], watching: Iterable[S] = ()) -> Iterator[tuple[S, str]]:
    """Yield the sessions that a change concerns which others made, each with the line that says so.

    Who only watches reads nothing of a take-over, nor of a command, which comes and goes with its output.

    Args:
        before: The writers before the change.
        after: Those after it.
        watching: The people who see the console; those who type or will again may be among them.
    """
    if before.writer is not None and before.writer in after.queue[:-1]:
        yield before.writer.session, TAKEN
    if after.writer is not None and after.writer in before.queue[:-1]:
        yield after.writer.session, RETURNED
    if after.writer is None and before.writer is not None and before.writer.attached:
        typed = {writer.session for writer in before.queue}
        yield from ((session, LEFT) for session in watching if session not in typed)


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
        f"{names.CONSOLE_IN_USE} {label} since {writer.since_when}: watch it with `{plugin} --watch`,"
        f" or take over with `{plugin} --take-over` (without the plugin: `kubectl exec -it {pod} -- console {device}"
        " --take-over`); the other one then watches, and types again when you leave"
    )
