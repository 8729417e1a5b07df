"""What the API answers: labs in its two dialects, the form, the description of the routes, refusals.

| | sqr066 | nublado |
|---|---|---|
| create | 303 with `Location` | 201 with `Location` |
| delete | 202 at once | 204 when the lab is gone |
| an event's data | text; `progress` is an event of its own | JSON `{message, progress}`; no event `progress` |
| an image named in two ways | the most particular counts | refused |
| keys of images | `latest-weekly` | `latest_weekly` |

Refusals have one form in both dialects: {"detail": [{"msg": "…", "type": "unknown_user", "loc": ["path", "username"]}]}
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jinja2
import msgspec
import yaml
from aiohttp import web

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.sse import frame
from vkprovider.platform.objects import Event
from vkprovider.platform.times import iso
from vkprovider.portal.pure import facts, stream
from vkprovider.portal.pure.config import Amounts, amounts_of
from vkprovider.portal.pure.facts import UserLab, UserLabStatus, presence_of, status_of
from vkprovider.portal.pure.form import FormOffer
from vkprovider.portal.pure.options import USE_DROPDOWN, Grounds, Rejection
from vkprovider.portal.pure.posix import NO_POSIX_USER
from vkprovider.portal.pure.record import LabRequest
from vkprovider.portal.pure.stream import LineKind, Position, Sent, news

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

    def images(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `images`: in Nublado's, whether one is there is never unknown."""
        if self is SQR066:
            return self.keyed(found)
        shown = {key: _known(value) for key, value in found.items() if key != "all" and value is not None}
        return self.keyed({**shown, "all": [_known(each) for each in found["all"]]})

    def prepulls(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `prepulls`: in Nublado's, what a node has is never unknown, and images have a source."""
        if self is SQR066:
            return found
        nodes = [{**node, "cached": node["cached"] or []} for node in found["nodes"]]
        known = {key: value for key, value in found.items() if key != "workbenches"}
        return {**known, "config": {"source": _SOURCE, **found["config"]}, "nodes": nodes}

    def keyed(self, keys: dict[str, Any]) -> dict[str, Any]:
        """Return an object with the keys of the dialect, where they may have hyphens, and without those of no value."""
        given = {key: value for key, value in keys.items() if value is not None}
        return given if self is SQR066 else {key.replace("-", "_"): value for key, value in given.items()}


SQR066: Final = PortalDialect("sqr066", created=303, deleted=202, waits=False, one_image=False)
NUBLADO: Final = PortalDialect("nublado", created=201, deleted=204, waits=True, one_image=True)
DIALECTS: Final = {dialect.name: dialect for dialect in (SQR066, NUBLADO)}


def _known(image: dict[str, Any]) -> dict[str, Any]:
    return {**image, "prepulled": image["prepulled"] is True}


def _text(sent: Sent) -> str:
    return str(sent.progress) if sent.kind is LineKind.PROGRESS else sent.text


def _in_json(sent: list[Sent]) -> Iterable[bytes]:
    """Yield events with data in JSON; progress goes with each line, or is one if none follows."""
    for number, each in enumerate(sent):
        kind, message = each.kind, each.text
        if kind is LineKind.PROGRESS:
            if any(later.kind in _TELLING for later in sent[number + 1 :]):
                continue
            kind, message = LineKind.INFO, message or _GOING_ON
        data: dict[str, Any] = {"message": message}
        if kind is LineKind.INFO and each.progress:
            data["progress"] = math.ceil(each.progress * _STARTED_PERCENT / 100)
        yield frame(each.id, msgspec.json.encode(data).decode(), kind)


_TELLING: Final = frozenset({LineKind.INFO, LineKind.COMPLETE, LineKind.FAILED})
_STARTED_PERCENT: Final = 75
"""How far a spawner of Nublado is when the lab runs: the rest is the start of what runs in it."""
_NOBODY: Final = 65534
"""The uid and gid where a number must be and the token says none."""
_SOURCE: Final = {"type": "docker", "registry": wellknown.GROUP, "repository": "labletdefinitions"}
"""Where images come from, for a reader that must be told a registry."""


_RUNNING: Final = UserLabStatus.RUNNING
Body = dict[str, Any]


class Bodies:
    """Describes labs.

    Attributes:
        wall: Returns the API server's time in Unix seconds.
    """

    def __init__(
        self, dialect: PortalDialect, wall: Callable[[], float], amounts_of_image: Callable[[str], Amounts]
    ) -> None:
        """Create it.

        Args:
            dialect: How labs are described.
            wall: Returns the API server's time in Unix seconds.
            amounts_of_image: Returns what the Pod of an image needs.
        """
        self._dialect = dialect
        self.wall = wall
        self._amounts_of_image = amounts_of_image

    def running(self, labs: Iterable[UserLab]) -> list[str]:
        """Return the users whose labs run, in their order."""
        return [lab.user for lab in labs if status_of(lab) is _RUNNING]

    def lab(self, lab: UserLab, events: Iterable[Event]) -> Body:
        """Return the status of a lab."""
        return self._sqr066(lab, events) if self._dialect is SQR066 else self._nublado(lab)

    def end(self, end: float) -> Body:
        """Return the end of a lab, which may be infinite."""
        at = None if math.isinf(end) else iso(int(end))
        return {"ends_at": at, "ends": facts.words(end, self.wall())}

    def _sqr066(self, lab: UserLab, events: Iterable[Event]) -> Body:
        record = lab.record
        request = record.request
        _, sent = news(Position(), stream.tell(lab, events))
        return {
            "username": lab.user,
            "status": status_of(lab),
            "pod": presence_of(lab),
            "options": request.options if request is not None else {},
            "env": list(request.env) if request is not None else [],
            **_posix(request),
            "quotas": self._amounts(lab),
            "events": [self._dialect.said(each) for each in sent],
            **self._ours(lab),
        }

    def _nublado(self, lab: UserLab) -> Body:
        request = lab.record.request
        options = dict(request.options) if request is not None else {}
        image, user = request.definition if request is not None else "", _posix(request)
        url = _url(lab)
        return {
            "user": {"username": lab.user, **{key: _NOBODY if value is None else value for key, value in user.items()}},
            "options": {
                "image": image,
                "size": options.get("size", ""),
                "enable_debug": options.get("enable_debug", False),
                "reset_user_env": options.get("reset_user_env", False),
            },
            "status": status_of(lab),
            **({"internal_url": url} if url else {}),
            "resources": self._amounts(lab),
            "quota": None,
            **self._ours(lab),
        }

    def _amounts(self, lab: UserLab) -> Body:
        """Return the amounts that the lab needs of its worker, all of which are reserved."""
        request = lab.record.request
        if lab.pod is not None:
            needed = amounts_of(lab.pod.spec.overhead)
        else:
            needed = self._amounts_of_image(request.definition) if request is not None else Amounts()
        amounts = {"cpu": needed.cpus, "memory": needed.memory_bytes}
        return {"limits": amounts, "requests": amounts}

    def _ours(self, lab: UserLab) -> Body:
        """Return the fields that neither SQR-066 nor Nublado knows."""
        pod = lab.pod
        active = pod.metadata.annotations.get(names.ANNOTATION_LAST_ACTIVITY) if pod is not None else None
        return {**self.end(lab.end_at), "last_activity": active, "exposed": pod is not None and lab.exposed}


def _url(lab: UserLab) -> str:
    """Return the address of the lab in CML, or of its worker while only an agent knows CML; "" while there is none."""
    if lab.pod is None:
        return ""
    address = lab.pod.status.pod_ip
    fallback = f"https://{f'[{address}]' if ':' in address else address}/" if address else ""
    return lab.pod.metadata.annotations.get(names.ANNOTATION_LAB_URL) or fallback


def _posix(request: LabRequest | None) -> Body:
    """Return who the user of a lab is on a file system, as far as the token said that asked for the lab."""
    user = request.posix if request is not None else NO_POSIX_USER
    groups = [{"name": each.name, "id": each.id} for each in user.groups]
    return {"uid": user.uid, "gid": user.gid, "groups": groups}


_TEMPLATE: Final = "form.html"


def form_html(offer: FormOffer) -> str:
    """Return the form that makes an offer."""
    return _template().render(offer=offer, use_dropdown=USE_DROPDOWN)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, package_path="."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(_TEMPLATE)


_MARK: Final = "x-dialect"


@cache
def openapi_document(dialect: str, extend_s: int = 0, duration_max_s: int = 0) -> dict[str, Any]:
    """Return the document of the API; it is shared, and not to be changed.

    Args:
        dialect: The name of one.
        extend_s: By how many seconds one request may extend a lab; 0 if that is not to be said.
        duration_max_s: How long a lab may last at most; the same.
    """
    text = files(__package__).joinpath("openapi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = _of(yaml.safe_load(text), dialect)
    schemas = found["components"]["schemas"]
    if extend_s:
        schemas["Extension"]["properties"]["seconds"]["maximum"] = extend_s
    if duration_max_s:
        schemas["Options"]["properties"]["duration"]["anyOf"][1]["maximum"] = duration_max_s
    return found


def _of(part: Any, dialect: str) -> Any:
    """Return a part of the document without what belongs to another dialect."""
    if isinstance(part, list):
        return [_of(each, dialect) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {key: each for key, each in part.items() if not (isinstance(each, dict) and _foreign(each, dialect))}
    return {key: _of(each, dialect) for key, each in kept.items() if key != _MARK}


def _foreign(part: dict[str, Any], dialect: str) -> bool:
    return bool(part.get(_MARK, dialect) != dialect)


_GROUNDS: Final = {
    401: Grounds.INVALID_TOKEN,
    403: Grounds.PERMISSION_DENIED,
    429: Grounds.UNAVAILABLE,
    503: Grounds.UNAVAILABLE,
}
"""The grounds of refusals of access control, by their status."""


def rejected(rejections: Sequence[Rejection]) -> web.Response:
    """Return the answer to a request that is refused for these reasons; the first one decides the status."""
    details = [_detail(each.msg, each.grounds, each.loc) for each in rejections]
    return web.json_response({"detail": details}, status=rejections[0].grounds.status)


def refused(refusal: Refused) -> web.Response:
    """Return the answer to a request that access control refuses."""
    grounds = _GROUNDS.get(refusal.status_code, Grounds.UNAVAILABLE)
    detail = [_detail(refusal.message, grounds, ())]
    return web.json_response({"detail": detail}, status=refusal.status_code, headers=refusal.directions())


def _detail(msg: str, grounds: Grounds, loc: tuple[str, ...]) -> dict[str, Any]:
    return {"msg": msg, "type": grounds.word, **({"loc": list(loc)} if loc else {})}
