"""`kubectl lablet release`: end learners' sessions, so that their lablets are free for the next learners."""

import click

from vkprovider.classroom.pods import LabletPod, change, pods_in
from vkprovider.cli.shared.batch import Chosen
from vkprovider.cli.shared.output.progress import Progress
from vkprovider.cli.shared.waiting import wait_for
from vkprovider.lablet import names
from vkprovider.lablet.lifecycle import State
from vkprovider.platform.kube.client import KubeClient


def release(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """End the session of each POD's learner: collect and grade the work, archive the session, wipe the lab."""

    async def work(kube: KubeClient, pod: LabletPod, progress: Progress) -> str:
        name = pod.metadata.name
        if hindrance := no_release(pod):
            raise click.ClickException(f"pod/{name} {hindrance}")
        found = pod if pod.ended else await change(kube, pod, annotations=_request(pod))
        if not wait:
            return f"pod/{name}: the session of {pod.user} is being ended"
        over = await wait_for(kube, found, is_released, timeout_s=timeout_s, what="released", progress=progress)
        return await _clear_away(kube, found, over, timeout_s, progress)

    chosen.each(work, concerns=lambda pod: bool(pod.user))


def no_release(pod: LabletPod) -> str:
    """Return why there is no session to end, and what to do; "" if there is one."""
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted; to follow it: kubectl lablet list --watch"
    if names.ANNOTATION_LENT_BY in pod.metadata.annotations and not pod.user:
        pool = pod.metadata.annotations[names.ANNOTATION_LENT_BY]
        return f"is on its way back to its pool {pool}; to follow it: kubectl lablet list --watch"
    if not pod.user:
        return f"has no learner; to delete it: kubectl delete pod {pod.metadata.name}"
    return ""


def _request(pod: LabletPod) -> dict[str, str | None]:
    """Return the annotations that end the learner's time; a lablet that still has its pool's label goes back there."""
    pool = pod.metadata.labels.get(names.LABEL_POOL, "")
    lent = {names.ANNOTATION_LENT_BY: pool} if pool else {}
    return {names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING), **lent}


def is_released(pod: LabletPod | None) -> bool:
    """Return whether a lablet is free: gone, ended, or back in its pool."""
    if pod is None or pod.ended:
        return True
    return not pod.user and names.ANNOTATION_LENT_BY not in pod.metadata.annotations


async def _clear_away(
    kube: KubeClient, pod: LabletPod, over: LabletPod | None, timeout_s: int, progress: Progress
) -> str:
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
    await wait_for(kube, over, lambda now: now is None, timeout_s=timeout_s, what="deleted", progress=progress)
    return f"{ended} and was deleted"
