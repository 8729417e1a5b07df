"""Requests as data: what a service offers (`Operation`), and one use of it (`OperationRequest`)."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tunnels.base import AllowList

_JSON: Final = "application/json"


class Operation(msgspec.Struct, frozen=True):
    """A request that a service offers.

    Attributes:
        name: The operation's name in metrics.
        method: `GET`, `PUT`, …
        path: Below the service's base: `/labs/{lab}/start`.
        timeout_s: Seconds until `DeadlineExceeded`, login, retries and waiting for a connection included.
        anonymous: Whether it needs no token.
        slow: Whether it may keep a connection busy for long, so that only a few may run at once.
    """

    name: str
    method: str
    path: str
    timeout_s: float = 0.0
    anonymous: bool = False
    slow: bool = False

    def to(
        self,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        json: object = None,
        secrets: Iterable[str] = (),
        **ids: str,
    ) -> "OperationRequest":
        """Return a request of this operation.

        Args:
            params: The query.
            body: A body without a content type.
            json: A body to be encoded as JSON, instead of `body`.
            secrets: Parts of the body that no error message may quote.
            ids: The values of the path's placeholders.
        """
        content_type = ""
        if json is not None:
            body, content_type = msgspec.json.encode(json), _JSON
        return OperationRequest(self, self.path.format(**ids), params, body, content_type, tuple(secrets))


class OperationRequest(msgspec.Struct, frozen=True):
    """One use of an operation; see `Operation.to`."""

    operation: Operation
    path: str
    params: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = ""
    secrets: tuple[str, ...] = ()


def allow_list(operations: Iterable[Operation], base: str) -> AllowList:
    """Return the list that lets exactly these operations pass, below `base`."""
    return AllowList((each.method, base + each.path) for each in operations)
