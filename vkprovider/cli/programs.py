"""`vkprovider run`, `agent`, `mux`, `portal` and `relay`: one process each, with settings from the environment."""

import asyncio
import contextlib
import resource
from collections.abc import Callable
from typing import Final

import click

from vkprovider.cli.environment import run_to_end, settings_from, start_log


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


@click.command()
@click.option("--print-config", is_flag=True, help="Print HAProxy's configuration, and do nothing else.")
def relay(print_config: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Keep an HAProxy beside this process as a mux wants it: where each port leads, and who may connect.

    All settings come from the environment; see docs/relay.md and docs/reference/settings.md.
    """
    from vkprovider.mux.relay.process import CONFIG  # noqa: PLC0415 (other commands need not wait)

    if print_config:
        click.echo(CONFIG, nl=False)
        return
    from vkprovider.mux.relay.process import main  # noqa: PLC0415 (as above)
    from vkprovider.mux.settings import RelayProcessSettings  # noqa: PLC0415 (as above)

    settings = settings_from(RelayProcessSettings.from_environment)
    start_log(settings.log)
    run_to_end(main(settings.kube, settings.relay))


_FILES_MAX: Final = 65_536


@click.command()
def run() -> None:
    """Run the controller, one replica. All settings come from the environment; see docs/reference/settings.md."""
    from vkprovider.labs.settings.cluster import Settings  # noqa: PLC0415 (as above)
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
