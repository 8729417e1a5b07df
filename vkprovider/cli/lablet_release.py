"""`kubectl lablet release`: end a learner's session, so that the lablet is free for the next learner."""

from dataclasses import dataclass

import click

from vkprovider.api import names
from vkprovider.cli.lablet_pods import LabletPod, Place, change, place_options, pod_name, pods_in, read, wait_for, why
from vkprovider.cli.lablet_times import duration
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.kube.client import KubeClient


@click.command(epilog="Example: kubectl lablet release mylab-0")
@click.argument("pod")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the end.")
@click.option(
    "--timeout",
    "timeout_s",
    callback=duration,
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait: 90s, 5m.",
)
@place_options
def release(pod: str, *, wait: bool, timeout_s: int, place: Place) -> None:
    """End the session of POD's learner: collect and grade the work, archive the session, wipe the lab.

    A pool's lablet goes back to its pool, warm. Any other lablet ends, and its Pod is deleted, so that its controller
    makes a new one; the Pod of a Job stays, because the Job counts it. With --no-wait an ended Pod stays, too.
    `kubectl lablet configs` shows what was collected.
    """
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> str:
        found = await read(kube, namespace, name)
        if hindrance := no_release(found):
            raise click.ClickException(f"pod/{name} {hindrance}")
        if not found.ended:
            found = await change(kube, found, annotations=_request(found))
        if not wait:
            return f"pod/{name}: the session of {found.user} is being ended"
        over = await wait_for(kube, found, _Watch(found), timeout_s=timeout_s, what="released")
        return await _clear_away(kube, found, over, timeout_s)

    click.echo(place.run(work))


def no_release(pod: LabletPod) -> str:
    """Return why there is no session to end; "" if there is one."""
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if names.ANNOTATION_LENT_BY in pod.metadata.annotations and not pod.user:
        return f"is on its way back to its pool {pod.metadata.annotations[names.ANNOTATION_LENT_BY]}"
    if not pod.user:
        return "has no learner"
    return ""


def _request(pod: LabletPod) -> dict[str, str | None]:
    """Return the annotations that end the learner's time; a lablet that still has its pool's label goes back there."""
    pool = pod.metadata.labels.get(names.LABEL_POOL, "")
    lent = {names.ANNOTATION_LENT_BY: pool} if pool else {}
    return {names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING), **lent}


@dataclass
class _Watch:
    """Tells whether a lablet is released, and prints each stage on the way there.

    Attributes:
        before: The Pod when the release was requested.
        shown: The last line.
    """

    before: LabletPod
    shown: str = ""

    def __call__(self, pod: LabletPod | None) -> bool:
        if pod is None or pod.ended:
            return True
        reason, message = why(pod)
        state = pod.metadata.annotations.get(names.ANNOTATION_STATE, "")
        line = f"pod/{pod.metadata.name} {state}{f': {reason}: {message}' if reason else ''}"
        if line != self.shown:
            click.echo(line, err=True)
            self.shown = line
        return not pod.user and names.ANNOTATION_LENT_BY not in pod.metadata.annotations


async def _clear_away(kube: KubeClient, pod: LabletPod, over: LabletPod | None, timeout_s: int) -> str:
    """Delete a Pod that has ended, unless it is a Job's; return what became of the lablet."""
    name, user = pod.metadata.name, pod.user
    if over is None:
        return f"pod/{name} is gone; the session of {user} has ended"
    if not over.ended:
        return f"pod/{name} is warm again in pool {over.metadata.labels.get(names.LABEL_POOL, '')}"
    ended = f"pod/{name} has ended ({over.status.phase})"
    if any(owner.controller and owner.kind == "Job" for owner in over.metadata.owner_references):
        return ended
    await pods_in(kube, over.metadata.namespace).delete(name, uid=over.metadata.uid)
    await wait_for(kube, over, lambda now: now is None, timeout_s=timeout_s, what="deleted")
    return f"{ended} and was deleted"
