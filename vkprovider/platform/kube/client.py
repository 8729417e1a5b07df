"""The Kubernetes API as verbs over raw JSON bytes.

Bytes, because decoding into a client library's models costs fifty times what msgspec costs, and because most callers
read one field of a response. Every refusal and every broken connection becomes an error of `vkprovider.platform.errors`
with the API server's message.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from vkprovider import __version__
from vkprovider.platform import wellknown
from vkprovider.platform.errors import DeadlineExceeded, Throttled
from vkprovider.platform.kube.clock import ApiClock
from vkprovider.platform.kube.flow import Flow, Lane, TokenBucket
from vkprovider.platform.settings import KubeSettings

if TYPE_CHECKING:
    from vkprovider.platform.kube.http.credentials import ClusterAccess
    from vkprovider.platform.kube.http.websockets import KubeWebSocket

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
Guard = Callable[[], None]
"""Called in the loop step that sends a request; raises `Fenced` to stop it."""

USER_AGENT: Final = f"vkprovider/{__version__}"
"""The part before the slash becomes the field manager of plain writes."""
_DEFAULTS: Final = KubeSettings()


def user_agent(replica: str, program: str = wellknown.MANAGER) -> str:
    """Return the User-Agent of a replica of a program."""
    return f"{program}/{__version__} ({replica})"


_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_CORE_AT: Final = 3  # position of the resource in `/api/v1/…`
_GROUP_AT: Final = 4  # and in `/apis/<group>/<version>/…`


def resource_of(path: str) -> str:
    """Return the resource of a path, as RBAC names it.

    >>> resource_of("/api/v1/namespaces/a/pods/b/status")
    'pods/status'
    >>> resource_of("/apis/vkprovider.io/v1alpha1/cmlworkers/a")
    'cmlworkers'
    """
    words = path.split("/")
    at = _CORE_AT if path.startswith("/api/") else _GROUP_AT
    if words[at : at + 1] == ["namespaces"] and len(words) > at + 2:
        at += 2  # of an object in it, not of the namespace itself
    if len(words) <= at:
        return "other"
    return f"{words[at]}/{words[at + 2]}" if len(words) > at + 2 else words[at]


class KubeClient:
    """One API server; raw JSON bytes in and out.

    aiohttp is imported when the first client is made, so that commands which need none start without it.

    All calls have a `path` such as `/api/v1/namespaces/default/pods/a`, return the body of the response, and raise
    errors of `vkprovider.platform.errors`. None retries a refused request: when to retry is the caller's decision.

    Attributes:
        server: The API server's URL.
        namespace: Of the kubeconfig's context, or of the ServiceAccount.
        context: The kubeconfig's; empty in a cluster.
        flow: Admits its requests.
        now: A monotonic clock, for its pace and its informers.
        dice: Evenly between 0 and 1, for the same.
        relisting: Held by the informer that lists again.
        writes: Requested writes by resource (`pods/status`) and verb (`patch`).
    """

    def __init__(
        self,
        access: "ClusterAccess",
        reload: Callable[[], Awaitable["ClusterAccess"]],
        settings: KubeSettings = _DEFAULTS,
        *,
        user_agent: str = USER_AGENT,
        timeout_s: float = 15,
        now: Callable[[], float] = time.monotonic,
        dice: Callable[[], float] = random.random,
    ) -> None:
        from vkprovider.platform.kube.http.transport import ApiTransport  # noqa: PLC0415 (see above)

        self.server = access.server
        self.namespace = access.namespace
        self.context = access.context
        self._timeout_s = timeout_s
        self.now = now
        self.dice = dice
        self._bucket = TokenBucket(settings.qps, settings.burst, now=now)
        self.flow = Flow(settings.in_flight_max, now=now)
        self._transport = ApiTransport(access, reload, user_agent=user_agent)
        self.relisting = asyncio.Lock()
        self.writes: dict[tuple[str, str], int] = {}

    @classmethod
    async def connect(
        cls,
        settings: KubeSettings = _DEFAULTS,
        *,
        context: str | None = None,
        user_agent: str = USER_AGENT,
        timeout_s: float = 15,
    ) -> Self:
        """Read the credentials; nothing is sent, so this works while the API server is down.

        Args:
            settings: The kubeconfig, or several separated by `:` (without it see `auth.load`), and the limits.
            context: One of its contexts; None for the current one.
            user_agent: Shown in audit logs.
            timeout_s: From the call to the last byte of the response, including the wait for the rate limit.

        Raises:
            InputError: The kubeconfig is missing, invalid, or uses an unsupported feature.
            Unauthorized: A login plugin refused.
        """
        from vkprovider.platform.kube.http import auth  # noqa: PLC0415 (see above)

        path = settings.kubeconfig
        access = await auth.load(path, context)
        return cls(
            access,
            partial(auth.load, path, access.context or context),  # even if the current one changes
            settings,
            user_agent=user_agent,
            timeout_s=timeout_s,
        )

    @property
    def clock(self) -> ApiClock:
        """The API server's clock, by its answers."""
        return self._transport.clock

    @property
    def requests_total(self) -> int:
        """Requests sent, including watches."""
        return self._transport.requests_total

    @property
    def errors(self) -> Mapping[str, int]:
        """Requests that were refused, by status (`403`), or got no response (`none`)."""
        return self._transport.errors

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float | None = None,
        guard: Guard | None = None,
        lane: Lane = Lane.WORK,
        brief: bool = False,
    ) -> bytes:
        """Send one request and return the body of the response.

        Args:
            method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
            path: Already percent-encoded; may carry a query.
            params: Further query parameters; escaped here.
            body: The request's body.
            content_type: The body's.
            timeout_s: Deadline of this call; by default the client's.
            guard: Called in the loop step that sends, after any wait; raises `Fenced` to stop the request.
            lane: What the request is for: the order in which requests go.
            brief: Return only the object's metadata, for callers that need no more than its resourceVersion.

        Raises:
            OutsideError: Any of its kinds.
        """
        if method != "GET":
            what = resource_of(path), _VERBS.get(method, method)
            self.writes[what] = self.writes.get(what, 0) + 1
        timeout_s = timeout_s or self._timeout_s
        exchange, has_turn = self._transport.exchange, False
        try:
            async with asyncio.timeout(timeout_s):
                if lane is not Lane.AT_ONCE:
                    await self._wait_turn(timeout_s, f"{method} {path}")
                async with self.flow.turn(lane):
                    has_turn = True
                    return await exchange(
                        method, path, params=params, body=body, content_type=content_type, guard=guard, brief=brief
                    )
        except TimeoutError:
            if not has_turn:
                raise Throttled(
                    f"{method} {path}: not sent within {timeout_s:g} s: others wait before it, because {self.server} "
                    "answers slowly or asked for a pause",
                    status=0,
                ) from None
            self._transport.count_error()
            raise DeadlineExceeded(f"{method} {path}: {self.server} did not answer within {timeout_s:g} s") from None

    async def _wait_turn(self, within_s: float, what: str) -> None:
        """Wait until the rate limit allows one more request.

        Raises:
            Throttled: It does not within the deadline; nothing was sent.
        """
        wait_s = self._bucket.reserve()
        if wait_s >= within_s:
            self._bucket.cancel()
            raise Throttled(
                f"{what}: not sent: {wait_s:.0f} s of requests are queued before it; raise VKPROVIDER_API_QPS", status=0
            )
        if wait_s:
            try:
                await asyncio.sleep(wait_s)
            except asyncio.CancelledError:
                self._bucket.cancel()
                raise

    async def get(self, path: str, params: Mapping[str, str] | None = None, **how: Any) -> bytes:
        """Read an object, or one page of a collection; `how` goes to `request`, here and below."""
        return await self.request("GET", path, params=params, **how)

    async def create(self, path: str, body: bytes, **how: Any) -> bytes:
        """POST `body` to a collection. `Conflict` means that the name exists."""
        return await self.request("POST", path, body=body, **how)

    async def replace(self, path: str, body: bytes, **how: Any) -> bytes:
        """PUT an object; with a resourceVersion in it, `Conflict` means that another client wrote first."""
        return await self.request("PUT", path, body=body, **how)

    async def merge_patch(self, path: str, body: bytes, **how: Any) -> bytes:
        """PATCH by RFC 7386: mappings are merged, lists replaced, null deletes. Works for custom resources too."""
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH, **how)

    async def json_patch(self, path: str, body: bytes, **how: Any) -> bytes:
        """PATCH by RFC 6902: operations, of which `test` makes a change depend on what is there."""
        return await self.request("PATCH", path, body=body, content_type=JSON_PATCH, **how)

    async def strategic_patch(self, path: str, body: bytes, **how: Any) -> bytes:
        """PATCH a built-in kind: lists such as `conditions` are merged by their key; it can only add `podIPs`."""
        return await self.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH, **how)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        grace_s: int | None = None,
        propagation: str | None = None,
        resource_version: str | None = None,
        **how: Any,
    ) -> bytes:
        """Delete an object; `Conflict` means that the object has another UID or version.

        Args:
            path: The object's.
            uid: Delete only this object, not a later one of the same name.
            grace_s: `gracePeriodSeconds`; 0 removes a Pod that its kubelet has stopped.
            propagation: `Foreground`, `Background` or `Orphan`.
            resource_version: Delete only this version.
            **how: For `request`.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if propagation is not None:
            options["propagationPolicy"] = propagation
        held = {"uid": uid, "resourceVersion": resource_version}
        if given := {name: value for name, value in held.items() if value is not None}:
            options["preconditions"] = given
        return await self.request("DELETE", path, body=msgspec.json.encode(options), **how)

    async def version(self) -> str:
        """Return the server's version, such as `v1.36.3`."""
        return str(msgspec.json.decode(await self.get("/version"))["gitVersion"])

    def stream(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        inactivity_s: float = 120.0,
        brief: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[list[bytes]]]:
        """Open a stream of lines, such as a watch; no limit applies to it.

        Args:
            path: Already percent-encoded.
            params: The query.
            inactivity_s: Raise `DeadlineExceeded` after so long without a byte; also the deadline of the head.
            brief: Let a watch return only the objects' metadata.

        Returns:
            A context that is entered when the server has accepted the request. Its value iterates over batches of whole
            lines, one batch per arrival of data, of whatever length. It ends when the stream ends or breaks; an
            unfinished last line is dropped.

        Raises:
            OutsideError: Any of its kinds, on entry; later only `DeadlineExceeded`.
        """
        return self._transport.lines(path, params, inactivity_s=inactivity_s, brief=brief)

    async def websocket(
        self,
        path: str,
        params: Sequence[tuple[str, str]],
        protocols: Sequence[str],
        *,
        within_s: float = 15.0,
    ) -> "KubeWebSocket":
        """Open a WebSocket, such as a session of `exec`; no limit applies to it.

        Args:
            path: Already percent-encoded.
            params: The query, whose names may come several times.
            protocols: The subprotocols that the caller speaks, the best one first.
            within_s: The deadline of the handshake.

        Raises:
            OutsideError: Any of its kinds, with what the API server or the kubelet behind it says.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._transport.websocket(path, params, protocols)
        except TimeoutError:
            self._transport.count_error()
            raise DeadlineExceeded(f"GET {path}: {self.server} did not answer within {within_s:g} s") from None

    async def close(self) -> None:
        """Close every connection but WebSockets, which their callers close."""
        await self._transport.close()
