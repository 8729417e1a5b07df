"""What the caller's side asks its link to do."""

from dataclasses import dataclass

from tunnels.base import Response
from tunnels.errors import TransportError
from tunnels.wire.messages import CallerMessage


@dataclass(frozen=True, slots=True)
class Send:
    """A message for the boot of an agent.

    Attributes:
        boot: The agent's process.
        message: The message.
        op: The operation that it carries out; the guard is asked first. Empty for what changes nothing.
    """

    boot: str
    message: CallerMessage
    op: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """An operation has its response."""

    op: str
    response: Response


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation has failed."""

    op: str
    error: TransportError


@dataclass(frozen=True, slots=True)
class Happened:
    """The agent reports an event; `lost` if one or more before it did not arrive, so that only a look helps."""

    kind: str
    data: bytes
    lost: bool = False


CallerOutput = Send | Answered | Failed | Happened
