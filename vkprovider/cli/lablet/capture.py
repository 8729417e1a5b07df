"""`kubectl lablet capture`: packets of a link, for a pipe to Wireshark or a file.

It ends in kubectl itself, whose stdout is the file that grows; when its reader leaves, kubectl ends, and the capture
with it.
"""

import sys

import click

from vkprovider.cli.lablet.console import become_kubectl, named_with_device
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import exec_arguments, find
from vkprovider.lablet import captures, names
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.client import KubeClient


def capture(
    pod: str | None,
    link: str | None,
    *,
    learner: str | None,
    expression: str,
    packets: int,
    seconds: int,
    stop: bool,
    place: Place,
) -> None:
    """Write the packets of LINK of POD to a pipe or a file; without LINK show the links, or end the capture."""
    wanted, link = named_with_device(pod, link, learner)
    if stop and link is not None:
        raise click.UsageError("a lab has one capture at a time: --stop without a LINK ends it")
    words = [names.CAPTURE, captures.STOP if stop else captures.LIST]
    if link is not None:
        if sys.stdout.isatty():
            raise click.UsageError(
                f"packets are no text for a terminal: `… {link} | wireshark -k -i -`, or `… {link} > capture.pcap`"
            )
        words = CaptureRequest(link, expression, packets, seconds).words()
        try:
            captures.read(words)
        except InputError as error:
            raise click.UsageError(error.message) from None

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        return exec_arguments(await find(kube, namespace, wanted), words)

    become_kubectl(place, place.run(work))
