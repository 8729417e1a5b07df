"""Sessions of aiohttp, opened in one way for every client of ours."""

from collections.abc import Mapping, Sequence

import aiohttp

from tunnels.outgoing.guard import GuardedRequest


class BrokenOffError(aiohttp.ClientConnectionError):
    """The connection ended after a write was sent and before its answer: it may have been carried out."""


def open_session(
    connector: aiohttp.TCPConnector,
    *,
    headers: Mapping[str, str] | None = None,
    connect_s_max: float | None = None,
    middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
) -> aiohttp.ClientSession:
    """Open a session whose requests ask the guard of `guard.guarded_by`, and whose writes are sent at most once.

    It has no deadline of its own but for connecting: callers set one for each request. It reads neither the environment
    (which knows no CIDR in `NO_PROXY`) nor netrc: callers pass `proxy=`, from `proxies.proxy_of`.

    Args:
        connector: Its connections; closed with the session.
        headers: Sent with every request.
        connect_s_max: Seconds for one attempt to connect; None for no limit.
        middlewares: Of the caller, which see an answer after ours.
    """
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s_max),
        headers=headers,
        skip_auto_headers=("Content-Type", "User-Agent"),
        request_class=GuardedRequest,
        middlewares=(*middlewares, _write_once),
        trust_env=False,
    )


async def _write_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request, and keep aiohttp from sending a write again when a kept-alive connection breaks.

    aiohttp repeats every idempotent method (RFC 9110, 9.2.2) after `ClientOSError` and `ServerDisconnectedError`. A
    second PUT or DELETE may undo what another client did in between, so only reads are repeated.

    Raises:
        BrokenOffError: In place of those two, for a write.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:  # there was no connection, so nothing was sent
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method in request.GET_METHODS:
            raise
        raise BrokenOffError(str(error) or "the server closed the connection") from error
