"""The two dialects of the page: that of SQR-066, and that which Nublado's lab controller and spawner speak today.

| | sqr066 | nublado |
|---|---|---|
| create | 303 with `Location` | 201 with `Location` |
| delete | 202 at once | 204 when the lab is gone |
| an event's data | text; `progress` is an event of its own | JSON `{message, progress}`; no event `progress` |
| an image named in two ways | the most particular counts | refused |
| keys of images | `latest-weekly` | `latest_weekly` |
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vkprovider.platform.http.sse import frame
from vkprovider.portal.pure.operations import LineKind
from vkprovider.portal.pure.position import Sent

_GOING_ON: Final = "The lab is on its way"


class PortalDialect(msgspec.Struct, frozen=True):
    """How requests are answered.

    Attributes:
        name: As the setting has it.
        created: The status of the answer to a request that creates a lab.
        deleted: The status of the answer to one that deletes a lab.
        waits: Whether the latter is answered when the lab is gone.
        one_image: Whether a request that names its image in two ways is refused.
    """

    name: str
    created: int
    deleted: int
    waits: bool
    one_image: bool

    def frames(self, sent: Iterable[Sent]) -> bytes:
        """Return events as they are sent."""
        if self is SQR066:
            return b"".join(frame(each.id, _text(each), each.kind) for each in sent)
        return b"".join(_in_json(list(sent)))

    def said(self, sent: Sent) -> dict[str, Any]:
        """Return an event as the status of a lab lists it."""
        return {"event": str(sent.kind), "data": _text(sent), "sent": False}

    def keyed(self, keys: dict[str, Any]) -> dict[str, Any]:
        """Return an object with the keys of the dialect, where they may have hyphens, and without those of no value."""
        given = {key: value for key, value in keys.items() if value is not None}
        return given if self is SQR066 else {key.replace("-", "_"): value for key, value in given.items()}


SQR066: Final = PortalDialect("sqr066", created=303, deleted=202, waits=False, one_image=False)
NUBLADO: Final = PortalDialect("nublado", created=201, deleted=204, waits=True, one_image=True)
DIALECTS: Final = {dialect.name: dialect for dialect in (SQR066, NUBLADO)}


def _text(sent: Sent) -> str:
    return str(sent.progress) if sent.kind is LineKind.PROGRESS else sent.text


def _in_json(sent: list[Sent]) -> Iterable[bytes]:
    """Yield events with data in JSON; progress goes with the next line, or is one if none follows."""
    for number, each in enumerate(sent):
        kind, message = each.kind, each.text
        if kind is LineKind.PROGRESS:
            if any(later.kind is LineKind.INFO for later in sent[number + 1 :]):
                continue
            kind, message = LineKind.INFO, message or _GOING_ON
        data: dict[str, Any] = {"message": message}
        if kind is LineKind.INFO and each.progress:
            data["progress"] = each.progress
        yield frame(each.id, msgspec.json.encode(data).decode(), kind)
