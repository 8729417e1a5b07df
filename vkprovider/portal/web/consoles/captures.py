"""Packets of a link in the browser: a form begins a capture, and its answer is the file, which grows until the end.

All is done by `exec` with the visitor's own token, as `kubectl lablet capture` does; the portal keeps nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from aiohttp import web

from vkprovider.lablet import captures, names
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.http.bodies import Form
from vkprovider.platform.http.connections import uncount, unless_left
from vkprovider.platform.http.served import attachment
from vkprovider.platform.kube.client import KubeClient
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.bridge import PROTOCOLS, BrowserConsoles, UpstreamConsole
from vkprovider.portal.web.consoles.opening import ConsoleTarget
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import Visitor, VisitorReviews

_KIND: Final = "application/vnd.tcpdump.pcap"
LEFT: Final = 499
"""The status in the log of an answer whose client has left: nginx's."""


class CaptureDownload(NamedTuple):
    """What a capture of a visitor needs.

    Attributes:
        site: What all views share.
        reviews: Asks whether somebody still may open a console.
        consoles: The open ones, among which a capture counts.
    """

    site: SiteContext
    reviews: VisitorReviews
    consoles: BrowserConsoles

    async def answer(
        self,
        request: web.Request,
        visitor: Visitor,
        target: ConsoleTarget,
        wanted: CaptureRequest,
        may: Callable[[], bool] | None,
    ) -> web.StreamResponse:
        """Begin a capture, and answer with its file, which ends when `may` says no, too.

        Raises:
            Rejected: Nothing is captured; the text says why.
            Refused: There are too many consoles.
        """
        with self.consoles.place(visitor.known.of_cluster.username) as leaving:
            uncount(request)
            async with (
                self.site.as_visitor.client(visitor.token) as kube,
                self.reviews.holding(visitor, target.right, may=may) as withdrawn,
            ):
                sent = _sent(request, kube, target, wanted.words(), (leaving, withdrawn))
                return await unless_left(request, sent) or web.Response(status=LEFT)


def asked(form: Form) -> CaptureRequest:
    """Return what a form asks for: a link by a button, or one that is typed.

    Raises:
        Rejected: It is not understood.
    """
    fields = {name: str(form.get(name, "")).strip() for name in ("end", "link", "filter", "packets", "seconds")}
    given = {f"--{name}": fields[name] for name in ("filter", "packets", "seconds") if fields[name]}
    try:
        return captures.read(
            [names.CAPTURE, fields["end"] or fields["link"], *(f"{name}={text}" for name, text in given.items())]
        )
    except InputError as error:
        raise Rejected(Grounds.CANNOT_BE_DONE, f"Nothing is captured: {error.message}.") from None


async def _sent(
    request: web.Request,
    kube: KubeClient,
    target: ConsoleTarget,
    words: list[str],
    ends: tuple[asyncio.Event, ...],
) -> web.StreamResponse:
    query = target.command(words, stdin=False, tty=False, stderr=False)
    try:
        socket = await kube.websocket(target.path(), query, PROTOCOLS)
    except OutsideError as error:
        raise _nothing(frames.refusal(error, target.device).text) from None
    closing = asyncio.create_task(_close_after(socket.close, ends), name="capture: right")
    try:
        session = UpstreamConsole(socket, target.device)
        if not (data := await session.read()):
            raise _nothing(session.end.text)
        headers = {"Content-Type": _KIND, **attachment(f"{target.pod}.pcap")}
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        with suppress(OutsideError):  # what has come is a whole file
            while data:
                await answer.write(data)
                data = await session.read()
        await answer.write_eof()
        return answer
    finally:
        closing.cancel()
        await socket.close()


async def _close_after(close: Callable[[], Awaitable[object]], ends: tuple[asyncio.Event, ...]) -> None:
    waiting = [asyncio.create_task(end.wait()) for end in ends]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    await close()


def _nothing(why: str) -> Rejected:
    return Rejected(Grounds.CANNOT_BE_DONE, f"Nothing is captured. {why}")
