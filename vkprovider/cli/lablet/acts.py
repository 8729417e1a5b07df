"""`kubectl lablet stop`, `start`, `collect`, `reset`: requests to lablets, written as annotations of their Pods."""

import sys
from collections.abc import Mapping, Sequence

import click

from vkprovider.classroom.pods import LabletPod, change
from vkprovider.cli.lablet.handedin import LISTING, entries_or_why, grade_of
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.batch import Chosen
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.pods import check_alive, check_not_collecting, wait_for
from vkprovider.lablet import names
from vkprovider.lablet.standing import State, state_of
from vkprovider.labs.pure.lablet.leftovers import ArchiveEntry
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count


def stop(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Stop the lab of each POD and keep its disks, for 24 hours at most."""

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        check_alive(pod)
        check_not_collecting(pod)
        await change(kube, pod, annotations={names.ANNOTATION_DESIRED_STATE: str(State.STOPPED)})
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: _is_in(now, State.STOPPED),
                timeout_s=timeout_s,
                what="stopped",
                progress=progress,
            )
        name = pod.metadata.name
        return f"pod/{name} {'stopped' if wait else 'is being stopped'}; go on with: kubectl lablet start {name}"

    chosen.each(work)


def start(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Start the lab of each POD again after `stop`; its disks are as they were."""

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        check_alive(pod)
        check_not_collecting(pod)
        name = pod.metadata.name
        if pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() != State.STOPPED:
            return f"pod/{name} was not stopped on request"
        await change(kube, pod, annotations={names.ANNOTATION_DESIRED_STATE: None})
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: now is not None and now.runs and not _is_in(now, State.STOPPED),
                timeout_s=timeout_s,
                what="ready",
                progress=progress,
            )
        return f"pod/{name} {'started' if wait else 'is being started'}"

    chosen.each(work)


def collect(*, wait: bool, timeout_s: int, page: PageOptions, chosen: Chosen) -> None:
    """End the learner's time with each POD now: collect the work, have it graded, end the lablet."""
    ends: list[tuple[LabletPod, LabletPod | None]] = []
    earlier: list[ArchiveEntry] = []

    async def look_before(kube: KubeClient, namespace: str) -> None:
        earlier.extend((await entries_or_why(kube, namespace, chosen.place, page))[0])

    async def show(kube: KubeClient, namespace: str) -> None:
        now: list[ArchiveEntry] = []
        if any(over is None or not over.ended for _, over in ends):
            now, why = await entries_or_why(kube, namespace, chosen.place, page)
            if why:
                click.echo(f"The grades of lablets that go back to a pool are not known: {why}", err=True)
        grades = [
            grade_of(pod, over, earlier, now) for pod, over in sorted(ends, key=lambda end: end[0].user.casefold())
        ]
        LISTING.show(grades, "table", nothing="No lablet has come to its end.", but=("WHEN",))

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        check_alive(pod)
        await change(kube, pod, annotations={names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING)})
        if not wait:
            return f"pod/{pod.metadata.name} is being collected"
        over = await wait_for(kube, pod, _is_over, timeout_s=timeout_s, what="at its end", progress=progress)
        ends.append((pod, over))
        return _end_of(pod, over)

    chosen.each(
        work,
        concerns=lambda pod: not pod.is_free,
        before=look_before if wait else None,
        after=show if wait else None,
    )


def _end_of(pod: LabletPod, over: LabletPod | None) -> str:
    """Return how a lablet that was collected ended.

    Raises:
        ClickException: It failed.
    """
    name = pod.metadata.name
    if over is None:
        return f"pod/{name} is gone; see: kubectl lablet configs {pod.metadata.uid}"
    if not over.ended:
        return f"pod/{name} was collected and goes back to its pool"
    said = next((s.state["terminated"] for s in over.status.container_statuses if "terminated" in s.state), {})
    message = f"pod/{name} {over.status.phase}: {said.get('message', '')}"
    if over.status.phase == "Failed":
        raise click.ClickException(f"{message}; for what was collected: kubectl lablet configs {name}")
    return message


def _is_over(pod: LabletPod | None) -> bool:
    """Return whether the learner's time is over: at the end, or without a learner on the way back to the pool."""
    return pod is None or pod.ended or names.ANNOTATION_DESIRED_STATE not in pod.metadata.annotations


def reset(*, yes: bool, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Wipe the lab of each POD and start it again: all work in it is lost."""

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        check_alive(pod)
        check_not_collecting(pod)
        asked: Mapping[str, str | None] = {names.ANNOTATION_RESET: clock.now().isoformat()}
        if pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.STOPPED:
            asked = {**asked, names.ANNOTATION_DESIRED_STATE: None}
        await change(kube, pod, annotations=asked)
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: now is not None and now.runs and now.last_ends != pod.last_ends,
                timeout_s=timeout_s,
                what="reset",
                progress=progress,
            )
        return f"pod/{pod.metadata.name} {'was' if wait else 'is being'} wiped and started again"

    chosen.each(work, check=lambda pods: _confirm(pods, yes=yes))


def _confirm(pods: Sequence[LabletPod], *, yes: bool) -> None:
    if yes:
        return
    if len(pods) == 1:
        check_alive(pods[0])
        check_not_collecting(pods[0])
    if not sys.stdin.isatty():
        raise click.UsageError("reset wipes a lab, and there is no terminal to confirm that: add --yes")
    if len(pods) == 1:
        whose = f", where {pods[0].user} may have worked" if pods[0].user else ""
        question = f"Wipe the lab of pod/{pods[0].metadata.name}{whose}, and start it again?"
    else:
        learners = sum(bool(pod.user) for pod in pods)
        question = f"Wipe {count(len(pods), 'lab')}, {learners} of them with a learner, and start them again?"
    click.confirm(question, abort=True)


def _is_in(pod: LabletPod | None, state: State) -> bool:
    return pod is not None and state_of(pod) == state
