"""A process: its settings, read from its environment, and its run."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NoReturn, TypeVar

import click
import structlog
from pydantic import ValidationError

from vkprovider.cli.settings import unknown
from vkprovider.platform import logs
from vkprovider.platform.errors import InputError
from vkprovider.platform.settings import LogSettings, no_effect

S = TypeVar("S")

_log: Final = structlog.get_logger(__name__)


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


def start_log(settings: LogSettings) -> None:
    """Write logs as the settings say, and first what the environment sets that nobody reads."""
    logs.set_up(settings.level, settings.format)
    for name, meant in unknown(os.environ).items():
        _log.warning("a setting has a name that nobody reads", setting=name, why=no_effect(name, meant))


def run_to_end(
    process: Coroutine[Any, Any, None], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> NoReturn:
    """Run a process until it ends, and exit with 0.

    Raises:
        click.ClickException: What a setting names cannot be used.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(process)
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0)
