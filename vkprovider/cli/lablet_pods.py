"""A lablet's Pod, for the commands of `kubectl lablet`: parse its name, read, change and await it."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError, OutsideError
from vkprovider.api.objects import Metadata, PodSpec, PodStatus
from vkprovider.cli.cluster import cluster_options
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import ChangeHow, Resource, kind
from vkprovider.settings.cluster import KubeSettings

NONE: Final = "<none>"
UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOOK_EVERY_S: Final = 0.5

T = TypeVar("T")


class _Spec(PodSpec, frozen=True, rename="camel"):
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class LabletPod(msgspec.Struct, frozen=True):
    """A Pod, with the fields that show whether it is a lablet."""

    metadata: Metadata
    spec: _Spec
    status: PodStatus = PodStatus()

    @property
    def is_lablet(self) -> bool:
        """Whether a definition's RuntimeClass placed it: its selector shows it without a right to read definitions."""
        sent = self.spec.node_selector.get(names.LABEL_COMPONENT) == names.COMPONENT_VNODE
        return bool(self.spec.runtime_class_name) and (sent or self.spec.node_name.startswith(names.NODE_PREFIX))

    @property
    def ready(self) -> bool:
        """Whether the Pod is Ready."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def ended(self) -> bool:
        """Whether the phase is final."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def user(self) -> str:
        """The learner whose lablet it is, else the one who is to have it; "" for a warm lablet."""
        notes = self.metadata.annotations
        return notes.get(names.ANNOTATION_LEARNER, "") or notes.get(names.ANNOTATION_USERNAME, "")

    @property
    def restarts(self) -> int:
        """How often the lab was restarted."""
        lab = (status.restart_count for status in self.status.container_statuses if status.name == names.LAB_CONTAINER)
        return next(lab, max((status.restart_count for status in self.status.container_statuses), default=0))


_PODS: Final = kind("/api/v1", "pods", LabletPod)


class Place(msgspec.Struct, frozen=True):
    """The cluster and namespace of the options.

    Attributes:
        namespace: None for the context's own.
    """

    kubeconfig: str | None
    context: str | None
    namespace: str | None

    def run(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        """Call a function with a client and a namespace.

        Raises:
            ClickException: It failed.
        """
        try:
            return asyncio.run(self._connected(work))
        except (InputError, OutsideError) as error:
            raise click.ClickException(str(error)) from None

    async def _connected(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        kube = await KubeClient.connect(KubeSettings(kubeconfig=self.kubeconfig), context=self.context)
        try:
            return await work(kube, self.namespace or kube.namespace)
        finally:
            await kube.close()


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--namespace`, `--kubeconfig` and `--context`, and pass them as `place`."""

    def with_place(
        *args: Any, kubeconfig: str | None, context: str | None, namespace: str | None, **options: Any
    ) -> Any:
        return command(*args, place=Place(kubeconfig, context, namespace), **options)

    with_place.__name__, with_place.__doc__ = command.__name__, command.__doc__
    with_place.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    namespace = click.option("-n", "--namespace", help="Namespace (default: the context's).")
    return namespace(cluster_options(with_place))


def pod_name(text: str) -> str:
    """Return the Pod's name: `pod/a`, `pods/a` and `a` all name the Pod a.

    Raises:
        UsageError: It does not name a Pod.
    """
    kind, slash, name = text.rpartition("/")
    if slash and kind not in {"pod", "pods", "po"}:
        raise click.UsageError(f"{text!r} does not name a pod; write pod/{name or 'NAME'} or the name alone")
    if not name:
        raise click.UsageError(f"{text!r} does not name a pod")
    return name


def pods_in(kube: KubeClient, namespace: str) -> Resource[LabletPod]:
    """Return the Pods of a namespace; of all namespaces if it is empty."""
    return Resource(kube, _PODS, namespace)


class NoPod(click.ClickException):
    """There is no Pod of that name."""


async def read(kube: KubeClient, namespace: str, name: str) -> LabletPod:
    """Read a lablet's Pod.

    Raises:
        NoPod: It does not exist.
        ClickException: It is not a lablet.
        OutsideError: It cannot be read.
    """
    pod = await pods_in(kube, namespace).get(name)
    if pod is None:
        raise NoPod(f'pods "{name}" not found in namespace {namespace}')
    if not pod.is_lablet:
        raise click.ClickException(f"pod/{name} in namespace {namespace} is not a lablet; see: kubectl lablet list")
    return pod


async def change(
    kube: KubeClient,
    pod: LabletPod,
    *,
    annotations: Mapping[str, str | None],
    labels: Mapping[str, str | None] | None = None,
    unchanged: bool = False,
) -> LabletPod:
    """Change annotations and labels of exactly this Pod; None removes one.

    Args:
        kube: The API server.
        pod: As it was read.
        annotations: What to change.
        labels: What to change.
        unchanged: Only if it was not written since it was read.

    Raises:
        Conflict: Another Pod has the name now, or the Pod was written.
        OutsideError: The API server refused or did not answer.
    """
    meta = pod.metadata
    held: ChangeHow = {"uid": meta.uid}
    if unchanged:
        held["resource_version"] = meta.resource_version
    body = {"metadata": {"annotations": annotations, **({"labels": labels} if labels else {})}}
    return await pods_in(kube, meta.namespace).patch(meta.name, body, **held)


async def wait_for(
    kube: KubeClient, pod: LabletPod, done: Callable[[LabletPod | None], bool], *, timeout_s: float, what: str
) -> LabletPod | None:
    """Poll a Pod until a condition holds; None if the Pod is gone.

    Raises:
        ClickException: It took too long.
        OutsideError: The Pod cannot be read.
    """
    pods = pods_in(kube, pod.metadata.namespace)
    deadline = time.monotonic() + timeout_s
    while True:
        now = await pods.get(pod.metadata.name)
        if now is not None and now.metadata.uid != pod.metadata.uid:
            now = None
        if done(now):
            return now
        if now is None:
            raise click.ClickException(f"pod/{pod.metadata.name} was deleted while waiting for it to be {what}")
        if time.monotonic() > deadline:
            reason, message = why(now)
            said = f": {reason}: {message}" if reason else ""
            raise click.ClickException(
                f"pod/{pod.metadata.name} is not {what} after {timeout_s:.0f} s{said}. The request stands; if nothing "
                "happens, see whether the provider runs: vkprovider doctor"
            )
        await asyncio.sleep(_LOOK_EVERY_S)


def why(pod: LabletPod) -> tuple[str, str]:
    """Return reason and message of why a lablet is not Ready."""
    for container in pod.status.container_statuses:
        for state in ("waiting", "terminated"):
            if state in container.state:
                return container.state[state].get("reason", ""), container.state[state].get("message", "")
    for condition in pod.status.conditions:
        if condition.type in {"Ready", "PodScheduled"} and condition.status == "False" and condition.message:
            return condition.reason, condition.message
    return "", ""


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Format lines of cells as a table."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
