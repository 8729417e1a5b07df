"""What a device does at one serial line: it echoes each key, answers a line, and stops at a full page. Pure.

All who are connected to a line see the same, because there is one shell: as on a real cable.
"""

import re
from typing import Final

from vkpsandbox.cml.consoles.devices import Family, Mode, family_of
from vkpsandbox.cml.world.model import Node, Typed

LINES_KEPT: Final = 1000
"""Typed and answered lines kept per node."""
PAGE: Final = 23
LONG: Final = 120
"""Lines of `show tech-support`."""
_ABORT, _LEAVE, _RUB_OUT = "\x03", "\x1a", "\x7f\b"


class Shell:
    """One serial line of one run of a node."""

    def __init__(self, node: Node, line: int) -> None:
        self._node = node
        self._line = line
        self._family: Family = family_of(node.node_definition)
        self._mode: Mode = self._family.first
        self._typed = ""
        self._rest: list[str] = []
        self._paged = bool(self._family.pager)
        self._asks: list[str] = []
        self._after_return = False

    @property
    def prompt(self) -> str:
        """The prompt, or the question that the device asks."""
        if self._asks:
            return self._asks[0]
        host = re.sub(r"[^\w.-]", "-", self._node.label)  # a host name has no spaces, unlike a label
        return self._family.prompts[self._mode].format(host=host)

    def wake(self) -> str:
        """Return the text that the device prints when it has booted."""
        if any("login local" in file.content for file in self._node.configuration):
            self._asks = ["Username: ", "Password: "]
        return "" if self._family.asleep else self.prompt

    def press(self, now: float, keys: str) -> str:
        """Press keys; return what the device prints."""
        return "".join(self._key(now, key) for key in keys)

    def _key(self, now: float, key: str) -> str:
        second = key == "\n" and self._after_return
        self._after_return = key == "\r"
        if second:
            return ""
        if self._rest:
            return self._turn_page(key)
        if key in "\r\n":
            typed, self._typed = self._typed, ""
            return "\r\n" + self._enter(now, typed)
        if key in {_ABORT, _LEAVE}:
            self._typed, self._asks = "", []
            if key == _LEAVE and self._mode == "config":
                self._mode = "enable"
            return "^C\r\n" + self.prompt if key == _ABORT else "\r\n" + self.prompt
        if key in _RUB_OUT:
            rubbed = self._typed != ""
            self._typed = self._typed[:-1]
            return "\b \b" if rubbed else ""
        if not key.isprintable():
            return ""
        self._typed += key
        return "" if self.prompt.startswith("Password") else key

    def _enter(self, now: float, text: str) -> str:
        if self._asks:
            asked = self._asks.pop(0)
            if not text and asked.startswith("Username"):
                self._asks.insert(0, asked)
            return self.prompt
        before = self.prompt
        answer = self.answer(text.strip())
        if text.strip():
            self._node.typed += [Typed(now, self._line, before + text), *(Typed(now, self._line, a) for a in answer)]
            self._node.typed = self._node.typed[-LINES_KEPT:]
        return self._show(answer)

    def _show(self, answer: list[str]) -> str:
        if not self._paged or len(answer) <= PAGE:
            return "".join(f"{line}\r\n" for line in answer) + self.prompt
        self._rest = answer[PAGE:]
        return "".join(f"{line}\r\n" for line in answer[:PAGE]) + self._family.pager

    def _turn_page(self, key: str) -> str:
        count = {" ": PAGE, "\r": 1, "\n": 1}.get(key, 0)
        shown, self._rest = self._rest[:count], self._rest[count:] if count else []
        after = self._family.pager if self._rest else self.prompt
        return self._family.erased + "".join(f"{line}\r\n" for line in shown) + after

    def answer(self, command: str) -> list[str]:
        """Carry a command out; return what the device prints."""
        host = self._node.label
        if self._mode == "config":
            return self._configure(command)
        if command.startswith("echo "):
            return [command.removeprefix("echo ")]
        match command:
            case "":
                return []
            case "show version" | "uname -a":
                return [text.format(host=host) for text in self._family.version]
            case "show running-config" | "show run":
                return running_configuration(self._node).splitlines()
            case "show tech-support" | "show tech" | "dmesg":
                return [f"line {number} of {LONG}: {host}" for number in range(1, LONG + 1)]
            case "terminal length 0" | "terminal pager 0" if self._family.pager:
                self._paged = False
                return []
        return self._change_mode(command)

    def _change_mode(self, command: str) -> list[str]:
        if self._family.has_modes:
            match command:
                case "enable":
                    self._mode = "enable"
                    return []
                case "disable" | "exit":
                    self._mode = self._family.first
                    return []
                case "configure terminal" | "conf t" if self._mode == "enable":
                    self._mode = "config"
                    return ["Enter configuration commands, one per line.  End with CNTL/Z."]
        return list(self._family.unknown(command))

    def _configure(self, command: str) -> list[str]:
        if command in {"end", "exit"}:
            self._mode = "enable"
        elif command:
            self._node.learned.append(command)
        return []


def running_configuration(node: Node) -> str:
    """Return the running configuration: the startup configuration and the lines typed since."""
    start = node.configuration[0].content if node.configuration else f"hostname {node.label}\n"
    if not node.learned:
        return start
    return start.rstrip("\n") + "\n" + "\n".join(node.learned) + "\n"
