"""Requests to the portal: https://sqr-066.lsst.io/, "Lab controller REST API"."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from yarl import URL

from jupyterhub_vkprovider.refusals import ABSENT_TYPE, Refusal, refusal_of
from jupyterhub_vkprovider.stream import Message, Parser

PREFIX: Final = "/nublado/spawner/v1"
_PASSING: Final = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
_SHOWN: Final = (HTTPStatus.OK,)
_BEGUN: Final = (HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.SEE_OTHER)
_ENDED: Final = (HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)
_WHOLE_PAGE: Final = re.compile(r"<html[\s>]", re.IGNORECASE)
_FOREIGN: Final = "was answered by a server other than the lab service, such as a login page; see c.Spawner.service_url"
_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 30.0
_DELETE_S: Final = 310.0
"""In Nublado's dialect, DELETE is answered after the lab has gone."""
_QUIET_S: Final = 45.0
"""The portal writes a comment every 15 s."""


class SilentError(Exception):
    """The portal did not answer: nothing did, or a broken server, or another one, such as a login page."""


class RefusedError(Exception):
    """The portal has answered no.

    Attributes:
        refusal: The answer.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class TokenFileError(Exception):
    """The file of the hub's token cannot be read."""


@dataclass(frozen=True)
class Answer:
    """An answer of the portal that is not a refusal. A 404 for a user without a lab is such an answer.

    Attributes:
        date: The header `Date`: the portal has that of its API server there.
    """

    code: int
    body: bytes
    date: str = ""


@dataclass(frozen=True)
class Service:
    """The portal, as one user's spawner asks it.

    Each request has a connection of its own, so that no stream keeps another request waiting.

    Attributes:
        url: The portal's address, without a path.
        user: The name in paths.
        token_file: Has the hub's token; it is read for each request, because kubelets replace it.
        ca_file: Certificates that prove the portal; None for those of the system.
    """

    url: str
    user: str
    token_file: Path
    ca_file: Path | None = None
    quiet_s: float = field(default=_QUIET_S, repr=False)

    async def form(self, token: str) -> str:
        """Return the form in which a learner chooses a lab.

        Raises:
            SilentError: No answer.
            RefusedError: The answer is no.
        """
        answer = await self._ask("GET", f"/lab-form/{self._name}", token, codes=_SHOWN)
        form = answer.body.decode(errors="replace")
        if _WHOLE_PAGE.search(form):
            raise SilentError(f"the form of {self.user} {_FOREIGN}")
        return form

    async def create(self, token: str, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Ask for a lab.

        Raises:
            SilentError: No answer; the lab may have been asked for.
            RefusedError: The answer is no.
        """
        body = {"options": dict(options), "env": dict(env)}
        await self._ask("POST", f"/labs/{self._name}/create", token, body, codes=_BEGUN)

    async def delete(self) -> bool:
        """Ask for the end of the lab, as the hub; return whether it has gone already.

        Raises:
            SilentError: No answer; the end may have been asked for.
            RefusedError: The answer is no.
            TokenFileError: There is no token of the hub.
        """
        path = f"/labs/{self._name}"
        answer = await self._ask("DELETE", path, self.hub_token(), answer_s=_DELETE_S, codes=_ENDED)
        return answer.code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)

    async def status(self) -> Answer:
        """Return the status of the lab, or the 404 of its absence, as the hub gets it.

        Raises:
            SilentError: No answer.
            RefusedError: The answer is no.
            TokenFileError: There is no token of the hub.
        """
        return await self._ask("GET", f"/labs/{self._name}", self.hub_token(), codes=(*_SHOWN, HTTPStatus.NOT_FOUND))

    async def events(self, token: str, last_id: str = "") -> AsyncGenerator[Message, None]:
        """Yield the messages of the current operation until the connection ends.

        Raises:
            SilentError: No answer, or the connection was lost.
            RefusedError: The answer is no.
        """
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=self.quiet_s)
        path = f"/labs/{self._name}/events"
        async with self._request("GET", path, token, headers=headers, timeout=timeout) as answer:
            if answer.status != HTTPStatus.OK:
                await _checked(answer, ())
            if answer.content_type != "text/event-stream":
                raise SilentError(f"a stream of {self.user} {_FOREIGN}")
            parser = Parser(last_id)
            async for received in answer.content.iter_any():
                for message in parser.feed(received):
                    yield message

    def hub_token(self) -> str:
        """Return the hub's token.

        Raises:
            TokenFileError: The file cannot be read, or is empty.
        """
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise TokenFileError(f"cannot read the hub's token from {self.token_file}: {error}") from error
        if not token:
            raise TokenFileError(f"{self.token_file}, the file of the hub's token, is empty")
        return token

    @property
    def _name(self) -> str:
        return quote(self.user, safe="")

    async def _ask(
        self,
        method: str,
        path: str,
        token: str,
        body: Any = None,
        *,
        codes: Collection[int],
        answer_s: float = _ANSWER_S,
    ) -> Answer:
        """Send a request and read its answer; see `_checked`."""
        timeout = aiohttp.ClientTimeout(total=answer_s, sock_connect=_CONNECT_S)
        data = None if body is None else aiohttp.JsonPayload(body, dumps=_json)
        async with self._request(method, path, token, data=data, timeout=timeout) as answer:
            return await _checked(answer, codes)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, token: str, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bearer {token}", **options.pop("headers", {})}
        url = URL(f"{self.url.rstrip('/')}{PREFIX}{path}", encoded=True)
        try:
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=await self._trust())) as session,
                session.request(method, url, headers=headers, allow_redirects=False, **options) as answer,
            ):
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SilentError(f"{method} {url}: {str(error) or type(error).__name__}") from error

    async def _trust(self) -> ssl.SSLContext | bool:
        if self.ca_file is None or not self.url.startswith("https:"):
            return True
        return await asyncio.to_thread(ssl.create_default_context, cafile=str(self.ca_file))


def _json(body: Any) -> str:
    """Return JSON. A file that a form uploads is bytes in the hub's options, and text here."""
    return json.dumps(body, default=lambda value: bytes(value).decode(errors="replace"))


async def _checked(answer: aiohttp.ClientResponse, codes: Collection[int]) -> Answer:
    """Return the answer, if it is one of the portal's that was asked for.

    Args:
        answer: As it came; perhaps of a proxy before the portal.
        codes: The statuses that it may have; 404 is that of a lab that does not exist.

    Raises:
        SilentError: A proxy or server is out of order, which passes, or answers for the portal.
        RefusedError: The answer is no.
    """
    body, status = await answer.read(), answer.status
    refusal = refusal_of(status, body)
    known: dict[int, bool] = {
        HTTPStatus.SEE_OTHER: "/labs/" in answer.headers.get("Location", ""),
        HTTPStatus.NOT_FOUND: ABSENT_TYPE in refusal.types,
    }
    if status in codes and known.get(status, True):
        return Answer(status, body, answer.headers.get("Date", ""))
    if (
        status in codes
        or status < HTTPStatus.BAD_REQUEST
        or (status == HTTPStatus.NOT_FOUND and not any(refusal.types))
    ):
        raise SilentError(f"{answer.method} {answer.url} (HTTP {status}) {_FOREIGN}")
    if status in _PASSING or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and not refusal.types):
        raise SilentError(f"HTTP {status}: {refusal.text}")
    raise RefusedError(refusal)
