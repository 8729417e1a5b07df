"""Bounds of everything that arrives from a peer."""

from typing import Final

VERSION: Final = 1
"""The first byte of every frame. It changes only when an older peer could misunderstand a message."""

PIECE_BYTES: Final = 64 * 2**10
"""A longer body travels in pieces of this length; only the last one may be shorter."""

FRAME_BYTES_MAX: Final = 160 * 2**10
"""A frame: a piece, and parameters and headers at their longest."""

REQUEST_BYTES_MAX: Final = 32 * 2**20
"""The body of a request; CML itself refuses more than 20 MB."""

PARTS_MAX: Final = 1024
"""Pieces of a body: those of `direct.BODY_BYTES_MAX`."""

RESPONSE_BYTES_MAX: Final = PARTS_MAX * PIECE_BYTES
"""The body of a response."""

WANT_MAX: Final = 32
"""Pieces that one `Want` names."""

FACTS_BYTES_MAX: Final = 64 * 2**10
"""Facts of a hello or heartbeat, and the data of an event."""

DEADLINE_S_MAX: Final = 900.0
"""The longest that a request may be valid."""
