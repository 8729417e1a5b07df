"""Screens of browsers: each is a WebSocket of a page, which speaks VNC (RFC 6143) with the device through `exec`.

The portal passes the bytes on and reads none of them. Neither way is anything dropped: who reads too slowly holds the
other end up, and VNC sends a picture only when it was asked for the next one. Text messages are those of a console,
`{"ticket": …}` of the browser and `{"type": "alive"}` or `{"type": "end"}` of the portal.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import WSMsgType, web

from vkprovider.lablet import names
from vkprovider.platform.errors import OutsideError, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.bridge import ALIVE_S, SocketRun, UpstreamConsole, after, executing, first_end
from vkprovider.portal.web.consoles.frames import BytesShown, ConsoleEnd, FrameError, SessionRenewed, Typed, Why
from vkprovider.portal.web.consoles.opening import ConsoleTarget

_ENDED: Final = ConsoleEnd(Why.ENDED, "The screen has ended.")


def screen_run(
    kube: KubeClient, target: ConsoleTarget, withdrawn: asyncio.Event, renewed: Callable[[str], None]
) -> SocketRun:
    """Return what carries the screen of a device.

    Args:
        kube: A client with the token of the person, and no other credentials.
        target: The device.
        withdrawn: Is set when the person may not use it any more.
        renewed: Called with the ticket of their session when it goes on with another token.
    """

    async def run(socket: web.WebSocketResponse, leaving: asyncio.Event) -> ConsoleEnd:
        try:
            words = (names.SCREEN, target.device)
            async with executing(kube, target, words, stdin=True, tty=False, stderr=False) as screen:
                return await first_end(
                    picture=_show(screen, socket),
                    input=_pass_on(socket, screen, renewed),
                    life=_tell(socket),
                    right=after(withdrawn, frames.WITHDRAWN),
                    leaving=after(leaving, frames.LEAVING),
                )
        except OutsideError as error:
            return frames.refusal(error, target.device, what="screen")
        except ConnectionResetError:
            return _ENDED  # the browser has left

    return run


async def _show(screen: UpstreamConsole, socket: web.WebSocketResponse) -> ConsoleEnd:
    while data := await screen.read():
        await socket.send_bytes(data)
    return screen.end


async def _pass_on(
    socket: web.WebSocketResponse, screen: UpstreamConsole, renewed: Callable[[str], None]
) -> ConsoleEnd:
    async for message in socket:
        if message.type not in {WSMsgType.BINARY, WSMsgType.TEXT}:
            break
        try:
            match frames.parse(message.data):
                case Typed(data):
                    await screen.write(data)
                case SessionRenewed(ticket):
                    renewed(ticket)
                case BytesShown():
                    pass  # a picture is asked for when the one before is there
        except FrameError:
            return frames.NONSENSE
        except Unavailable:
            return frames.BROKEN
    return _ENDED


async def _tell(socket: web.WebSocketResponse) -> ConsoleEnd:
    """Tell the page now and then that the portal is there, for ever.

    Raises:
        ConnectionResetError: The browser has left.
    """
    while True:
        await asyncio.sleep(ALIVE_S)
        await socket.send_str(frames.ALIVE)
