"""A namespace on the real API server, behind a proxy that fails on demand."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.component.kube.pods import Pods
from tests.support.apiserver import Admin, ApiServer
from tests.support.faultyapi import FaultyApi
from tests.support.scripted import kubeconfig_of
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings

_namespaces = (f"kube-{number}" for number in itertools.count(1))


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture
async def pods(apiserver: ApiServer) -> AsyncIterator[Pods]:
    """The Pods of a namespace that no other test uses; requests through the proxy have an administrator's rights."""
    async with Admin(apiserver) as admin, FaultyApi(apiserver.url, apiserver.admin_tls()) as api:
        pods = Pods(admin, api, next(_namespaces))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": pods.namespace}})
        account = {"metadata": {"name": "default"}}
        await admin.create(f"/api/v1/namespaces/{pods.namespace}/serviceaccounts", account)
        yield pods
        await admin.delete(pods.path, grace_s=0)


@pytest.fixture
def api(pods: Pods) -> FaultyApi:
    """The proxy, with its log and faults."""
    return pods.api


@pytest.fixture
async def real(api: FaultyApi, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client of the real API server, through the proxy."""
    path = tmp_path / "kubeconfig-real"
    path.write_text(kubeconfig_of(api.url))
    client = await KubeClient.connect(KubeSettings(kubeconfig=str(path)))
    yield client
    await client.close()


@pytest.fixture
def client(real: KubeClient) -> KubeClient:
    """The client, as most tests call it."""
    return real


async def until(predicate: Callable[[], object], within_s: float = 20.0) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(within_s):
        while not predicate():  # noqa: ASYNC110 (what is awaited has no event)
            await asyncio.sleep(0.005)
