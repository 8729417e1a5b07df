"""Events of an agent in order, and notice of those that did not arrive."""

from collections.abc import Iterator

from tunnels.protocol.outputs import Happened
from tunnels.wire.messages import Event


class EventCount:
    """Counts the events of the present boot of an agent."""

    def __init__(self) -> None:
        self._boot, self._seq = "", 0

    def counted(self, boot: str, event: Event) -> Iterator[Happened]:
        """Report an event; a repeated or overtaken one is left out."""
        if boot != self._boot:
            self._boot, self._seq = boot, event.seq
            yield Happened(event.kind, event.data, lost=True)
        elif event.seq > self._seq:
            lost = event.seq != self._seq + 1
            self._seq = event.seq
            yield Happened(event.kind, event.data, lost=lost)

    def reaches(self, boot: str, seq: int) -> Iterator[Happened]:
        """Notice by the agent's own count that events were lost."""
        if boot != self._boot or seq > self._seq:
            self._boot, self._seq = boot, seq
            yield Happened("", b"", lost=True)
