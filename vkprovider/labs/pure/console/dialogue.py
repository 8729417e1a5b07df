"""One command at a console: wake the line, await the prompt, type, turn pages, end at the next prompt.

A console is a text for people: nothing but the prompt says that a command has ended. A line counts as a prompt only if
it is the last one and the device is quiet; one that differs from the prompt at which the command was typed counts after
a longer silence, because it may be output that looks like a prompt.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from vkprovider.labs.pure.console.history import shown, squeezed
from vkprovider.labs.pure.console.manners import Manner

SETTLE_S: Final = 0.3
"""A device that was quiet for this long has finished a prompt that is known."""
DOUBT_S: Final = 1.5
"""The same for a prompt that was not seen before."""
WAKE_AGAIN_S: Final = 3.0
TIMED_OUT: Final = 124
"""The exit code of timeout(1)."""
REFUSED: Final = 1
_LINE_CHARS_MAX: Final = 16 * 1024
"""A longer line is passed on in parts."""
_ECHO_CHARS: Final = 24
"""The end of a command, by which its echo is known: a device scrolls or wraps a long one."""


@dataclass(frozen=True, slots=True)
class Type:
    """Keys to press."""

    keys: str


@dataclass(frozen=True, slots=True)
class Print:
    """Output of the command, whole lines."""

    text: str


@dataclass(frozen=True, slots=True)
class DialogueEnd:
    """The end.

    Attributes:
        code: The exit code.
        message: What was wrong; empty if nothing was.
    """

    code: int
    message: str = ""


Output = Type | Print | DialogueEnd


class _Phase(Enum):
    WAKING = auto()
    ECHOING = auto()
    PRINTING = auto()
    ENDED = auto()


class Dialogue:
    """The way of one command.

    Args:
        manner: How the device talks.
        command: One line.
        device: Its label, for messages.
        timeout_s: How long the device may be silent without having come to a prompt.
        now_s: The time.
    """

    def __init__(self, manner: Manner, command: str, *, device: str, timeout_s: float, now_s: float) -> None:
        self._manner = manner
        self._command = command
        self._device = device
        self._timeout_s = timeout_s
        self._phase = _Phase.WAKING
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._prompt = ""
        self._heard = self._passed = self._typed = False
        self._heard_s = self._woken_s = self._progress_s = now_s

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._phase is _Phase.ENDED

    @property
    def was_typed(self) -> bool:
        """Whether the command itself was typed."""
        return self._typed

    def begin(self) -> Iterator[Output]:
        """Wake the line."""
        yield Type("\r")

    def received(self, data: bytes, now_s: float) -> Iterator[Output]:
        """Read what the device prints."""
        if self.is_over:
            return
        self._heard, self._heard_s = True, now_s
        if self._phase is not _Phase.WAKING:
            self._progress_s = now_s
        *lines, self._line = (self._line + self._decoder.decode(data)).split("\n")
        for line in lines:
            yield from self._whole_line(line)
        if len(self._line) > _LINE_CHARS_MAX:
            line, self._line = self._line, ""
            yield from self._whole_line(line)
        if self._manner.is_pager(shown(self._line)):
            self._line = ""
            yield Type(self._manner.more if self._phase is not _Phase.WAKING else "q")

    def tick(self, now_s: float) -> Iterator[Output]:
        """Let time pass."""
        if self.is_over:
            return
        outputs = []
        if self._heard and now_s >= self._heard_s + SETTLE_S:
            outputs = list(self._settled(shown(self._line).strip(), now_s))
        yield from outputs
        if any(isinstance(output, DialogueEnd) for output in outputs):
            return
        if now_s >= self._progress_s + self._timeout_s:
            yield from self._timed_out()
        elif self._phase is _Phase.WAKING and now_s >= self._woken_s + WAKE_AGAIN_S:
            self._woken_s = now_s
            yield Type("\r")

    def due_s(self, now_s: float) -> float:
        """Return when `tick` has something to do next."""
        times = [self._progress_s + self._timeout_s]
        if self._heard:
            times += [self._heard_s + SETTLE_S, self._heard_s + DOUBT_S]
        if self._phase is _Phase.WAKING:
            times.append(self._woken_s + WAKE_AGAIN_S)
        return min((time for time in times if time > now_s), default=now_s)

    def abandon(self) -> Iterator[Output]:
        """End the command, because nobody awaits its output any more."""
        if self._phase in {_Phase.ECHOING, _Phase.PRINTING}:
            yield Type(self._manner.interrupt)
        self._phase = _Phase.ENDED

    def _whole_line(self, line: str) -> Iterator[Output]:
        match self._phase:
            case _Phase.ECHOING:
                if squeezed(line).endswith(squeezed(self._command)[-_ECHO_CHARS:]):
                    self._phase = _Phase.PRINTING
            case _Phase.PRINTING:
                text = shown(line)
                if text.startswith(self._prompt):  # a message of the device's own came behind the prompt
                    self._passed, text = True, text.removeprefix(self._prompt)
                yield Print(f"{text}\n")
            case _:
                pass

    def _settled(self, line: str, now_s: float) -> Iterator[Output]:
        manner = self._manner
        if self._phase is _Phase.WAKING:
            if manner.is_configuring(line):
                yield self._ended(REFUSED, self._busy_configuring(line))
            elif manner.is_question(line):
                yield self._ended(REFUSED, self._asks(line))
            elif manner.is_prompt(line):
                self._prompt, self._phase, self._line = line, _Phase.ECHOING, ""
                self._progress_s, self._heard, self._typed = now_s, False, True
                yield Type(f"{self._command}\r")
        elif self._phase is _Phase.PRINTING:
            if line == self._prompt:
                yield self._ended(0)
            elif now_s < self._heard_s + DOUBT_S:
                return
            elif self._passed and not line:
                self._passed = False
                yield Type("\r")
            elif manner.is_configuring(line):
                yield Type(manner.leave)
                yield self._ended(
                    REFUSED, f"{self._command!r} leads to a configuration mode, which was left again: {self._by_hand}"
                )
            elif manner.is_prompt(line):
                yield self._ended(0)
            elif manner.is_question(line):
                yield Type(manner.interrupt)
                yield self._ended(REFUSED, self._asks(line))

    def _timed_out(self) -> Iterator[Output]:
        line = shown(self._line).strip()
        if self._phase is _Phase.WAKING:
            seen = f"; its last line is {line[:80]!r}" if line else ""
            message = f"{self._device} shows no prompt within {self._timeout_s:g} s{seen}: {self._by_hand}"
        else:
            if line and self._phase is _Phase.PRINTING:
                yield Print(f"{line}\n")
            yield Type(self._manner.interrupt)
            message = f"{self._device} came to no prompt after {self._timeout_s:g} s of silence; the command was ended"
        yield self._ended(TIMED_OUT, message)

    def _ended(self, code: int, message: str = "") -> DialogueEnd:
        self._phase = _Phase.ENDED
        return DialogueEnd(code, message)

    def _busy_configuring(self, line: str) -> str:
        return f"{self._device} is in a configuration mode ({line}), in which someone may be at work: {self._by_hand}"

    def _asks(self, line: str) -> str:
        return f"{self._device} asks {line[:80]!r}, which only a person can answer: {self._by_hand}"

    @property
    def _by_hand(self) -> str:
        return "use its console, `kubectl lablet console`"
