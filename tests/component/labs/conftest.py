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
async def kube(server: ApiServer, tmp_path: Path) -> AsyncIterator[KubeClient]:
    path = tmp_path / "kubeconfig"
    path.write_text(
        f"current-context: t\ncontexts: [{{name: t, context: {{cluster: t, user: t}}}}]\n"
        f'clusters: [{{name: t, cluster: {{server: "{server.url}"}}}}]\nusers: [{{name: t, user: {{token: abc}}}}]\n'
    )
    client = await KubeClient.connect(kubeconfig=str(path))
    yield client
    await client.close()
