"""Terminals as moving pictures: `python -m tools.recording` records a run of each demo; `picture` draws a recording.

The recording is a file of asciinema's format, version 2 (https://docs.asciinema.org/manual/asciicast/v2/): a line with
the terminal's size, then `[seconds, "o", text]` for each line that the demo printed.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

_COLUMNS: Final = 142
_ROWS: Final = 34


class Recording(NamedTuple):
    """A recorded demo, or what people type.

    Attributes:
        name: Of its files.
        title: What stands on its window; of a demo, as the reader types it.
        arguments: Of `vkprovider`, for a demo.
        rows: Of the window.
    """

    name: str
    title: str
    arguments: tuple[str, ...] = ()
    rows: int = _ROWS

    @property
    def cast(self) -> Path:
        """The recording, relative to the checkout."""
        return Path(f"docs/pictures/{self.name}.cast")

    @property
    def path(self) -> Path:
        """The drawn recording, relative to the checkout."""
        return Path(f"docs/pictures/{self.name}.svg")


RECORDINGS: Final = (
    Recording("demo", "make demo", ("demo",)),
    Recording("class", "make demo CLASS=1", ("demo", "--class")),
)
SCHEDULE: Final = Recording("schedule", "kubectl lablet schedule", rows=15)
CAPTURE: Final = Recording("capture", "kubectl lablet capture", rows=14)
SSH: Final = Recording("ssh", "ssh", rows=19)
TYPED: Final = (SCHEDULE, CAPTURE, SSH)
"""What `tools.pictures` records, by a `Session`."""
_ROOT: Final = Path(__file__).parents[1]
_CHARACTER, _LINE, _MARGIN, _BAR = 7.2, 17, 16, 34
"""Pixels: of a character of 12 px, between base lines, around the text, of the window's title."""
_WAIT_MAX_S: Final = 1.0
"""A longer wait for the next line is shown as so long."""
_READ_S: Final = 0.3
"""The pause for each line of a step, before the next step begins."""
_END_S: Final = 8.0
_HEADING: Final = re.compile(r"\d\. ")
_CSS: Final = """\
text { font: 12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace; fill: #c9d1d9; \
white-space: pre }
.window { fill: #0d1117; stroke: #30363d }
.cover { fill: #0d1117 }
.title { fill: #8b949e; text-anchor: middle }
.heading { fill: #79c0ff; font-weight: 700 }
.why { fill: #a5b0bd; font-style: italic }
.command { fill: #7ee787; font-weight: 700 }
.red { fill: #ff5f57 }
.amber { fill: #febc2e }
.green { fill: #28c840 }
"""
_MOTION: Final = """\
.{name} {{ transform: translateY({end:g}px); animation: {name} {length:g}s step-end infinite }}
@keyframes {name} {{
{frames}}}
@media (prefers-reduced-motion: reduce) {{ .{name} {{ animation: none }} }}
"""


class _Row(NamedTuple):
    """A line of the terminal: when it appears in the picture, in seconds, and its class."""

    at: float
    text: str
    style: str


def record(which: Recording) -> None:
    """Run a demo and write what it prints, and when.

    Raises:
        subprocess.CalledProcessError: If the demo fails; the recording is then left as it was.
    """
    said = [(0.0, f"$ {which.title}")]
    command = [sys.executable, "-u", "-m", "vkprovider", *which.arguments]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:  # noqa: S603 (ourselves)
        for line in process.stdout or ():
            print(line, end="", flush=True)
            said.append((time.monotonic() - started, line.rstrip("\n")))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    keep(which, said)


def keep(which: Recording, said: Iterable[tuple[float, str]]) -> None:
    """Write a recording.

    Args:
        which: The recording.
        said: The lines, each with the second at which it was printed; the first is a command.
    """
    lines = [json.dumps({"version": 2, "width": _COLUMNS, "height": which.rows, "title": which.title})]
    lines += [json.dumps([round(at, 2), "o", f"{text}\r\n"], ensure_ascii=False) for at, text in said]
    (_ROOT / which.cast).write_text("\n".join(lines) + "\n", encoding="utf-8")


