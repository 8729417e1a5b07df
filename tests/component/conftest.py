"""A stand-in for an API server, and our client for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.kube.apiserver import ApiServer
from vkprovider.kube.client import KubeClient


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = await ApiServer().start()
    yield server
    await server.stop()


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(f"""
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test, namespace: labs}}}}]
clusters: [{{name: test, cluster: {{server: "{server.url}"}}}}]
users: [{{name: test, user: {{token: abc}}}}]
""")
    return str(path)


@pytest.fixture
async def kube(kubeconfig: str) -> AsyncIterator[KubeClient]:
    client = await KubeClient.connect(kubeconfig=kubeconfig)
    yield client
    await client.close()
