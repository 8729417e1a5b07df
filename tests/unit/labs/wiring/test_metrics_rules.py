"""Alert rules and dashboard name only what is exported; the runbook of every alert exists."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import vkprovider
from tools.markdown import anchor
from tools.monitoring import measures

HOME = Path(vkprovider.__file__).parents[1]
MONITORING = HOME / "manifests" / "monitoring"
CASES = Path(__file__).with_name("alerts_test.yaml")
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=Path(sys.executable).parent)

NOT_ON_THE_BOARD = {
    "instance_reconciliation_duration_seconds": "a series for each lablet: too many lines for a panel",
    "lab_nodes_booted": "the same",
    "process_virtual_memory_bytes": "says less than the resident memory",
    "process_start_time_seconds": "a time, not a curve; for rules about restarts",
    "process_max_fds": "a constant; for rules about open files",
    "vkprovider_clock_skew_seconds": "a flat line; `/ready` names it from 30 s on",
}
"""Metrics without a panel, and why."""

NAME = re.compile(r"\b(?:vkprovider|process|instance|lab)_[a-z_]+")
SELECTED = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    yield from ((rule["alert"], rule["expr"]) for rule in rules())
    yield from ((panel["title"], target["expr"]) for panel in panels() for target in panel["targets"])


def exported() -> dict[str, set[str]]:
    """Name every series with its labels, as Prometheus stores it."""
    found: dict[str, set[str]] = {}
    for measure in measures():
        labels = {*measure.labels, "instance", "job"}
        if measure.kind == "histogram":
            found |= {f"{measure.name}_{part}": labels for part in ("count", "sum")}
            found[f"{measure.name}_bucket"] = labels | {"le"}
        else:
            found[measure.name] = labels
    return found


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_expression_names_what_is_exported(where: str, expression: str) -> None:
    series = exported()
    plain = re.sub(r"\b(?:by|on) \([^)]*\)|\{[^}]*\}", "", expression)
    names = set(NAME.findall(plain))
    assert names, where
    assert names <= set(series), where
    for name, selectors in SELECTED.findall(expression):
        assert set(re.findall(r"(\w+) *[=!]", selectors)) <= series[name], where
    known = set().union(*(series[name] for name in names))
    for labels in GROUPED.findall(expression):
        assert {label.strip() for label in labels.split(",")} <= known, where


def test_runbook_of_every_alert_is_a_section() -> None:
    for rule in rules():
        page, _, section = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^## (.+)$", (HOME / page).read_text(), re.MULTILINE)
        assert section in {anchor(heading) for heading in headings}, rule["alert"]
        assert section == anchor(rule["alert"])
        assert {"summary", "description", "remedy"} <= rule["annotations"].keys()
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert re.fullmatch(r"\d+[ms]", rule["for"])


def test_labels_in_summaries_are_those_of_the_expression() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        grouped = {label.strip() for labels in GROUPED.findall(rule["expr"]) for label in labels.split(",")}
        assert used <= grouped, rule["alert"]


def test_every_alert_has_a_case() -> None:
    [_, everything] = yaml.safe_load(CASES.read_text())["tests"]
    samples = everything["promql_expr_test"][0]["exp_samples"]
    assert {re.findall('"(.+)"', sample["labels"])[0] for sample in samples} == {rule["alert"] for rule in rules()}


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool; `make test INSTALL=1` gets it")
@pytest.mark.parametrize("arguments", [("check", str(MONITORING / "alerts.yaml")), ("test", str(CASES))])
def test_promtool_agrees(arguments: tuple[str, str]) -> None:
    verb, path = arguments
    result = subprocess.run(  # noqa: S603 (a program of the machine, on our own files)
        [str(PROMTOOL), verb, "rules", path], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_metric_is_on_the_board_or_says_why_not() -> None:
    shown = {name for panel in panels() for target in panel["targets"] for name in NAME.findall(target["expr"])}
    series = {
        measure.name: {f"{measure.name}_{part}" for part in ("bucket", "count", "sum")} | {measure.name}
        for measure in measures()
    }
    assert {name for name, names in series.items() if not names & shown} == set(NOT_ON_THE_BOARD)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())
