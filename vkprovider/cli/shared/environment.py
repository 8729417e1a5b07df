"""The settings of a process, read from its environment."""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

import click
from pydantic import ValidationError

from vkprovider.api.errors import InputError

S = TypeVar("S")


def faults_of(error: ValidationError) -> list[str]:
    """Return which settings are wrong, and why, one line each."""
    return [f"{'.'.join(map(str, each['loc'][1:])) or 'settings'}: {each['msg']}" for each in error.errors()]


def settings_from(read: Callable[[Mapping[str, str]], S]) -> S:
    """Return the environment as `read` parses it.

    Raises:
        click.ClickException: A setting is wrong; it names each of them.
    """
    try:
        return read(os.environ)
    except ValidationError as error:
        faults = "".join(f"\n  {fault}" for fault in faults_of(error))
        raise click.ClickException(f"a setting is wrong:{faults}") from None
    except InputError as error:
        raise click.ClickException(str(error)) from None
