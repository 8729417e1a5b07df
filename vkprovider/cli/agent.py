"""`vkprovider agent`: the agent beside a worker that the cluster cannot dial."""

import asyncio
import os
import sys

import click
from pydantic import ValidationError

from vkprovider.api.errors import InputError


@click.command()
def agent() -> None:
    """Run the agent beside a CML worker that the cluster cannot dial.

    All settings come from the environment; see docs/tunnels.md and docs/reference/settings.md.
    """
    from vkprovider.agent.process import main  # noqa: PLC0415 (other commands need not wait)
    from vkprovider.app import logs  # noqa: PLC0415 (as above)
    from vkprovider.app.settings import AgentProcessSettings  # noqa: PLC0415 (as above)

    try:
        settings = AgentProcessSettings.from_environment(os.environ)
    except ValidationError as error:
        faults = "\n".join(f"  {'.'.join(map(str, e['loc'][1:])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise click.ClickException(f"a setting is wrong:\n{faults}") from None
    except InputError as error:
        raise click.ClickException(str(error)) from None
    logs.set_up(settings.log.level, settings.log.format)
    try:
        asyncio.run(main(settings.agent, settings.mqtt, settings.dial))
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0)
