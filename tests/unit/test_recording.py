"""The moving picture of the demo: what a reader sees of it at each moment, and without motion."""

import json
import re
from collections.abc import Callable
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tools import recording

SVG: Final = "{http://www.w3.org/2000/svg}"
ROWS, LINE, FIRST = 34, 17, 47
"""Of the window: its rows; pixels between base lines, and above the first one."""
LONG: Final = [
    (0.0, "$ make demo"),
    (2.0, "Labs as Pods."),
    (2.0, ""),
    (2.0, "1. Start"),
    (2.0, "   Nothing needs root."),
    (9.0, "   ready after 7 s"),
    (9.1, "2. List"),
    *((9.1, f"   row {number}") for number in range(60)),
    (20.0, "All of it held, in 20 s."),
]
"""A demo with a slow start, a step that is longer than the terminal is high, and a last line."""


def cast(lines: list[tuple[float, str]]) -> str:
    head = {"version": 2, "width": 142, "height": ROWS, "title": "make demo"}
    return "\n".join([json.dumps(head), *(json.dumps([at, "o", f"{line}\r\n"]) for at, line in lines)]) + "\n"


def number(words: str, unit: str) -> float:
    found = re.search(rf"(-?[\d.]+){unit}", words)
    assert found, words
    return float(found[1])


class Picture:
    """A drawn recording, as a browser shows it."""

    def __init__(self, svg: str) -> None:
        self._root = ET.fromstring(svg)  # noqa: S314 (drawn by ourselves)
        self._css = self._root.findtext(f"{SVG}style") or ""
        [self._story] = [group for group in self._root.iter(f"{SVG}g") if group.get("class") == "story"]
        self.length = number(self._rule("story"), "s step-end infinite")

    def still(self) -> list[str]:
        """Return the lines that stand in the window without motion, from the top; each in its row."""
        return self._window(lambda style: number(self._rule(style), "px"))

    def at(self, seconds: float) -> list[str]:
        """Return the lines that stand in the window at a moment."""
        return self._window(lambda style: self._moved(style, 100 * seconds / self.length))

    def _rule(self, style: str) -> str:
        found = re.search(rf"^\.{style} {{(.*animation.*)}}$", self._css, re.MULTILINE)
        assert found, f"no motion of {style}"
        return found[1]

    def _moved(self, style: str, percent: float) -> float:
        frames = re.search(rf"@keyframes {style} {{\n(.*?)\n}}\n", self._css, re.DOTALL)
        assert frames, f"no motion of {style}"
        moved = [(number(frame, "%"), number(frame, "px")) for frame in frames[1].splitlines()]
        assert moved[0][0] == 0
        return [y for at, y in moved if at <= percent + 0.001][-1]

    def _window(self, moved: Callable[[str], float]) -> list[str]:
        covers = [
            float(rect.get("y", "nan")) for rect in self._story.iter(f"{SVG}rect") if rect.get("class") == "cover"
        ]
        lines = [""] * ROWS
        for line in self._story.iter(f"{SVG}text"):
            y = float(line.get("y", "nan"))
            row = round((y + moved("story") - FIRST) / LINE)
            if 0 <= row < ROWS and all(y < cover + moved("cover") for cover in covers):
                lines[row] = line.text or ""
        return lines


def full(lines: list[str]) -> bool:
    """Return whether text stands from the top of the window to its bottom; steps are a line apart."""
    return all(any(lines[row : row + 2]) for row in range(ROWS - 1))


@pytest.fixture(params=[None, *recording.RECORDINGS], ids=lambda which: which.name if which else "a long one")
def picture(request: pytest.FixtureRequest) -> Picture:
    return Picture(recording.picture(request.param) if request.param else recording.drawn(cast(LONG)))


def test_first_frame_shows_how_the_demo_begins() -> None:
    """The time until the demo prints its first line is that of Python, and of no interest."""
    first = Picture(recording.drawn(cast(LONG))).at(0)
    assert first[:5] == ["$ make demo", "Labs as Pods.", "", "1. Start", "Nothing needs root."]
    assert not any(first[5:])


def test_window_fills_from_the_top_then_lines_move_up(picture: Picture) -> None:
    """The first line stays until the window is full: at no moment a reader looks at an empty box."""
    before: list[str] = []
    for half in range(int(2 * picture.length)):
        lines = picture.at(half / 2)
        if lines[0].startswith("$ make demo"):
            printed = [line for line in before if line]
            assert [line for line in lines if line][: len(printed)] == printed, f"a line is gone at {half / 2} s"
        else:
            assert full(lines), f"the window is not full at {half / 2} s"
        before = lines
    assert not before[0].startswith("$ make demo")


def test_still_shows_the_end(picture: Picture) -> None:
    """A viewer without animation, or who wants less motion, sees the same as one who has waited."""
    assert picture.still() == picture.at(picture.length - 0.1)
    assert any(line.startswith("All of it held") for line in picture.still()[-3:])
    assert full(picture.still())


def test_recording_that_fits_stays_where_it_is() -> None:
    small = Picture(recording.drawn(cast(LONG[:5])))
    assert small.still() == small.at(0) == small.at(small.length - 0.1)
    assert small.still()[0] == "$ make demo"


def test_no_motion_where_a_reader_asks_for_less() -> None:
    svg = recording.drawn(cast(LONG))
    moving = set(re.findall(r"^@keyframes (\w+)", svg, re.MULTILINE))
    stopped = re.findall(r"reduce\) { \.(\w+) { animation: none } }$", svg, re.MULTILINE)
    assert moving == set(stopped)
    assert moving
