"""The output of a device's serial console, and its answers to typed lines. Pure.

Boot lines are not stored: they follow from the times of the boot, so a console costs nothing until it is read.
"""

from typing import Final

from vkpsandbox.cml.world.definitions import BOOTED_TEXT
from vkpsandbox.cml.world.model import Node, Typed

LINES_KEPT: Final = 1000
"""Typed and answered lines kept per node."""

_BOOT_STEPS: Final = (
    (0.0, "{label}: power on"),
    (0.1, "Booting image {definition}"),
    (0.3, "Loading kernel"),
    (0.6, "Checking disks"),
    (0.8, "Reading day-0 configuration"),
    (1.0, BOOTED_TEXT),
)
"""Part of the boot time at which a line appears, and the line."""


def history(node: Node, line: int, now: float) -> list[tuple[float, str]]:
    """List the lines of a serial port, oldest first, each with the time at which it appeared."""
    lines: list[tuple[float, str]] = []
    for boot in node.boots:
        length = boot.booted_at - boot.started_at
        end = min(now, boot.ended_at if boot.ended_at is not None else now)
        for part, text in _BOOT_STEPS:
            at = boot.started_at + part * length
            if at <= end:
                lines.append((at, text.format(label=node.label, definition=node.node_definition)))
        if boot.ended_at is not None and boot.ended_at <= now:
            lines.append((boot.ended_at, f"{node.label}: power off"))
    lines.extend((typed.at, typed.text) for typed in node.typed if typed.line == line)
    return sorted(lines, key=lambda entry: entry[0])


def log(node: Node, line: int, now: float, last: int | None) -> str:
    """Return the console log as CML does: each line as `|<milliseconds>|text`."""
    first = node.boots[0].started_at if node.boots else now
    lines = [f"|{int((at - first) * 1000)}|{text}" for at, text in history(node, line, now)]
    return "\n".join(lines if last is None else lines[-last:] if last else [])


def prompt(node: Node) -> str:
    """Return the prompt of a device."""
    return f"{node.label}# "


class Terminal:
    """One terminal on a serial port; all terminals see the same lines, as on a real cable."""

    def __init__(self, node: Node, line: int) -> None:
        self._node = node
        self._line = line
        self._seen = 0.0

    def greet(self, now: float) -> str:
        """Return all output so far, and the prompt."""
        return self.news(now) or prompt(self._node)

    def news(self, now: float) -> str:
        """Return the output since the last call and a new prompt; empty if there is none."""
        lines = [text for at, text in history(self._node, self._line, now) if self._seen < at <= now]
        self._seen = now
        return "".join(f"{text}\r\n" for text in lines) + prompt(self._node) if lines else ""

    def enter(self, now: float, text: str) -> str:
        """Type a line; return any pending output, the echo, the answer and a new prompt."""
        before = self.news(now)
        answer = type_line(self._node, self._line, now, text)
        return before + "".join(f"{line}\r\n" for line in (text, *answer)) + prompt(self._node)


def type_line(node: Node, line: int, now: float, text: str) -> list[str]:
    """Execute a typed line; return the lines that the device answers.

    The device knows `echo` and `show run`; whatever stands between `configure terminal` and `end` becomes part of its
    running configuration, which an extraction then finds.
    """
    command = text.strip()
    answer: list[str] = []
    configuring = bool(node.learned) and node.learned[-1] == _OPEN
    if configuring:
        node.learned.pop()
        if command != "end":
            node.learned += [command, _OPEN]
    elif command in {"configure terminal", "conf t"}:
        node.learned.append(_OPEN)
    elif command.startswith("echo "):
        answer = [command.removeprefix("echo ")]
    elif command in {"show running-config", "show run"}:
        answer = running_configuration(node).splitlines()
    node.typed += [Typed(now, line, prompt(node) + text), *(Typed(now, line, reply) for reply in answer)]
    node.typed = node.typed[-LINES_KEPT:]
    return answer


def running_configuration(node: Node) -> str:
    """Return the running configuration: the startup configuration and the lines typed since."""
    start = node.configuration[0].content if node.configuration else f"hostname {node.label}\n"
    learned = [text for text in node.learned if text != _OPEN]
    if not learned:
        return start
    return start.rstrip("\n") + "\n" + "\n".join(learned) + "\n"


_OPEN: Final = "\0"
"""Marks in `Node.learned` that the device is in configuration mode."""