def picture(which: Recording) -> str:
    """Draw a recording that is kept."""
    return drawn((_ROOT / which.cast).read_text(encoding="utf-8"))


def drawn(cast: str) -> str:
    """Draw a recording: lines fill the window from the top, then the newest one pushes the oldest out.

    A cover moves down over the lines that are not printed yet. Without motion the end is shown.
    """
    head = json.loads(cast.splitlines()[0])
    rows, title, lines_shown = _rows(cast), escape(head["title"]), head["height"]
    width, height = _COLUMNS * _CHARACTER + 2 * _MARGIN, _BAR + lines_shown * _LINE + _MARGIN
    shown = {row.at: number for number, row in enumerate(rows, 1)}
    length = rows[-1].at + _END_S
    css = _CSS + _motion("story", {at: min(0, lines_shown - number) * _LINE for at, number in shown.items()}, length)
    css += _motion("cover", {at: number * _LINE for at, number in shown.items()}, length)
    lines = "\n".join(_line(number, row) for number, row in enumerate(rows, 1) if row.text)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" \
width="{width:g}" height="{height:g}" role="img">
<title>A recording of {title}</title>
<style>
{css}</style>
<clipPath id="screen"><path d="M0 {_BAR}H{width:g}V{height - 4:g}H0Z"/></clipPath>
<rect class="window" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="10"/>
<circle class="red" cx="22" cy="18" r="6"/>
<circle class="amber" cx="42" cy="18" r="6"/>
<circle class="green" cx="62" cy="18" r="6"/>
<text class="title" x="{width / 2:g}" y="22">{title}</text>
<g clip-path="url(#screen)"><g class="story">
{lines}
<rect class="cover" x="1" y="{_BAR}" width="{width - 2:g}" height="{lines_shown * _LINE + _MARGIN}" rx="0"/>
</g></g>
</svg>
"""


def _motion(name: str, moves: dict[float, int], length: float) -> str:
    """Return the rules that move what has this class: to which y, at which second; without motion, to the last one."""
    frames = "".join(f"{100 * at / length:.3f}% {{ transform: translateY({y}px) }}\n" for at, y in moves.items())
    return _MOTION.format(name=name, end=list(moves.values())[-1], length=length, frames=frames)


def _rows(cast: str) -> list[_Row]:
    """Return the lines of a recording, with time to read each step.

    The picture begins with the first line that the demo prints: what it waits for before is Python.
    """
    rows: list[_Row] = []
    at = 0.0
    step = 0
    command, *said = map(json.loads, cast.splitlines()[1:])
    before = said[0][0]
    for when, _, words in [command, *said]:
        at += min(max(when - before, 0.0), _WAIT_MAX_S)
        before = max(when, before)
        for line in str(words).rstrip("\r\n").splitlines() or [""]:
            if _HEADING.match(line):
                at += _READ_S * (len(rows) - step) if step else 0
                step = len(rows)
            style = _style(line, rows[-1].style if rows else "")
            rows += [_Row(round(at, 2), line[i : i + _COLUMNS], style) for i in range(0, len(line) or 1, _COLUMNS)]
    return rows


def _style(line: str, before: str) -> str:
    """Return the class of a line: a heading, the sentence below it, a command, or what a command printed."""
    if _HEADING.match(line):
        return "heading"
    if line.lstrip().startswith("$ "):
        return "command"
    return "why" if before == "heading" else "output"


def _line(number: int, row: _Row) -> str:
    """Draw a line, as wide as it is on a terminal whatever the reader's font."""
    words = row.text.lstrip()
    x, y = _MARGIN + (len(row.text) - len(words)) * _CHARACTER, _BAR + number * _LINE - 4
    width = len(words) * _CHARACTER
    return f'<text textLength="{width:g}" class="{row.style}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


if __name__ == "__main__":
    for each in RECORDINGS:
        if each.name in (sys.argv[1:] or [each.name]):
            record(each)
