"""What component tests share besides tests/conftest.py: the garbage collector as it was, a scripted HTTP server."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.scripted import ScriptedServer, kubeconfig_of
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Undo what a replica does to the garbage collector of its process."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    server = await ScriptedServer().start()
    yield server
    await server.stop()


@pytest.fixture
def kubeconfig(server: ScriptedServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_of(server.url))
    return str(path)


@pytest.fixture
async def kube(kubeconfig: str) -> AsyncIterator[KubeClient]:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig))
    yield client
    await client.close()
