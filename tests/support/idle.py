"""A replica of the provider that is built and does not run: its API server cannot be reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.provider import Provider, provider
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.settings import KubeSettings

KUBECONFIG: Final = """
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""


@asynccontextmanager
async def idle_provider(folder: Path, **variables: str) -> AsyncIterator[Provider]:
    """Build a replica.

    Args:
        folder: A folder for its kubeconfig.
        variables: Its settings, as environment variables.
    """
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG)
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(path)))
    events = EventRecorder(kube, component="vkprovider", instance="r")
    ctx = Context(kube=kube, events=events, installation="i", replica="r", namespace="n")
    yield provider(ctx, Settings.from_environment(variables))
    await kube.close()
