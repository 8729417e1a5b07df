"""What a device does at one serial line: it echoes each key, answers a line, and stops at a full page. Pure.

All who are connected to a line see the same, because there is one shell: as on a real cable.
"""

import re
from typing import Final

from vkpsim.cml.consoles.commands import KEEPS_MODE, passed_on, submode_of, understand
from vkpsim.cml.consoles.commands import Typed as Command
from vkpsim.cml.consoles.devices import Family, Mode, family_of
from vkpsim.cml.world.model import Node, Typed

LINES_KEPT: Final = 1000
"""Typed and answered lines kept per node."""
PAGE: Final = 23
LONG: Final = 120
"""Lines of `show tech-support`."""
FILES: Final = "\x1b[1;34mbin\x1b[0m  \x1b[31mbackup.tgz\x1b[0m  notes.txt"
"""What `ls` prints, in colours."""
ENDLESS: Final = "y\r\n" * 8192
"""What `yes` prints at once."""
_ABORT, _LEAVE, _RUB_OUT = "\x03", "\x1a", "\x7f\b"
_TOP: Final = "config"
_UNCOMMITTED: Final = "Uncommitted changes found, commit them before exiting(yes/no/cancel)? [cancel]:"
"""What an IOS XR asks at the end of a configuration that was not committed."""


class Shell:
    """One serial line of one run of a node."""

    def __init__(self, node: Node, line: int) -> None:
        self._node = node
        self._line = line
        self._family: Family = family_of(node.node_definition)
        self._mode: Mode = self._family.first
        self._submode = _TOP
        self._host = ""
        """The host name that was configured here; empty: the label."""
        self._staged: list[str] = []
        """Configuration lines that await a commit."""
        self._typed = ""
        self._rest: list[str] = []
        self._page = PAGE if self._family.pager else 0
        """Lines of a page; 0: output never stops."""
        self._asks: list[str] = []
        self._after_return = False
        self.is_endless = False
        """Whether it prints until somebody interrupts it."""

    @property
    def prompt(self) -> str:
        """The prompt, or the question that the device asks."""
        if self._asks:
            return self._asks[0]
        host = re.sub(r"[^\w.-]", "-", self._host or self._node.label)  # a host name has no spaces, unlike a label
        return self._family.prompts[self._mode].format(host=host, mode=self._submode)

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
        if self.is_endless:
            self.is_endless = key != _ABORT
            return "" if self.is_endless else "^C\r\n" + self.prompt
        if self._rest:
            return self._turn_page(key)
        if key in "\r\n":
            typed, self._typed = self._typed, ""
            return "\r\n" + self._enter(now, typed)
        if key in {_ABORT, _LEAVE}:
            self._typed, self._asks = "", []
            if key == _LEAVE and self._mode == "config":
                self._end_configuration()
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
            if asked == _UNCOMMITTED:
                self._decide(text.strip().lower())
                return self.prompt
            if not text and asked.startswith("Username"):
                self._asks.insert(0, asked)
            return self.prompt
        before = self.prompt
        answer = self.answer(text.strip())
        if self.is_endless:
            return ""
        if text.strip():
            self._node.typed += [Typed(now, self._line, before + text), *(Typed(now, self._line, a) for a in answer)]
            self._node.typed = self._node.typed[-LINES_KEPT:]
        return self._show(answer, whole=text.rstrip().endswith("| no-more"))

    def _show(self, answer: list[str], *, whole: bool) -> str:
        if whole or not self._page or len(answer) <= self._page:
            return "".join(f"{line}\r\n" for line in answer) + self.prompt
        self._rest = answer[self._page :]
        return "".join(f"{line}\r\n" for line in answer[: self._page]) + self._family.pager

    def _turn_page(self, key: str) -> str:
        count = {" ": self._page, "\r": 1, "\n": 1}.get(key, 0)
        shown, self._rest = self._rest[:count], self._rest[count:] if count else []
        after = self._family.pager if self._rest else self.prompt
        return self._family.erased + "".join(f"{line}\r\n" for line in shown) + after

    def answer(self, text: str) -> list[str]:
        """Carry a command out; return what the device prints."""
        if not text:
            return []
        if self._mode != "config":
            return self._execute(text)
        if text.startswith("do "):
            return self._execute(text.removeprefix("do "))
        command = self._understand(text) if self._family.executes_within else None
        return self._execute(text) if command and command.action in KEEPS_MODE else self._configure(text)

    def _understand(self, text: str) -> Command | None:
        commands = self._family.commands
        if self._family.has_modes:
            return understand(text.partition("|")[0], commands)
        return Command(commands[text]) if text in commands else None

    def _execute(self, text: str) -> list[str]:
        if text.startswith("echo "):
            return [text.removeprefix("echo ")]
        command = self._understand(text)
        printed = None if command is None else self._carry_out(command)
        _, bar, condition = text.partition("|")
        if bar and printed is not None and self._family.has_modes:
            printed = passed_on(printed, condition)
        return list(self._family.unknown(text)) if printed is None else printed

    def _carry_out(self, command: Command) -> list[str] | None:
        """Return the output of a command; None if it is unknown in this mode."""
        match command.action:
            case "version":
                return [text.format(host=self._host or self._node.label) for text in self._family.version]
            case "configuration":
                return running_configuration(self._node).splitlines()
            case "long":
                return [f"line {number} of {LONG}: {self._node.label}" for number in range(1, LONG + 1)]
            case "files":
                return [FILES]
            case "endless":
                self.is_endless = True
            case "page":
                self._page = max(command.number - 1, 0)
            case "enable":
                self._mode = "enable"
            case "leave":
                self._mode, self._submode = self._family.first, _TOP
            case "configure" if self._mode == "enable":
                self._mode = "config"
                return ["Enter configuration commands, one per line.  End with CNTL/Z."]
            case "configure":
                return None
            case "nothing":
                pass
        return []

    def _configure(self, text: str) -> list[str]:
        word = text.partition(" ")[0].lower()
        if word == "end" or (word == "exit" and self._submode == _TOP):
            self._end_configuration()
        elif word == "exit":
            self._submode = _TOP
        elif word in {"sh", "sho", "show"}:
            return list(self._family.unknown(text))
        elif word == "commit" and self._family.commits:
            self._commit()
        elif word == "abort" and self._family.commits:
            self._staged, self._submode, self._mode = [], _TOP, "enable"
        else:
            self._submode = submode_of(text) or self._submode
            self._staged.append(text)
            if not self._family.commits:
                self._commit()
        return []

    def _end_configuration(self) -> None:
        if self._staged:
            self._asks = [_UNCOMMITTED]
        else:
            self._mode, self._submode = "enable", _TOP

    def _decide(self, reply: str) -> None:
        if reply not in {"yes", "y", "no", "n"}:
            return
        if reply.startswith("y"):
            self._commit()
        self._staged, self._mode, self._submode = [], "enable", _TOP

    def _commit(self) -> None:
        self._node.learned += self._staged
        names = [line.removeprefix("hostname ") for line in self._staged if line.startswith("hostname ")]
        self._host = names[-1].strip() if names else self._host
        self._staged = []


def running_configuration(node: Node) -> str:
    """Return the running configuration: the startup configuration and the lines typed since."""
    start = node.configuration[0].content if node.configuration else f"hostname {node.label}\n"
    if not node.learned:
        return start
    return start.rstrip("\n") + "\n" + "\n".join(node.learned) + "\n"
