"""What a terminal can do: whether there is one, how wide it is, and whether colours are welcome."""

import os
from typing import TextIO


def is_live(stream: TextIO) -> bool:
    """Return whether a stream leads to a terminal that can update a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream: TextIO) -> bool:
    """Return whether text in colours is welcome; `NO_COLOR` refuses them (https://no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def columns(stream: TextIO) -> int | None:
    """Return how wide the terminal is; None if the stream leads to none, or to one that does not say it."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None
