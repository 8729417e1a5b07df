"""A file that a command line names; `-` is standard input."""

import sys
from pathlib import Path

import click


def read_text(source: str) -> str:
    """Return the text of a file.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{source} cannot be read: {error}") from None
