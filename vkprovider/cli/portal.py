"""`vkprovider portal`: the program that makes user labs."""

import click

from vkprovider.cli.shared.environment import run_to_end, settings_from, start_log


@click.command()
def portal() -> None:
    """Make, show and delete user labs on request, by REST. One replica.

    All settings come from the environment; see docs/reference/settings.md.
    """
    from vkprovider.portal.process import main  # noqa: PLC0415 (as above)
    from vkprovider.portal.settings import PortalProcessSettings  # noqa: PLC0415 (as above)

    settings = settings_from(PortalProcessSettings.from_environment)
    start_log(settings.log)
    run_to_end(main(settings))
