"""The seam between protocol and carriers: frames to a peer, frames from a peer, connections that come and go.

A carrier may lose, double, delay and reorder frames; the protocol repairs that. It must not show a frame to another
peer than the one meant, nor deliver it under a wrong sender's address: names are verified below this seam, by the
broker's access rules or by the credentials of a connection.

The address of an agent is `name/boot`; that of a caller is the replica's identity.
"""

import re
from typing import Final, NamedTuple, Protocol

ALL: Final = ""
"""The address of all peers, or the carrier as a whole."""

NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""The name of an agent, as Kubernetes names its objects."""

WORD: Final = re.compile(r"[0-9A-Za-z_.-]{1,64}")
"""A boot, or the identity of a caller."""


class Address(NamedTuple):
    """An agent's process.

    >>> str(Address("w1", "k3j9"))
    'w1/k3j9'
    """

    name: str
    boot: str

    def __str__(self) -> str:
        return f"{self.name}/{self.boot}"


def parse_address(text: str) -> Address | None:
    """Return an agent's address; None if it is not one."""
    name, _, boot = text.partition("/")
    return Address(name, boot) if NAME.fullmatch(name) and WORD.fullmatch(boot) else None


class CarrierInbox(Protocol):
    """What a carrier calls, in the event loop's thread; none of it blocks or raises."""

    def received(self, peer: str, frame: bytes) -> None:
        """Handle a frame of a peer."""

    def connected(self, peer: str) -> None:
        """Note that frames reach a peer, or all of them, from now on; what was sent before may be lost."""

    def disconnected(self, peer: str) -> None:
        """Note that frames do not reach a peer, or none at all, until further notice."""


class Carrier(Protocol):
    """Carries frames between callers and agents."""

    async def run(self, inbox: CarrierInbox) -> None:
        """Connect, and connect again after every loss, until cancelled."""

    def send(self, peer: str, frame: bytes) -> bool:
        """Send a frame, without waiting.

        Args:
            peer: The address; `ALL` for every peer that is connected.
            frame: Of at most `wire.limits.FRAME_BYTES_MAX` bytes.

        Returns:
            Whether it left or waits in a bounded queue; False if it was dropped, because there is no connection or the
            queue is full.
        """
