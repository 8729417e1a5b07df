"""Wait for a lablet's Pod."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import click

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.shared.output.progress import Progress
from vkprovider.lablet import names
from vkprovider.lablet.words import why
from vkprovider.platform.kube.client import KubeClient

_LOOK_EVERY_S: Final = 0.5
_LOOK_EACH_S: Final = 0.05
"""The pause for each awaited lablet: however many there are, at most 20 requests are sent in a second."""


async def wait_for(
    kube: KubeClient,
    pod: LabletPod,
    done: Callable[[LabletPod | None], bool],
    *,
    timeout_s: float,
    what: str,
    progress: Progress,
) -> LabletPod | None:
    """Poll a Pod until a condition holds; None if the Pod is gone.

    Args:
        kube: The API server.
        pod: As it was read.
        done: The condition.
        timeout_s: How long to wait.
        what: The condition, for messages.
        progress: Shows what the Pod does meanwhile.

    Raises:
        ClickException: It took too long.
        OutsideError: The Pod cannot be read.
    """
    pods, name = pods_in(kube, pod.metadata.namespace), pod.metadata.name
    deadline = time.monotonic() + timeout_s
    while True:
        now = await pods.get(name)
        if now is not None and now.metadata.uid != pod.metadata.uid:
            now = None
        if done(now):
            return now
        if now is None:
            raise click.ClickException(
                f"pod/{name} was deleted while waiting for it to be {what}; see: kubectl lablet list"
            )
        reason, message = why(now)
        said = f": {reason}: {message}" if reason else ""
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"pod/{name} is not {what} after {timeout_s:.0f} s{said}. The request stands; if nothing "
                "happens, see whether the provider runs: vkprovider doctor"
            )
        progress.stage(f"pod/{name}", f"{now.metadata.annotations.get(names.ANNOTATION_STATE, '')}{said}")
        await asyncio.sleep(max(_LOOK_EVERY_S, progress.waiting * _LOOK_EACH_S))
