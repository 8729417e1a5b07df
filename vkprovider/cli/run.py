"""`vkprovider run`: the controller, one replica."""

import asyncio
import os
import sys
from collections.abc import Callable

import click
from pydantic import ValidationError

from vkprovider.api.errors import InputError


@click.command()
def run() -> None:
    """Run the controller, one replica. All settings come from the environment; see docs/reference/settings.md."""
    from vkprovider.app import logs  # noqa: PLC0415 (half a second that other commands need not wait)
    from vkprovider.app.main import main  # noqa: PLC0415 (as above)
    from vkprovider.app.settings import Settings  # noqa: PLC0415 (as above)

    try:
        settings = Settings.from_environment(os.environ)
    except ValidationError as error:
        faults = "\n".join(f"  {'.'.join(map(str, e['loc'][1:])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise click.ClickException(f"a setting is wrong:\n{faults}") from None
    except InputError as error:
        raise click.ClickException(str(error)) from None
    logs.set_up(settings.log.level, settings.log.format)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main(settings))
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Use uvloop where it is installed (the extra `fast`)."""
    try:
        import uvloop  # noqa: PLC0415 (optional)
    except ImportError:
        return None
    return uvloop.new_event_loop
