"""The grades of a class: what its lablets show, and what is kept of learners, each once."""

import pytest

from vkprovider.lablet.archives import ArchiveEntry, Verdict
from vkprovider.lablet.standings import Standing
from vkprovider.portal.pure.classes import Row
from vkprovider.portal.pure.grades import grades_of, learners_of

PASSED = Verdict(passed=True, message="score 9 of 10: well done")


def entry(id_: str, learner: str, at: int, grade: Verdict | None = None, shown: str = "") -> ArchiveEntry:
    return ArchiveEntry(id_, "friday", f"pod-{id_}", at, learner, grade=grade, shown=shown)


def row(uid: str, learner: str, standing: Standing, score: str = "", why: str = "") -> Row:
    return Row(key=f"pod-{uid}", learner=learner, uid=uid, pod=f"pod-{uid}", standing=standing, score=score, why=why)


@pytest.mark.parametrize(
    ("rows", "entries", "expected"),
    [
        ([], [], []),
        ([row("a", "ann", Standing.WORKING), row("b", "", Standing.FREE)], [], []),
        ([row("a", "ann", Standing.PASSED, "9")], [], [("ann", "yes", "9", "pod-a", "")]),
        ([row("a", "ann", Standing.NOT_PASSED)], [], [("ann", "no", "", "pod-a", "")]),
        (
            [row("a", "ann", Standing.PASSED, "9")],
            [entry("a", "ann", 60, PASSED)],
            [("ann", "yes", "9", "pod-a", "1970-01-01T00:01:00Z")],
        ),
        (
            [row("a", "ann", Standing.PASSED, "9")],
            [entry("a", "ann", 60)],
            [("ann", "yes", "9", "pod-a", "1970-01-01T00:01:00Z")],
        ),
        (
            [row("a", "ann", Standing.WORKING)],
            [entry("a", "bob", 0), entry("a", "", 0)],
            [("bob", "", "", "pod-a", "1970-01-01T00:00:00Z")],
        ),
    ],
)
def test_each_grade_stands_once(rows: list[Row], entries: list[ArchiveEntry], expected: list[tuple[str, ...]]) -> None:
    found = grades_of(rows, entries)
    assert [(each.learner, each.passed, each.score, each.name, each.at) for each in found] == expected


def test_grades_stand_by_last_name_and_the_newest_first() -> None:
    entries = [entry("a", "zed", 60, shown="Adler, Zoe"), entry("b", "ben", 60), entry("c", "zed", 120)]
    entries.append(entry("d", "zed", 240, shown="Adler, Zoe"))
    found = grades_of([], entries)
    assert [(each.learner, each.id) for each in found] == [("zed", "d"), ("zed", "c"), ("zed", "a"), ("ben", "b")]


def test_learners_are_named_as_people_know_them() -> None:
    entries = [
        entry("a", "zed", 90, shown="Adler, Zoe"),
        entry("b", "ben", 60),
        entry("c", "zed", 99),
        entry("d", "", 9),
    ]
    assert learners_of(entries) == ["Adler, Zoe", "ben"]
