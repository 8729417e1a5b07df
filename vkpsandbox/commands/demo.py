"""`vkprovider demo`: a Deployment of lablets on a sandbox, from nothing to nothing."""

import signal
import sys
from types import FrameType
from typing import Final

import click

from vkprovider.api.errors import VkproviderError
from vkpsandbox.controlplane.tunnels import Tunnel
from vkpsandbox.demo.story import tell

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
@click.option("--keep", is_flag=True, help="Leave the sandbox running.")
def demo(workers: int, name: str, tunnel: Tunnel, keep: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Show labs as pods on a sandbox, from start to finish.

    Starts a real Kubernetes control plane with simulated CML workers, places lablets by affinity, compares the pods
    with the labs that Cisco's own client reads, types on a device with kubectl, deletes everything, and looks again.
    Exits with 0 only if all of it held.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        tell(workers, name, tunnel=tunnel, keep=keep, say=click.echo)
    except VkproviderError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """End as with Ctrl-C."""
    raise KeyboardInterrupt
