import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.component.kube.apiserver import ApiServer
from vkprovider.kube.client import KubeClient


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged."""
    with structlog.testing.capture_logs() as entries:
        yield entries


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
async def client(kubeconfig: str) -> AsyncIterator[KubeClient]:
    client = await KubeClient.connect(kubeconfig=kubeconfig)
    yield client
    await client.close()


async def until(predicate: Callable[[], object], within_s: float = 5.0) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(within_s):
        while not predicate():  # noqa: ASYNC110 (what is awaited has no event)
            await asyncio.sleep(0.005)
