"""Commands that stop and start labs: stop, start, reset."""

import click

from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import chosen_options, start_options, wait_options


@click.command(epilog="Example: kubectl lablet stop mylab-0 --wait")
@wait_options
@chosen_options
@runs("stop", of="vkprovider.cli.lablet.acts")
def stop() -> None:
    """Stop the lab of each POD and keep its disks, for 24 hours at most.

    What runs in the devices is lost, as when a machine is switched off; their configurations are saved first. A lab
    that is not Ready yet is stopped once it is.
    """


@click.command(epilog="Example: kubectl lablet start mylab-0 --wait")
@start_options
@chosen_options
@runs("start", of="vkprovider.cli.lablet.acts")
def start() -> None:
    """Start the lab of each POD again after `stop`; its disks are as they were."""


@click.command(epilog="Example: kubectl lablet reset mylab-0")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@start_options
@chosen_options
@runs("reset", of="vkprovider.cli.lablet.acts")
def reset() -> None:
    """Wipe the lab of each POD and start it again: all work in it is lost.

    The configurations are saved first, as far as the devices still answer. The learner, the session and the ports
    stay. This is also the way out of NeedsAttention.
    """
