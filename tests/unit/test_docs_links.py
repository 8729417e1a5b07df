"""Links between the pages of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.support.docs import ROOT
from tools.language import AVOIDED

INDEX = ROOT / "docs" / "README.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", "hub/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not link.startswith("https://") and (not target.exists() or (anchor and anchor not in anchors(target))):
            dead.append(link)
    assert dead == []


def test_index_names_every_page() -> None:
    index = INDEX.read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES if (ROOT / "docs") in page.parents]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    links = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    return {(page.parent / link.partition("#")[0]).resolve() for link in links if not link.startswith("https://")}


def test_a_reader_finds_each_page_from_another_than_the_index() -> None:
    """Who reads about a subject is led to the page that has the rest of it."""
    found = {target for page in PAGES if page != INDEX for target in linked(page) - {page}}
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in found and page.name != "README.md"] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_plain_words(page: Path) -> None:
    """The rule's own examples stand in italics."""
    lines = re.sub(rf"\*{AVOIDED.pattern}\*", "", page.read_text(encoding="utf-8")).lower().splitlines()
    assert [line for line in lines if AVOIDED.search(line)] == []


def test_changelog_says_each_thing_once() -> None:
    """Two changes that meet leave the old entry beside the new one."""
    entries = re.findall(r"^- (.{40})", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [entry for entry in entries if entries.count(entry) > 1] == []
