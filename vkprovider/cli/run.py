"""`vkprovider run`: the controller, one replica."""

import asyncio
import contextlib
import resource
from collections.abc import Callable
from typing import Final

import click

from vkprovider.cli.shared.environment import run_to_end, settings_from, start_log

_FILES_MAX: Final = 65_536


@click.command()
def run() -> None:
    """Run the controller, one replica. All settings come from the environment; see docs/reference/settings.md."""
    from vkprovider.labs.settings.process import Settings  # noqa: PLC0415 (as above)
    from vkprovider.labs.wiring.main import main  # noqa: PLC0415 (as above)

    settings = settings_from(Settings.from_environment)
    start_log(settings.log)
    _raise_file_limit()
    run_to_end(main(settings), _loop_factory())


def _raise_file_limit() -> None:
    """Allow as many open files as the system does, as Go's programs do: each Node has a listener of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_MAX if most == resource.RLIM_INFINITY else min(most, _FILES_MAX)
    with contextlib.suppress(ValueError, OSError):  # where a system has another limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Use uvloop where it is installed (the extra `fast`)."""
    try:
        import uvloop  # noqa: PLC0415 (optional)
    except ImportError:
        return None
    return uvloop.new_event_loop
