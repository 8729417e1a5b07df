"""A lablet's Pod, for the commands of `kubectl lablet`: find it, wait for it, its devices and ports."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import click
import msgspec

from vkprovider.classroom.pods import LabletPod, NotChangedError, change_for, pods_in
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.lablet import names
from vkprovider.lablet.devices import Port, reported_ports
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.standing import is_closing, state_of, why
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden, Throttled, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource, kind


class _Definition(msgspec.Struct, frozen=True):
    status: DefinitionStatus = DefinitionStatus()


_DEFINITIONS: Final = kind(f"/apis/{wellknown.API_VERSION}", "labletdefinitions", _Definition)


async def containers_of(kube: KubeClient, pod: LabletPod) -> dict[str, str]:
    """Read from the definition which container stands for which device; empty without the right to read it."""
    try:
        definition = await Resource(kube, _DEFINITIONS).get(pod.spec.runtime_class_name)
    except Forbidden:
        return {}
    return {device.label: device.container for device in definition.status.devices} if definition else {}


def exec_arguments(pod: LabletPod, words: Sequence[str], *how: str) -> list[str]:
    """Return kubectl's arguments that execute words in the container of a lablet as a whole, such as `-i`, `-t`."""
    meta = pod.metadata
    return ["exec", *how, "-n", meta.namespace, meta.name, "-c", pod.spec.containers[0].name, "--", *words]


def ports_of(pod: LabletPod, containers: Mapping[str, str]) -> list[Port]:
    """Parse the ports that a Pod reports.

    Args:
        pod: A lablet's.
        containers: Device label → container name, as far as it is known.

    Raises:
        ClickException: The annotation is invalid.
    """
    try:
        return reported_ports(pod, containers)
    except msgspec.MsgspecError as error:
        message = f"annotation {names.ANNOTATION_PORT_MAPPINGS} of pod/{pod.metadata.name} cannot be read: {error}"
        raise click.ClickException(message) from None


UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_POD_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class LabletName(msgspec.Struct, frozen=True):
    """What a command line names one lablet by.

    Attributes:
        name: Of its Pod, or of its learner.
        kinds: Which of the two it may be.
    """

    name: str
    kinds: Literal["pod", "learner", "either"] = "either"


def named(pod: str | None, learner: str | None) -> LabletName:
    """Return the target that the argument POD or the option `-u` names: `pod/a` is a Pod, and `a` a Pod or a learner.

    Raises:
        UsageError: Both are given, or none, or one names nothing.
    """
    if learner is not None and pod is not None:
        raise click.UsageError("name a POD, or a learner with -u, not both")
    if learner is not None:
        if not learner.strip():
            raise click.UsageError("-u names no learner; write -u LEARNER")
        return LabletName(learner.strip(), "learner")
    if pod is None:
        raise click.UsageError("name a POD, or a learner with -u, such as -u alice")
    return LabletName(pod_name(pod), "pod" if "/" in pod else "either")


def pod_name(text: str) -> str:
    """Return the Pod's name: `pod/a`, `pods/a` and `a` all name the Pod a.

    Raises:
        UsageError: It does not name a Pod.
    """
    kind, slash, name = text.rpartition("/")
    if slash and kind not in {"pod", "pods", "po"}:
        raise click.UsageError(
            f"{text!r} does not name a pod; write pod/{name or 'NAME'} or the name alone, or -u and a learner's name"
        )
    if not name:
        raise click.UsageError(f"{text!r} does not name a pod; write pod/NAME or the name alone")
    return name


class NoPod(click.ClickException):
    """There is no Pod of that name."""


async def find(kube: KubeClient, namespace: str, wanted: LabletName) -> LabletPod:
    """Find the lablet that a command line names; see `find_all`.

    Raises:
        NoPod: There is none.
        ClickException: It is not a lablet, or several are meant.
        OutsideError: It cannot be read.
    """
    return (await find_all(kube, namespace, [wanted]))[0]


async def find_all(kube: KubeClient, namespace: str, wanted: Iterable[LabletName]) -> list[LabletPod]:
    """Find the lablets that a command line names, each once: by the Pod's exact name, else by the learner's.

    Raises:
        NoPod: There is none.
        ClickException: It is not a lablet, or several are meant.
        OutsideError: They cannot be read.
    """
    pods, found, everyone = pods_in(kube, namespace), dict[str, LabletPod](), None
    for each in wanted:
        pod = await pods.get(each.name) if each.kinds != "learner" and _POD_NAME.fullmatch(each.name) else None
        if (pod is None or not pod.is_lablet) and each.kinds != "pod":
            try:
                everyone = await pods.list() if everyone is None else everyone
                pod = of_learner(everyone, each.name) or pod
            except Forbidden:
                if each.kinds == "learner":
                    raise
        pod = _lablet(pod, each, namespace)
        found.setdefault(pod.metadata.uid, pod)
    return list(found.values())


