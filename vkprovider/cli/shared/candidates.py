"""What the shell offers for an argument: the names that the cluster or the kubeconfig has.

A shell waits for the answer at each Tab: each function asks once, with a short deadline, and offers nothing when that
fails.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import click
from click.shell_completion import CompletionItem

from vkprovider.api import names
from vkprovider.api.errors import VkproviderError
from vkprovider.cli.shared.devices import containers_of, ports_of
from vkprovider.cli.shared.pods import LabletPod, pod_name, pods_in, read
from vkprovider.kube.api import DEFINITIONS, NAMESPACES, WORKERS
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import PartialObject, Resource, kind
from vkprovider.settings.cluster import KubeSettings

_DEADLINE_S: Final = 5.0
_DEPLOYMENTS: Final = kind("/apis/apps/v1", "deployments", PartialObject)
Found = Mapping[str, str]
"""A candidate, and what is said beside it."""


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer files: the shell knows them."""
    return [CompletionItem(incomplete, type="file")]


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer folders: the shell knows them."""
    return [CompletionItem(incomplete, type="dir")]


def contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the contexts of the kubeconfig."""
    return _offered(dict.fromkeys(_kubectl(ctx, "config", "get-contexts", "-o", "name").split(), ""), incomplete)


def namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the cluster's namespaces."""

    async def ask(kube: KubeClient, _: str) -> Found:
        return {item.metadata.name: "" for item in await Resource(kube, NAMESPACES).list()}

    return _asked(ctx, ask, incomplete)


def lablets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace; one that is named already is not offered again."""

    async def ask(kube: KubeClient, namespace: str) -> Found:
        return {pod.metadata.name: _about(pod) for pod in await _lablets(kube, namespace)}

    kind = "pod/" if incomplete.startswith("pod/") else ""
    named = ctx.params.get(param.name or "")
    done = set(named) if isinstance(named, tuple | list) else set()
    offered = _asked(ctx, ask, incomplete.removeprefix(kind))
    return [CompletionItem(f"{kind}{item.value}", help=item.help) for item in offered if item.value not in done]


def lablets_and_pools(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace, and the Deployments of its pools."""

    async def ask(kube: KubeClient, namespace: str) -> Found:
        found = await Resource(kube, _DEPLOYMENTS, namespace).list()
        return {f"deployment/{item.metadata.name}": "" for item in found}

    return lablets(ctx, param, incomplete) + _asked(ctx, ask, incomplete)


def devices(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the devices of the lablet that is named before."""

    async def ask(kube: KubeClient, namespace: str) -> Found:
        pod = await _lablet(ctx, kube, namespace)
        labels = await containers_of(kube, pod)
        return dict.fromkeys(labels, "") or {container.name: "" for container in pod.spec.containers[1:]}

    return _asked(ctx, ask, incomplete)


def ports(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ports that can be forwarded of the lablet that is named before."""

    async def ask(kube: KubeClient, namespace: str) -> Found:
        found = ports_of(await _lablet(ctx, kube, namespace), {})
        return {port.name: f"{port.device} {port.access}" for port in found if port.can_be_forwarded}

    return _asked(ctx, ask, incomplete)


def workers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the CMLWorkers that await approval."""

    async def ask(kube: KubeClient, _: str) -> Found:
        found = (item.metadata for item in await Resource(kube, WORKERS).list())
        return {meta.name: "" for meta in found if meta.annotations.get(names.ANNOTATION_APPROVED) == "false"}

    return _asked(ctx, ask, incomplete)


def definitions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the LabletDefinitions."""

    async def ask(kube: KubeClient, _: str) -> Found:
        return {item.metadata.name: item.spec.get("version", "") for item in await Resource(kube, DEFINITIONS).list()}

    return _asked(ctx, ask, incomplete)


def _kubectl(ctx: click.Context, *words: str) -> str:
    """Return what kubectl prints for the kubeconfig of the options; nothing if it fails or takes too long."""
    given = ctx.params.get("kubeconfig")
    named = [f"--kubeconfig={given}"] if given else []
    try:
        done = subprocess.run(  # noqa: S603 (no shell; the words are ours)
            ["kubectl", *named, *words],  # noqa: S607 (the user's own, as found on PATH)
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _asked(
    ctx: click.Context, ask: Callable[[KubeClient, str], Awaitable[Found]], incomplete: str
) -> list[CompletionItem]:
    """Ask the cluster and namespace of the options; what cannot be asked offers nothing."""

    async def work() -> Found:
        settings = KubeSettings(kubeconfig=ctx.params.get("kubeconfig"))
        kube = await KubeClient.connect(settings, context=ctx.params.get("context"))
        try:
            async with asyncio.timeout(_DEADLINE_S):
                return await ask(kube, ctx.params.get("namespace") or kube.namespace)
        finally:
            await kube.close()

    try:
        found = asyncio.run(work())
    except (VkproviderError, click.ClickException, TimeoutError):
        return []
    return _offered(found, incomplete)


def _offered(found: Found, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text or None) for name, text in sorted(found.items()) if name.startswith(incomplete)
    ]


async def _lablets(kube: KubeClient, namespace: str) -> Iterable[LabletPod]:
    return [pod for pod in await pods_in(kube, namespace).list() if pod.is_lablet]


async def _lablet(ctx: click.Context, kube: KubeClient, namespace: str) -> LabletPod:
    return await read(kube, namespace, pod_name(str(ctx.params.get("pod") or "")))


def _about(pod: LabletPod) -> str:
    return f"{pod.metadata.annotations.get(names.ANNOTATION_STATE, 'PENDING')} {pod.user}".strip()
