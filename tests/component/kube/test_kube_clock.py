"""The clock of an API server is that of its answers, not of the machine that asks."""

import time

from aiohttp import web

from tests.support.scripted import ScriptedServer, answer
from vkprovider.platform.kube.client import KubeClient

AHEAD_S = 2 * 3600


async def test_the_date_of_an_answer_tells_the_time(kube: KubeClient, server: ScriptedServer) -> None:
    async def ahead(request: web.Request) -> web.StreamResponse:
        response = await answer({})(request)
        response.headers["Date"] = "Thu, 26 Nov 2026 05:34:29 GMT"
        return response

    assert abs(kube.clock.wall() - time.time()) < AHEAD_S
    server.next(ahead)
    await kube.get("/api/v1/namespaces/a")
    assert 0 <= kube.clock.wall() - 1_795_671_269 < AHEAD_S
    assert abs(kube.clock.skew_s() - (time.time() - 1_795_671_269)) < AHEAD_S
    assert not kube.clock.is_sure()
