"""`vkprovider agent`: the agent beside a worker that the cluster cannot dial."""

import click

from vkprovider.cli.shared.environment import run_to_end, settings_from, start_log


@click.command()
def agent() -> None:
    """Run the agent beside a CML worker that the cluster cannot dial.

    All settings come from the environment; see docs/tunnels.md and docs/reference/settings.md.
    """
    from vkprovider.agent.process import main  # noqa: PLC0415 (other commands need not wait)
    from vkprovider.agent.settings import AgentProcessSettings  # noqa: PLC0415 (as above)

    settings = settings_from(AgentProcessSettings.from_environment)
    start_log(settings.log)
    run_to_end(main(settings.agent, settings.mqtt, settings.dial))
