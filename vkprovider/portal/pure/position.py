"""A listener's position in the stream of an operation, as the value of `Last-Event-ID`.

It names each source whose lines the listener has, with the order of the last one. A line that arrives late, with an
earlier time than those before it, is therefore still sent, and no other is sent again, by whichever replica.
"""

import re
from typing import Final

import msgspec

from vkprovider.portal.pure.operations import LineKind
from vkprovider.portal.pure.stream import LINES_MAX, LabStory, operation_key

_SOURCES_MAX: Final = LINES_MAX + 2
"""The lines of an operation with its end."""
_CHARS_MAX: Final = 16 * 1024
_FORM: Final = re.compile(r"(?P<operation>[\w-]{8})~(?P<progress>\d{1,3})~(?P<seen>[\w.,-]*)", re.ASCII)
_SEEN: Final = re.compile(r"(?P<source>[\w-]{8})\.(?P<order>\d{1,15})", re.ASCII)


class Position(msgspec.Struct, frozen=True):
    """What a listener has of the stream.

    Attributes:
        operation: The operation, hashed; "" before its first line.
        progress: The highest progress that it was told.
        seen: The order of the last line of each source.
        state: The present state that it was told; not part of the text.
    """

    operation: str = ""
    progress: int = 0
    seen: dict[str, int] = {}
    state: str = ""

    def __str__(self) -> str:
        """Return it as the id of an event."""
        newest = list(self.seen.items())[-_SOURCES_MAX:]
        return f"{self.operation}~{self.progress}~{','.join(f'{source}.{order}' for source, order in newest)}"


def parse(text: str) -> Position:
    """Return a position from the text of a listener; the beginning if it is none of ours."""
    if len(text) > _CHARS_MAX or (form := _FORM.fullmatch(text)) is None:
        return Position()
    seen = {}
    for part in form["seen"].split(",") if form["seen"] else ():
        if (each := _SEEN.fullmatch(part)) is None:
            return Position()
        seen[each["source"]] = int(each["order"])
    return Position(form["operation"], min(int(form["progress"]), 100), seen)


class Sent(msgspec.Struct, frozen=True):
    """What a listener is sent.

    Attributes:
        kind: A line's kind, or progress.
        text: The line; with progress alone, what goes on.
        progress: In percent, with this event.
        id: The position after it; "" for a present state, which nobody needs later.
    """

    kind: LineKind
    text: str
    progress: int
    id: str = ""


def news(position: Position, told: LabStory) -> tuple[Position, list[Sent]]:
    """Return the events that a listener lacks, after its position thereafter."""
    operation = operation_key(told.operation)
    if position.operation != operation:
        position = Position(operation)
    sent = list[Sent]()
    rest = [line for line in told.lines if position.seen.get(line.source, 0) < line.order]
    if told.progress > position.progress:
        position = msgspec.structs.replace(position, progress=told.progress)
        sent.append(Sent(LineKind.PROGRESS, told.state, told.progress, str(position)))
    for line in rest:
        seen = {**position.seen, line.source: line.order}
        position = msgspec.structs.replace(position, seen=seen)
        sent.append(Sent(line.kind, line.text, position.progress, str(position)))
    if told.state and told.state != position.state:
        sent.append(Sent(LineKind.INFO, told.state, position.progress))
    return msgspec.structs.replace(position, state=told.state), sent
