"""docs/reference/http.md names every path and every refusal, with its status."""

import re
from pathlib import Path

import vkprovider
from tests.support.docs import ROOT
from vkprovider.domain.session.inbox import EventOutcome

PACKAGE = Path(vkprovider.__file__).parent
SOURCES = [*(PACKAGE / "web").glob("*.py"), *(PACKAGE / "serving").glob("*.py"), PACKAGE / "app" / "page.py"]
CODE = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
PAGE = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def test_every_refusal_stands_there_with_its_status() -> None:
    refused = set(re.findall(r'Refused\(\s*(\d+),\s*"(\w+)"', CODE))
    described = set(re.findall(r"^\| `([A-Z]\w+)` \| (\d+) \|", PAGE, re.MULTILINE))
    assert {(reason, status) for status, reason in refused} <= described
    others = {reason for reason, _ in described} - {reason for _, reason in refused}
    assert {reason for reason in others if f'"{reason}"' not in CODE} == set()
    assert set(re.findall(r'InputError\(\s*"(\w+)"', CODE)) - {"SettingInvalid"} <= {reason for reason, _ in described}


def test_every_path_stands_there() -> None:
    routes = set(re.findall(r'router\.add_(get|post)\("([^"]+)"', CODE))
    routes |= set(re.findall(r'\("(GET|POST)", "(/[^"]+)"\)', CODE))
    assert len(routes) == 10
    for method, path in routes:
        assert f"| `{method.upper()} {path}` |" in PAGE


def test_every_outcome_stands_there() -> None:
    for outcome in EventOutcome:
        status = 503 if outcome.retry else 202
        assert re.search(rf"^\| {status} \|[^|]*`{outcome.value}`", PAGE, re.MULTILINE), outcome
