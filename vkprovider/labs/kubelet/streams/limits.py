"""What a session may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one session.

    Attributes:
        idle_s: A session ends when no bytes have gone either way for so long.
        opening_s: A client may need so long to open the streams of an exec or attach session.
        closing_s: A client may need so long to read the rest and close, after the session has ended.
        buffered_bytes: When so much has arrived that nobody has read, the client has to wait.
        streams_max: Streams of SPDY at a time; a forwarded connection has two.
    """

    idle_s: float = 4 * 3600.0
    opening_s: float = 30.0
    closing_s: float = 300.0
    buffered_bytes: int = 256 * 1024
    streams_max: int = 512
