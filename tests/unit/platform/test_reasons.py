"""docs/why.md: a row with meaning and remedy for every word that the code can say, and no other."""

import ast
import re
from collections.abc import Mapping

import msgspec
import pytest

from tests.support import docs
from tests.unit.labs.builders import claim, pod
from tools import figures, generate
from tools.sources import Module
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.lablet.reasons import Progress, Trouble, conditions
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet import status as podstatus
from vkprovider.labs.pure.lablet.facts import Report
from vkprovider.labs.pure.worker.node import NodeView, unhealthy
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import NO_REASON, Explanation, Reason, Reasons, Trait, reason_of

TABLES: Mapping[str, Mapping[str, Reason | Explanation]] = {**conditions.TABLES, **generate.REASONS}
PAGE = docs.WHY.read_text(encoding="utf-8")
CODE = [
    Module(str(path.relative_to(docs.ROOT)), text := path.read_text(encoding="utf-8"), ast.parse(text))
    for path in sorted((docs.ROOT / "vkprovider").rglob("*.py"))
]
EVENT_REASON = 2
"""The place of the reason among the arguments of `emit`, which takes any word: it knows none of ours."""


def test_no_reason_is_written_as_a_string() -> None:
    assert figures.reason_strings(CODE) == []


def test_events_are_emitted_with_members() -> None:
    emitted = [
        node.args[EVENT_REASON]
        for module in CODE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "emit" and len(node.args) > EVENT_REASON
    ]
    assert len(emitted) >= 10
    assert [ast.unparse(reason) for reason in emitted if isinstance(reason, ast.Constant | ast.JoinedStr)] == []


def test_every_reason_stands_in_a_table_and_is_given_by_the_code() -> None:
    given = {
        node.attr
        for module in CODE
        if not figures.defines_reasons(module)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
    }
    every = {each for enum in Reasons.__subclasses__() for each in enum if each is not NO_REASON}
    assert every <= {word for table in generate.REASONS.values() for word in table}
    assert sorted(each for each in every if each.name not in given) == []


def test_page_has_a_row_for_every_reason_and_no_other() -> None:
    rows = docs.why()
    assert rows.keys() == {name for table in TABLES.values() for name in table}
    assert [row.word for same in rows.values() for row in same if not row.means or not row.remedy] == []


@pytest.mark.parametrize("heading", TABLES)
def test_reason_stands_under_the_heading_of_its_table(heading: str) -> None:
    _, _, rest = PAGE.partition(f"\n## {heading}\n")
    section = rest.partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` ", section, re.MULTILINE) == list(TABLES[heading])


def test_links_of_the_page_lead_to_its_headings() -> None:
    anchors = {
        re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-") for line in PAGE.splitlines() if "## " in line
    }
    links = re.findall(r"\]\(#([^)]+)\)", PAGE)
    assert links
    assert set(links) <= anchors


def test_a_word_in_two_tables_has_the_same_traits_in_both() -> None:
    by_word: dict[str, set[Trait]] = {}
    for table in generate.REASONS.values():
        for reason in table.values():
            if isinstance(reason, Reason):
                by_word.setdefault(reason, set()).add(reason.traits)
    assert {word for word, traits in by_word.items() if len(traits) > 1} == set()
    assert len(by_word) > 100


def test_a_reason_is_found_by_its_word() -> None:
    assert reason_of("CleaningUp") is Progress.CLEANING_UP
    assert reason_of("") is NO_REASON
    full = reason_of("OutOfcpu")
    assert (full, full.remedy) == ("OutOfcpu", Trouble.OUT_OF.remedy)
    foreign = reason_of("FreeDiskSpaceFailed")
    assert (foreign, foreign.traits) == ("FreeDiskSpaceFailed", Trait(0))


def test_a_reason_is_its_word() -> None:
    assert f"{Progress.CLEANING_UP}" == "CleaningUp"
    assert msgspec.json.encode({"reason": Progress.CLEANING_UP}) == b'{"reason":"CleaningUp"}'
    foreign = reason_of("FreeDiskSpaceFailed")
    assert f"{foreign}" == foreign == "FreeDiskSpaceFailed"
    assert hash(foreign) == hash("FreeDiskSpaceFailed")
    assert msgspec.json.encode({foreign: foreign}) == b'{"FreeDiskSpaceFailed":"FreeDiskSpaceFailed"}'


def test_every_condition_of_a_pod_is_described() -> None:
    told = set()
    for report in (
        Report(State.READY, phase="Running"),
        Report(State.INSTANTIATING, waiting=Fault(Progress.IMPORTING_LAB, "m")),
        Report(State.READY, phase="Running", silent="worker w1 does not answer"),
        Report(State.FAILED, phase="Failed", terminal=Fault(Trouble.LAB_START_TIMEOUT, "too late")),
    ):
        told |= {key[0] for key in podstatus.render(pod(), report, claim(), {}, "").conditions}
    assert {"Ready", "vkprovider.io/LabConverged"} < told
    assert [type_ for type_ in told if not docs.described(type_)] == []


def test_every_condition_of_a_node_is_described() -> None:
    view = NodeView(
        worker="w1",
        uid="u",
        installation="i",
        spec=parse_worker_spec({"url": "https://cml-1.example.com"}),
        version="2.9.1",
        ip="",
        dns="",
        endpoint=None,
        capacity={},
        allocatable={},
        health=unhealthy(Trouble.WORKER_UNREACHABLE, "m"),
        taint_effect="NoExecute",
        kubelet_version="v1.36.3-vkprovider",
    )
    told = view.conditions()
    assert [c.type for c in told if not docs.described(c.type)] == []
    assert [c.reason for c in told if f"`{c.reason}`" not in PAGE] == []
