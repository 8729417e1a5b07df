"""Kubeconfigs of one context, and clients that are connected by them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings


def write(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    """Write a kubeconfig whose only context is of this cluster and user; return its path."""
    document = {
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@asynccontextmanager
async def connected(kubeconfig: str | None = None, **options: Any) -> AsyncIterator[KubeClient]:
    """Connect a client, and close it at last."""
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), **options)
    try:
        yield client
    finally:
        await client.close()
