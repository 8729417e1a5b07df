"""A world for each test: a whole installation in its own loop, on the real API server; or parts of a replica."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.component.controllers.claimdocument import ClaimDocument
from tests.component.controllers.harness import World, open_world
from tests.component.controllers.parts import connect
from tests.support.apiserver import CONFIG_MAPS, MEMBERS, NODE_LEASES, Admin, ApiServer
from tests.support.faultyapi import FaultyApi
from vkprovider.platform.kube.client import KubeClient


@pytest.fixture
async def world(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(apiserver, tmp_path) as world:
        yield world


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    """The administrator; Leases and ConfigMaps that a test has made are gone afterwards."""
    async with Admin(apiserver) as admin:
        yield admin
        for collection in (NODE_LEASES, MEMBERS, CONFIG_MAPS):
            await admin.delete(collection)


@pytest.fixture
async def api(apiserver: ApiServer) -> AsyncIterator[FaultyApi]:
    """A proxy before the real API server, with an administrator's rights."""
    async with FaultyApi(apiserver.url, apiserver.admin_tls()) as api:
        yield api


@pytest.fixture
async def real_kube(api: FaultyApi) -> AsyncIterator[KubeClient]:
    """A client of the real API server, through the proxy."""
    async with AsyncExitStack() as stack:
        yield await connect(stack, api)


@pytest.fixture
def claims(admin: Admin, api: FaultyApi) -> ClaimDocument:
    """The claims ConfigMap of worker `w1`."""
    return ClaimDocument(admin, api)
