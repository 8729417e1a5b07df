"""`vkprovider relay`: fill an HAProxy that carries the ports of a mux."""

import click

from vkprovider.cli.shared.environment import run_to_end, settings_from, start_log


@click.command()
@click.option("--print-config", is_flag=True, help="Print HAProxy's configuration, and do nothing else.")
def relay(print_config: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Keep an HAProxy beside this process as a mux wants it: where each port leads, and who may connect.

    All settings come from the environment; see docs/relay.md and docs/reference/settings.md.
    """
    from vkprovider.mux.relay.haproxy import CONFIG  # noqa: PLC0415 (other commands need not wait)

    if print_config:
        click.echo(CONFIG, nl=False)
        return
    from vkprovider.mux.relay.process import main  # noqa: PLC0415 (as above)
    from vkprovider.mux.relay.settings import RelayProcessSettings  # noqa: PLC0415 (as above)

    settings = settings_from(RelayProcessSettings.from_environment)
    start_log(settings.log)
    run_to_end(main(settings.kube, settings.relay))
