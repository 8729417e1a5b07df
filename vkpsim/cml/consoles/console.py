"""The history of a device's serial console. Pure.

Boot lines are not stored: they follow from the times of the boot, so a console costs nothing until it is read.
"""

from typing import Final

from vkpsim.cml.world.definitions import BOOTED_TEXT
from vkpsim.cml.world.model import Node

_BOOT_STEPS: Final = (
    (0.0, "{label}: power on"),
    (0.1, "Booting image {definition}"),
    (0.3, "Loading kernel"),
    (0.6, "Checking disks"),
    (0.8, "Reading day-0 configuration"),
    (1.0, BOOTED_TEXT),
)
"""Part of the boot time at which a line appears, and the line."""


def boot_lines(node: Node, now: float) -> list[tuple[float, str]]:
    """List what the device printed by itself, oldest first, each line with the time at which it appeared."""
    lines: list[tuple[float, str]] = []
    for boot in node.boots:
        length = boot.done_at - boot.started_at
        end = min(now, boot.ended_at if boot.ended_at is not None else now)
        for part, text in _BOOT_STEPS:
            at = boot.started_at + part * length
            if at <= end:
                lines.append((at, text.format(label=node.label, definition=node.node_definition)))
        if boot.ended_at is not None and boot.ended_at <= now:
            lines.append((boot.ended_at, f"{node.label}: power off"))
    return lines


def history(node: Node, line: int, now: float) -> list[tuple[float, str]]:
    """List the lines of a serial port, oldest first, each with the time at which it appeared."""
    typed = [(typed.at, typed.text) for typed in node.typed if typed.line == line]
    return sorted([*boot_lines(node, now), *typed], key=lambda entry: entry[0])


def log(node: Node, line: int, now: float, last: int | None) -> str:
    """Return the console log as CML does: each line as `|<milliseconds>|text`, counted from the start of its run."""
    starts = [boot.started_at for boot in node.boots]
    lines = []
    for at, text in history(node, line, now):
        start = max((start for start in starts if start <= at), default=at)
        lines.append(f"|{int((at - start) * 1000)}|{text}")
    return "\n".join(lines if last is None else lines[-last:] if last else [])
