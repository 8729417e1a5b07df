"""`vkprovider mux`: the program that serves muxes."""

import asyncio
import sys

import click

from vkprovider.api.errors import InputError
from vkprovider.cli.shared.environment import settings_from


@click.command()
def mux() -> None:
    """Serve muxes: Services whose load balancer others share. One replica.

    All settings come from the environment; see docs/mux.md and docs/reference/settings.md.
    """
    from vkprovider.app import logs  # noqa: PLC0415 (other commands need not wait)
    from vkprovider.app.settings import MuxProcessSettings  # noqa: PLC0415 (as above)
    from vkprovider.mux.process import main  # noqa: PLC0415 (as above)

    settings = settings_from(MuxProcessSettings.from_environment)
    logs.set_up("debug" if settings.mux.debug else settings.log.level, settings.log.format)
    try:
        asyncio.run(main(settings))
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0)
