"""`kubectl lablet stop`, `start`, `collect`, `reset`: requests to a lablet, written as annotations of its Pod."""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import click

from vkprovider.api import names
from vkprovider.cli.lablet_pods import LabletPod, Place, change, place_options, pod_name, read, wait_for
from vkprovider.cli.lablet_times import duration
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.kube.client import KubeClient


def _wait_options(command: Callable[..., Any]) -> Callable[..., Any]:
    timeout = click.option(
        "--timeout",
        "timeout_s",
        callback=duration,
        default="5m",
        show_default=True,
        metavar="DURATION",
        help="How long to wait: 90s, 5m.",
    )
    return click.option("--wait", is_flag=True, help="Wait for completion.")(timeout(command))


@click.command(epilog="Example: kubectl lablet stop mylab-0 --wait")
@click.argument("pod")
@_wait_options
@place_options
def stop(pod: str, *, wait: bool, timeout_s: int, place: Place) -> None:
    """Stop the lab of POD and keep its disks, for 24 hours at most.

    What runs in the devices is lost, as when a machine is switched off; their configurations are saved first. A lab
    that is not Ready yet is stopped once it is.
    """
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> None:
        found = await _living(kube, namespace, name)
        _not_collecting(found)
        await change(kube, found, annotations={names.ANNOTATION_DESIRED_STATE: str(State.STOPPED)})
        if wait:
            await wait_for(kube, found, lambda now: _state(now) == State.STOPPED, timeout_s=timeout_s, what="stopped")

    place.run(work)
    click.echo(f"pod/{name} {'stopped' if wait else 'is being stopped'}; go on with: kubectl lablet start {name}")


@click.command(epilog="Example: kubectl lablet start mylab-0 --wait")
@click.argument("pod")
@_wait_options
@place_options
def start(pod: str, *, wait: bool, timeout_s: int, place: Place) -> None:
    """Start the lab of POD again after `stop`; its disks are as they were."""
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> bool:
        found = await _living(kube, namespace, name)
        _not_collecting(found)
        asked = found.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper()
        if asked != State.STOPPED:
            return False
        await change(kube, found, annotations={names.ANNOTATION_DESIRED_STATE: None})
        if wait:
            await wait_for(
                kube,
                found,
                lambda now: now is not None and now.ready and _state(now) != State.STOPPED,
                timeout_s=timeout_s,
                what="ready",
            )
        return True

    if not place.run(work):
        click.echo(f"pod/{name} was not stopped on request")
        return
    click.echo(f"pod/{name} {'started' if wait else 'is being started'}")


@click.command(epilog="Example: kubectl lablet collect mylab-0 --wait")
@click.argument("pod")
@_wait_options
@place_options
def collect(pod: str, *, wait: bool, timeout_s: int, place: Place) -> None:
    """End the learner's time with POD now: collect the work, have it graded, end the lablet.

    The lablet ends as Succeeded or Failed, as the grader decides; without a grader it succeeds. A pool's lablet is
    wiped and returns to the pool instead. `kubectl lablet configs POD` shows what was collected. With --wait
    the command fails if the lablet does.
    """
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> tuple[LabletPod, LabletPod | None]:
        found = await _living(kube, namespace, name)
        await change(kube, found, annotations={names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING)})
        if not wait:
            return found, None
        return found, await wait_for(kube, found, _is_over, timeout_s=timeout_s, what="at its end")

    found, over = place.run(work)
    if not wait:
        click.echo(f"pod/{name} is being collected")
    elif over is None:
        click.echo(f"pod/{name} is gone; see: kubectl lablet configs {found.metadata.uid}")
    elif not over.ended:
        click.echo(f"pod/{name} was collected and goes back to its pool")
    else:
        said = next((s.state["terminated"] for s in over.status.container_statuses if "terminated" in s.state), {})
        message = f"pod/{name} {over.status.phase}: {said.get('message', '')}"
        if over.status.phase == "Failed":
            raise click.ClickException(message)
        click.echo(message)


def _is_over(pod: LabletPod | None) -> bool:
    """Return whether the learner's time is over: at the end, or without a learner on the way back to the pool."""
    return pod is None or pod.ended or names.ANNOTATION_DESIRED_STATE not in pod.metadata.annotations


@click.command(epilog="Example: kubectl lablet reset mylab-0")
@click.argument("pod")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_wait_options
@place_options
def reset(pod: str, *, yes: bool, wait: bool, timeout_s: int, place: Place) -> None:
    """Wipe the lab of POD and start it again: all work in it is lost.

    The configurations are saved first, as far as the devices still answer. The learner, the session and the ports
    stay. This is also the way out of NeedsAttention.
    """
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> None:
        found = await _living(kube, namespace, name)
        _not_collecting(found)
        _confirm(found, yes=yes)
        asked: Mapping[str, str | None] = {names.ANNOTATION_RESET: datetime.now(UTC).isoformat()}
        if found.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.STOPPED:
            asked = {**asked, names.ANNOTATION_DESIRED_STATE: None}
        await change(kube, found, annotations=asked)
        if wait:
            await wait_for(
                kube,
                found,
                lambda now: now is not None and now.ready and now.restarts > found.restarts,
                timeout_s=timeout_s,
                what="reset",
            )

    place.run(work)
    click.echo(f"pod/{name} {'was' if wait else 'is being'} wiped and started again")


def _confirm(pod: LabletPod, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("reset wipes a lab, and there is no terminal to confirm that: add --yes")
    whose = f", where {pod.user} may have worked" if pod.user else ""
    click.confirm(f"Wipe the lab of pod/{pod.metadata.name}{whose}, and start it again?", abort=True)


async def _living(kube: KubeClient, namespace: str, name: str) -> LabletPod:
    pod = await read(kube, namespace, name)
    if pod.metadata.deletion_timestamp is not None:
        raise click.ClickException(f"pod/{name} is being deleted")
    if pod.ended:
        raise click.ClickException(f"pod/{name} has ended ({pod.status.phase})")
    return pod


def _not_collecting(pod: LabletPod) -> None:
    if _state(pod) in {State.COLLECTING, State.GRADING, State.STOPPING}:
        raise click.ClickException(f"pod/{pod.metadata.name} is at its end: its state is {_state(pod)}")


def _state(pod: LabletPod | None) -> str:
    return pod.metadata.annotations.get(names.ANNOTATION_STATE, "") if pod is not None else ""
