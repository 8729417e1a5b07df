"""The description of the routes, as OpenAPI, in one of the dialects."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

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
