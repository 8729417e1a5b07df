"""`vkprovider demo`: lablets of a Deployment, a class, a mux, the portal or a hub, from nothing to nothing."""

import signal
import sys
from types import FrameType
from typing import Final

import click

from vkprovider.platform.errors import VkproviderError
from vkpsandbox.commands.sandbox import DOWNLOAD_HELP
from vkpsandbox.controlplane.tunnels import Tunnel
from vkpsandbox.demo.classroom import NAMES
from vkpsandbox.demo.day import day_of_a_class
from vkpsandbox.demo.deployment import labs_as_pods
from vkpsandbox.demo.hub import labs_in_a_hub
from vkpsandbox.demo.mux import behind_one_address
from vkpsandbox.demo.portal import lab_on_request
from vkpsandbox.demo.stage import tell

INTERRUPTED: Final = 130
"""What shells report for a program that Ctrl-C ended."""


@click.command()
@click.option("--workers", type=click.IntRange(2, 50), default=3, show_default=True, help="Simulated CML workers.")
@click.option("--name", default="demo", show_default=True, help="Name of the sandbox.")
@click.option(
    "--tunnel",
    type=click.Choice(["direct", "mqtt", "http"]),
    default="direct",
    show_default=True,
    help="How the provider reaches the workers.",
)
@click.option("--class", "of_class", is_flag=True, help="Show the day of a class instead (docs/class.md).")
@click.option("--mux", is_flag=True, help="Show 30 lablets behind one address instead (docs/mux.md); needs HAProxy.")
@click.option("--portal", is_flag=True, help="Show how a learner asks for a lab instead (docs/portal.md).")
@click.option("--hub", is_flag=True, help="Show that with a browser and a JupyterHub instead (docs/hub.md).")
@click.option("--lds/--no-lds", default=True, show_default=True, help="Whether the class has a Lab Delivery System.")
@click.option(
    "--learners", type=click.IntRange(3, len(NAMES)), default=len(NAMES), show_default=True, help="Of the class."
)
@click.option("--download", is_flag=True, help=DOWNLOAD_HELP)
@click.option("--keep", is_flag=True, help="Leave the sandbox running.")
def demo(
    *,
    workers: int,
    name: str,
    tunnel: Tunnel,
    of_class: bool,
    mux: bool,
    portal: bool,
    hub: bool,
    lds: bool,
    learners: int,
    download: bool,
    keep: bool,
) -> None:
    """Show labs as pods on a sandbox, from start to finish.

    Starts a real Kubernetes control plane with simulated CML workers, places lablets by affinity, compares the pods
    with the labs that Cisco's own client reads, types on a device with kubectl, deletes everything, and looks again.
    With --class an instructor gives 24 learners a lab each, and collects what they did. With --mux
    30 lablets on 3 workers share one address, which stays when the provider is killed. With --portal a learner
    asks for a lab by HTTP, and types on a device. With --hub a learner with a browser does so at a JupyterHub.
    Exits with 0 only if all of it held.
    """
    if mux + of_class + portal + hub > 1:
        raise click.UsageError("--mux, --class, --portal and --hub exclude each other: run one after the other")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if mux:
            play = behind_one_address()
        elif portal:
            play = lab_on_request()
        elif hub:
            play = labs_in_a_hub()
        else:
            play = day_of_a_class(learners, lds=lds) if of_class else labs_as_pods(workers)
        tell(play, name, workers=workers, tunnel=tunnel, download=download, keep=keep, say=click.echo)
    except VkproviderError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as with Ctrl-C."""
    raise KeyboardInterrupt
