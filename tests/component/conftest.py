"""A stand-in for an API server, and our client for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.kube.apiserver import ApiServer, kubeconfig_of
from vkprovider.kube.client import KubeClient


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer().start()
    yield server
    await server.stop()


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_of(server.url))
    return str(path)


@pytest.fixture
async def kube(kubeconfig: str) -> AsyncIterator[KubeClient]:
    client = await KubeClient.connect(kubeconfig=kubeconfig)
    yield client
    await client.close()
