"""A file that a command line names."""

import sys
from pathlib import Path

import click

from vkprovider.platform.messages import in_utf8


def read_bytes(source: str) -> bytes:
    """Return the content of a file.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{source} cannot be read: {error.strerror}") from None


def read_text(source: str) -> str:
    """Return the text of a file.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        return in_utf8(read_bytes(source))
    except ValueError as error:
        raise click.ClickException(f"{source} is {error}") from None
