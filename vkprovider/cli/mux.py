"""`vkprovider mux`: the program that serves muxes."""

import click

from vkprovider.cli.shared.environment import run_to_end, settings_from, start_log


@click.command()
def mux() -> None:
    """Serve muxes: Services whose load balancer others share. One replica.

    All settings come from the environment; see docs/mux.md and docs/reference/settings.md.
    """
    from vkprovider.mux.process import main  # noqa: PLC0415 (as above)
    from vkprovider.mux.settings import MuxProcessSettings  # noqa: PLC0415 (as above)

    settings = settings_from(MuxProcessSettings.from_environment)
    start_log(settings.log.model_copy(update={"level": "debug"}) if settings.mux.debug else settings.log)
    run_to_end(main(settings))
