"""The shipped manifests on the real API server, as an administrator and as the provider meet them."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.apiserver import Admin, ApiServer


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    """The administrator; what a test made is gone afterwards."""
    async with Admin(apiserver) as admin:
        yield admin
        await admin.wipe("kube-system")


@pytest.fixture
async def provider(apiserver: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with the token of the provider's ServiceAccount."""
    headers = {"Authorization": f"Bearer {apiserver.provider_token()}"}
    connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
    async with aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector) as http:
        yield http