def of_learner(pods: Sequence[LabletPod], learner: str) -> LabletPod | None:
    """Return the lablet of a learner; one that has ended only if the learner has no other. None if there is none.

    Raises:
        ClickException: The learner has several.
    """
    mine = [pod for pod in pods if pod.is_lablet and pod.user == learner]
    mine = [pod for pod in mine if not pod.over] or mine
    if len(mine) > 1:
        listed = ", ".join(sorted(f"pod/{pod.metadata.name}" for pod in mine))
        raise click.ClickException(f"{learner} has {len(mine)} lablets: {listed}; name one of these pods")
    return mine[0] if mine else None


def _lablet(pod: LabletPod | None, wanted: LabletName, namespace: str) -> LabletPod:
    """Check what was found.

    Raises:
        NoPod: Nothing.
        ClickException: It is not a lablet.
    """
    if pod is None and wanted.kinds == "learner":
        raise NoPod(f"{wanted.name} has no lablet in namespace {namespace}; see: kubectl lablet list")
    if pod is None:
        besides = f", and no learner {wanted.name} has a lablet there" if wanted.kinds == "either" else ""
        raise NoPod(f'pods "{wanted.name}" not found in namespace {namespace}{besides}; see: kubectl lablet list')
    if not pod.is_lablet:
        raise click.ClickException(
            f"pod/{wanted.name} in namespace {namespace} is not a lablet; see: kubectl lablet list"
        )
    return pod


async def read(kube: KubeClient, namespace: str, name: str) -> LabletPod:
    """Read a lablet's Pod.

    Raises:
        NoPod: It does not exist.
        ClickException: It is not a lablet.
        OutsideError: It cannot be read.
    """
    return _lablet(await pods_in(kube, namespace).get(name), LabletName(name, "pod"), namespace)


def check_alive(pod: LabletPod) -> None:
    """Check that a lablet has not ended.

    Raises:
        ClickException: It has, or is being deleted.
    """
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        raise click.ClickException(
            f"pod/{name} is being deleted; for its configurations: kubectl lablet configs {name}"
        )
    if pod.ended:
        raise click.ClickException(
            f"pod/{name} has ended ({pod.status.phase}); for its configurations: kubectl lablet configs {name}"
        )


def check_not_collecting(pod: LabletPod) -> None:
    """Check that the learner's time is not over.

    Raises:
        ClickException: It is.
    """
    if is_closing(pod):
        name, wanted = pod.metadata.name, pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "")
        asked = f", and {wanted} is asked for" if wanted else ""
        raise click.ClickException(
            f"pod/{name} is at its end: its state is {state_of(pod)}{asked}; to follow it: kubectl lablet list --watch"
        )


async def ask(kube: KubeClient, pod: LabletPod, notes: Callable[[LabletPod], Mapping[str, str | None]]) -> LabletPod:
    """Write a request on a lablet, as long as it is that of the learner who had it when it was found.

    Args:
        kube: The API server.
        pod: As it was found, before the user was asked anything.
        notes: Called with the Pod as it is before each attempt; returns the request, and raises to prevent it.

    Raises:
        ClickException: It is another learner's now, or gone.
        OutsideError: The API server did not do it.
    """
    try:
        return await change_for(pods_in(kube, pod.metadata.namespace), pod.user, pod, notes)
    except NotChangedError as error:
        raise click.ClickException(f"pod/{pod.metadata.name} {error}; see: kubectl lablet list") from None


_LOOK_EVERY_S: Final = 0.5
_LOOK_EACH_S: Final = 0.05
"""The pause for each awaited lablet: however many there are, at most 20 requests are sent in a second."""
_AWAY_S: Final = 2.0
"""The pause while the API server is away."""


async def wait_for(
    kube: KubeClient,
    pod: LabletPod,
    done: Callable[[LabletPod | None], bool],
    *,
    timeout_s: float,
    what: str,
    progress: ProgressLine,
) -> LabletPod | None:
    """Poll a Pod until a condition holds; None if the Pod is gone. An API server that is away is asked again.

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
        try:
            now = await pods.get(name)
        except Unavailable as error:
            if (left_s := deadline - time.monotonic()) <= 0:
                raise click.ClickException(_too_late(name, what, timeout_s, f": {error.message}")) from None
            progress.stage(f"pod/{name}", error.message)
            await asyncio.sleep(min(left_s, error.after_s if isinstance(error, Throttled) else _AWAY_S))
            continue
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
            raise click.ClickException(_too_late(name, what, timeout_s, said))
        progress.stage(f"pod/{name}", f"{now.metadata.annotations.get(names.ANNOTATION_STATE, '')}{said}")
        await asyncio.sleep(max(_LOOK_EVERY_S, progress.waiting * _LOOK_EACH_S))


def _too_late(name: str, what: str, timeout_s: float, said: str) -> str:
    return (
        f"pod/{name} is not {what} after {timeout_s:.0f} s{said}. The request stands; if nothing happens, see whether "
        "the provider runs: vkprovider doctor"
    )
