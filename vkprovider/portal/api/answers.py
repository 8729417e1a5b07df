"""What the API answers beside labs: the form, the description of the routes, refusals.

{"detail": [{"msg": "…", "type": "unknown_user", "loc": ["path", "username"]}]}
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jinja2
import yaml
from aiohttp import web

from vkprovider.platform.http.answers import Refused
from vkprovider.portal.pure.form import FormOffer
from vkprovider.portal.pure.options import USE_DROPDOWN, Grounds, Rejection

_TEMPLATE: Final = "form.html"


def html(offer: FormOffer) -> str:
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
def document(dialect: str) -> dict[str, Any]:
    """Return the document for a dialect; it is shared, and not to be changed."""
    text = files(__package__).joinpath("openapi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = _of(yaml.safe_load(text), dialect)
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
