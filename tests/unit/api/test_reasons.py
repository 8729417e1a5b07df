"""docs/why.md: a row with meaning and remedy for every word that the code can say, and no other.

That every reason of the code is in the tables, and none too many, is tested with the generated pages.
"""

import re
from collections.abc import Mapping

import msgspec
import pytest

from tests.support import docs
from tests.unit.domain.builders import claim, pod
from vkprovider.api import reasons
from vkprovider.api.messages import Fault
from vkprovider.api.models.worker import parse_worker_spec
from vkprovider.api.reasons import Explanation, Reason, reason_of, stock
from vkprovider.domain.lablet import status as podstatus
from vkprovider.domain.lablet.facts import Report
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.worker.node import View, unhealthy

TABLES: Mapping[str, Mapping[str, Reason | Explanation]] = {**stock.TABLES, **reasons.TABLES}
PAGE = docs.WHY.read_text(encoding="utf-8")


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
    by_word: dict[str, set[reasons.Trait]] = {}
    for table in reasons.TABLES.values():
        for reason in table.values():
            if isinstance(reason, Reason):
                by_word.setdefault(reason, set()).add(reason.traits)
    assert {word for word, traits in by_word.items() if len(traits) > 1} == set()
    assert len(by_word) > 100


def test_a_reason_is_found_by_its_word() -> None:
    assert reason_of("CleaningUp") is reasons.Progress.CLEANING_UP
    assert reason_of("") is reasons.NO_REASON
    full = reason_of("OutOfcpu")
    assert (full, full.remedy) == ("OutOfcpu", reasons.Trouble.OUT_OF.remedy)
    foreign = reason_of("FreeDiskSpaceFailed")
    assert (foreign, foreign.traits) == ("FreeDiskSpaceFailed", reasons.Trait(0))


def test_a_reason_is_its_word() -> None:
    assert f"{reasons.Progress.CLEANING_UP}" == "CleaningUp"
    assert msgspec.json.encode({"reason": reasons.Progress.CLEANING_UP}) == b'{"reason":"CleaningUp"}'
    foreign = reason_of("FreeDiskSpaceFailed")
    assert f"{foreign}" == foreign == "FreeDiskSpaceFailed"
    assert hash(foreign) == hash("FreeDiskSpaceFailed")
    assert msgspec.json.encode({foreign: foreign}) == b'{"FreeDiskSpaceFailed":"FreeDiskSpaceFailed"}'


def test_every_condition_of_a_pod_is_described() -> None:
    told = set()
    for report in (
        Report(State.READY, phase="Running"),
        Report(State.INSTANTIATING, waiting=Fault("ImportingLab", "m")),
        Report(State.READY, phase="Running", silent="worker w1 does not answer"),
        Report(State.FAILED, phase="Failed", terminal=Fault("LabStartTimeout", "too late")),
    ):
        told |= {key[0] for key in podstatus.render(pod(), report, claim(), {}, "").conditions}
    assert {"Ready", "vkprovider.io/LabConverged"} < told
    assert [type_ for type_ in told if not docs.described(type_)] == []


def test_every_condition_of_a_node_is_described() -> None:
    view = View(
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
        health=unhealthy("WorkerUnreachable", "m"),
        taint_effect="NoExecute",
    )
    told = view.conditions()
    assert [c.type for c in told if not docs.described(c.type)] == []
    assert [c.reason for c in told if f"`{c.reason}`" not in PAGE] == []
