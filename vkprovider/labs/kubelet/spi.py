"""The seams of the kubelet API: sessions as a client asks for them, and the lablets that serve them.

`labs.controllers.console` implements `Devices` and imports this module, which is therefore data and Protocols alone.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tunnels.base import ByteChannel

__all__ = [
    "ByteChannel",
    "DeviceUsage",
    "Devices",
    "Exit",
    "Forward",
    "ForwardedConnection",
    "LogLine",
    "LogOptions",
    "RemoteCommand",
    "Target",
]


@dataclass(frozen=True, slots=True)
class Target:
    """A container of a Pod: a device, or the lablet as a whole if it names none."""

    namespace: str
    pod: str
    uid: str
    container: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended.

    Attributes:
        code: 0: success; 1 … 255: the command's exit code, which kubectl exits with.
        message: What went wrong. kubectl prints it only with `reason`, so that a command that ends with a code writes
            its errors to the client first.
        reason: Empty, or one CamelCase word: the session failed, not the command; kubectl prints `message`, exits 1.
    """

    code: int
    message: str = ""
    reason: str = ""


class RemoteCommand(Protocol):
    """An exec or attach session as the client asked for it, the same for WebSockets and SPDY."""

    @property
    def tty(self) -> bool:
        """Whether the client wants a terminal; output goes to stdout alone then."""

    @property
    def stdin(self) -> bool:
        """Whether the client sends input."""

    @property
    def stdout(self) -> bool:
        """Whether the client wants output."""

    @property
    def stderr(self) -> bool:
        """Whether the client wants error output; never with `tty`."""

    async def read(self) -> bytes:
        """Return the next bytes typed; none after the client's half-close, or when it has left.

        While nobody reads, little is buffered and the client waits; pings are answered all the same.
        """

    async def write(self, data: bytes) -> None:
        """Send to stdout, and wait while the client is slow; without `stdout` the bytes are dropped.

        Raises:
            ConnectionLost: The client left, or `exit` was called.
        """

    async def write_error(self, data: bytes) -> None:
        """Send to stderr as `write` does; without `stderr` the bytes are dropped."""

    async def exit(self, status: Exit) -> None:
        """Send how the command ended, and end the session; nothing happens if it has ended."""

    async def gone(self) -> None:
        """Return when the client has left, or the session has ended."""


class ForwardedConnection(Protocol):
    """One connection of a port-forward session: a `ByteChannel` whose directions end one by one."""

    @property
    def port(self) -> int:
        """The port of the Pod that the client wants, 1 … 65535."""

    async def read(self) -> bytes:
        """Return the next bytes; none after the client's half-close.

        Raises:
            ConnectionLost: The client reset the connection or left.
        """

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow.

        Raises:
            ConnectionLost: The client reset the connection or left, or it was closed here.
        """

    async def half_close(self) -> None:
        """Say that no bytes follow; the client may send on."""

    async def fail(self, message: str) -> None:
        """Say why the port cannot be reached, and close; kubectl shows it and ends the whole session.

        For what may change, such as a refused connection, `close` leaves the session alone.
        """

    async def close(self) -> None:
        """End both directions."""


class Forward(Protocol):
    """One port-forward session, which carries connections."""

    async def accept(self) -> ForwardedConnection | None:
        """Return the next connection of the client; None: the session has ended."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which lines of a log are wanted; cutting at bytes and printing times is the server's part.

    Attributes:
        follow: Go on with lines as they come.
        previous: Before the last restart.
        since_at: Leave out lines before this time, seconds since the epoch.
        tail_lines: Only the last so many; 0: none, or those that come.
    """

    follow: bool = False
    previous: bool = False
    since_at: float | None = None
    tail_lines: int | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log.

    Attributes:
        at: Seconds since the epoch.
        text: Without the line feed.
    """

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class DeviceUsage:
    """What CML reports of a device.

    Attributes:
        target: The container.
        cpu_s: CPU time used since `started_at`; never decreases while that stays.
        cpu_nanocores: CPU used now.
        memory_bytes: Memory used now.
        started_at: When the device started, seconds since the epoch.
    """

    target: Target
    cpu_s: float
    cpu_nanocores: int
    memory_bytes: int
    started_at: float


class Devices(Protocol):
    """What the kubelet API needs of the lablets.

    Every method raises `InputError` for what is wrong with the request or the object, and `OutsideError` if CML does
    not answer.
    """

    async def attach(self, target: Target, command: RemoteCommand, *, take_over: bool = False) -> Exit:
        """Connect a session with the console of a device until either ends.

        Args:
            target: The device.
            command: The session; the caller ends it with the result.
            take_over: Become the writer although somebody else is.
        """

    async def execute(self, target: Target, words: Sequence[str], command: RemoteCommand) -> Exit:
        """Type a command at a device's prompt and send what it prints; `["console"]` is `attach`."""

    async def dial(self, namespace: str, pod: str, port: int) -> ByteChannel:
        """Connect to an allocated port of a lablet, or to a port inside a device."""

    def log(self, target: Target, options: LogOptions) -> AsyncIterator[LogLine]:
        """Read the log of a device or of the lablet; with `follow` it goes on until it is closed."""

    def usage(self, node: str) -> Iterable[DeviceUsage]:
        """List what the devices on a Node use, as far as CML reports it."""
