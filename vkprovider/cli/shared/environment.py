"""The settings of a process, read from its environment."""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

import click
from pydantic import ValidationError

from vkprovider.api.errors import InputError

S = TypeVar("S")


def settings_from(read: Callable[[Mapping[str, str]], S]) -> S:
    """Return what `read` makes of the environment.

    Raises:
        click.ClickException: A setting is wrong; it names each of them.
    """
    try:
        return read(os.environ)
    except ValidationError as error:
        faults = "\n".join(f"  {'.'.join(map(str, e['loc'][1:])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise click.ClickException(f"a setting is wrong:\n{faults}") from None
    except InputError as error:
        raise click.ClickException(str(error)) from None
