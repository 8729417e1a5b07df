"""What carries a session when its client leaves."""

import asyncio

import aiohttp
from aiohttp import web

from tests.component.controllers.looking import when
from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.streams.links import upgrade


async def test_who_leaves_after_a_ping_is_lost_and_no_error_of_ours() -> None:
    """The answer to the ping is what finds nobody."""
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def handle(request: web.Request) -> web.StreamResponse:
        link = await upgrade(request, "", 1.0)
        reader = link._socket._reader
        assert reader is not None
        assert request.transport is not None
        await when(lambda: reader._buffer, "the ping is there")
        request.transport.close()
        try:
            heard.put_nowait(await link.receive())
        except Exception as error:  # noqa: BLE001 (it is judged below)
            heard.put_nowait(error)
        return link.response

    app = web.Application()
    app.router.add_get("/", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        where = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        async with aiohttp.ClientSession() as http, http.ws_connect(where) as client, asyncio.timeout(30):
            await client.ping()
            assert isinstance(await heard.get(), ConnectionLost)
    finally:
        await runner.cleanup()
