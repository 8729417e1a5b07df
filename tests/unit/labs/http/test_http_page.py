"""docs/reference/http.md names every path and every refusal, with its status."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import vkprovider
from tests.support.docs import ROOT
from tools import httppage
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.http.refusals import ObjectInvalid
from vkprovider.labs.pure.session.inbox import EventOutcome
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.answers import Refused

PACKAGE = Path(vkprovider.__file__).parent
SOURCES = [
    *(
        path
        for folder in ("labs/http", "platform/http", "labs/wiring/parts", "mux/debug")
        for path in (PACKAGE / folder).glob("*.py")
    ),
    PACKAGE / "labs" / "wiring" / "main.py",
]
CODE = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
PAGE = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def test_every_refusal_of_the_code_is_a_kind_that_stands_there() -> None:
    """No word is made up on the way: handlers raise kinds, and nothing else that answers a client but the router."""
    names = {kind.__name__ for kind in httppage.kinds()}
    called = set(re.findall(r"\b([A-Z]\w+)\(", re.sub(r"^class .*$", "", CODE, flags=re.MULTILINE)))
    assert names <= called, "kinds that nothing raises"
    assert "Refused" not in called
    setting = r'InputError\((?!\s*(?:StartReason\.SETTING_INVALID|"SettingInvalid"),)'
    assert not re.search(rf"web\.HTTP(?!Exception\b|MethodNotAllowed\b)\w+|{setting}", CODE)
    described = dict(re.findall(r"^\| `([A-Z]\w+)` \| (\d+) \|", PAGE, re.MULTILINE))
    fixed = {kind.__name__: str(kind.status_code) for kind in httppage.kinds() if kind is not ObjectInvalid}
    assert described == fixed
    assert len(fixed) == 33


@pytest.mark.parametrize("kind", list(httppage.kinds()), ids=lambda kind: kind.__name__)
def test_every_kind_answers_with_its_word_and_directions(kind: type[Refused]) -> None:
    fault: Any = InputError(WorkerReason.CLAIM_STORE_INVALID, "the message")
    refusal = kind(fault if kind is ObjectInvalid else "the message")
    word = "ClaimStoreInvalid" if kind is ObjectInvalid else kind.__name__
    assert json.loads(refusal.text or "") == {"code": kind.status_code, "reason": word, "message": "the message"}
    assert 400 <= refusal.status == kind.status_code
    assert kind.remedy.endswith(".")
    assert ("WWW-Authenticate" in refusal.headers) == (kind.status_code == 401)
    assert refusal.headers.get("Retry-After", "0") == str(kind.retry_s)


def test_every_path_stands_there() -> None:
    routes = set(re.findall(r'router\.add_(get|post)\("([^"]+)"', CODE))
    routes |= set(re.findall(r'\bRoute\("(GET|POST)", "(/[^"]+)"', CODE))
    assert len(routes) == 19
    for method, path in routes:
        assert f"| `{method.upper()} {path}` |" in PAGE


def test_every_outcome_stands_there() -> None:
    for outcome in EventOutcome:
        status = 503 if outcome.retry else 202
        assert re.search(rf"^\| {status} \|[^|]*`{outcome.value}`", PAGE, re.MULTILINE), outcome
