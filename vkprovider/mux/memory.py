"""What a replica remembers of the muxes that it serves; none of it decides anything."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vkprovider.mux.effects.store import StoredMux
from vkprovider.mux.events import Events
from vkprovider.mux.index import ExposedLablet, Service
from vkprovider.mux.pure.decide import Plan
from vkprovider.mux.pure.facts import Owner
from vkprovider.mux.pure.slices import Sources


class LastPass(NamedTuple):
    """What the last pass over a mux found and decided.

    Attributes:
        service: Its Service.
        stored: What was stored before the pass.
        channels: The Services that name it.
        lablets: The lablets that name it.
        plan: What was decided.
        sources: Its backends.
        refused: Addresses that are no backends, by channel, each with what it is.
        at: When, in Unix seconds.
    """

    service: Service
    stored: StoredMux
    channels: Sequence[Service]
    lablets: Sequence[ExposedLablet]
    plan: Plan
    sources: Sources
    refused: Mapping[Owner, Mapping[str, str]]
    at: float


class MuxMemory:
    """What a replica remembers.

    Attributes:
        seen: The last pass over each mux that this replica serves.
        annotated_at: When the annotations of each were written, on the monotonic clock.
        ends_since: Since when open flows of a mux that ends are ended, in Unix seconds.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self.seen: dict[str, LastPass] = {}
        self.annotated_at: dict[str, float] = {}
        self.ends_since: dict[str, float] = {}

    def given_up(self, key: str) -> None:
        """Drop what is known of a mux: another replica may serve it."""
        self.seen.pop(key, None)
        self.annotated_at.pop(key, None)
        self.ends_since.pop(key, None)
        self._events.forget(key)
