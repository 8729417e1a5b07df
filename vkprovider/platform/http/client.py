"""One request to a server that is no API server: with a deadline, through the proxy of the environment, no redirects.

A client that asks a service for long, with tokens and retries, is `vkprovider.rest.client`.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from tunnels.outgoing import ProxyUnsupportedError, proxy_of


class HttpAnswer(NamedTuple):
    """What a server answers.

    Attributes:
        status: The HTTP status.
        body: All of it.
        headers: Their names in lower case.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class SilentError(Exception):
    """A server does not answer; its cause is what aiohttp says, if that says anything."""


async def ask(
    session: aiohttp.ClientSession,
    method: str,
    url: URL,
    *,
    within_s: float,
    bytes_max: int | None = None,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, str] | None = None,
    data: Mapping[str, str] | None = None,
    tls: Any = True,
) -> HttpAnswer:
    """Send a request and read the answer, whatever its status.

    Args:
        session: From `tunnels.outgoing.open_session`.
        method: Such as `GET`.
        url: With its path, already encoded if it is to stay so.
        within_s: From the request to the last byte of the answer.
        bytes_max: The longest answer; None for any.
        headers: Of the request.
        params: Its query.
        data: Its form.
        tls: How the certificate is verified, as aiohttp takes it.

    Raises:
        SilentError: There is no answer, or it is too long.
    """
    try:
        async with (
            asyncio.timeout(within_s),
            session.request(
                method,
                url,
                params=params,
                data=data,
                headers=headers,
                ssl=tls,
                proxy=proxy_of(str(url), os.environ),
                allow_redirects=False,
            ) as answer,
        ):
            its = {name.lower(): text for name, text in answer.headers.items()}
            return HttpAnswer(answer.status, await _body(answer, bytes_max), its)
    except (aiohttp.ClientError, ProxyUnsupportedError, OSError) as error:
        raise SilentError(str(error) or type(error).__name__) from error


async def _body(answer: aiohttp.ClientResponse, bytes_max: int | None) -> bytes:
    """Read an answer to its end, in however many pieces it comes.

    Raises:
        SilentError: It is too long.
    """
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if bytes_max is not None and len(body) > bytes_max:
            raise SilentError(f"the answer is longer than {bytes_max} bytes")
    return bytes(body)
