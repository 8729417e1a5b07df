"""`kubectl exec`: one command, typed at the prompt of a device."""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from tunnels.errors import ConnectionLost
from vkprovider.api.errors import InputError, Unavailable
from vkprovider.api.reasons import ConsoleReason
from vkprovider.controllers.console.attach import say
from vkprovider.controllers.console.shared import Console, Watcher
from vkprovider.domain.console.dialogue import Dialogue, End, Output, Print, Type
from vkprovider.kubelet.spi import Exit, RemoteCommand

COMMAND_CHARS_MAX: Final = 240
"""IOS accepts 254 characters at a prompt."""
WHOLE_S_MAX: Final = 3600.0
"""However much a command goes on printing."""


def command_of(words: Sequence[str]) -> str:
    """Return the line to type.

    Raises:
        InputError: `CommandInvalid`.
    """
    line = " ".join(words).strip()
    if not line or len(line) > COMMAND_CHARS_MAX or not line.isprintable():
        text = f"the command must be one line of 1 to {COMMAND_CHARS_MAX} printable characters"
        raise InputError(ConsoleReason.COMMAND_INVALID, text)
    return line


class Execution:
    """One command at a console.

    Args:
        console: The device's.
        command: The session.
    """

    def __init__(self, console: Console, command: RemoteCommand) -> None:
        self._console = console
        self._command = command
        self._end: End | None = None

    async def run(self, watcher: Watcher, dialogue: Dialogue) -> Exit:
        """Type the command and print its output until it ends, or the client leaves.

        Raises:
            OutsideError: The console broke off before the command was typed.
        """
        gone = asyncio.create_task(self._command.gone(), name="exec: client")
        gone.add_done_callback(lambda _: watcher.end(""))
        try:
            async with asyncio.timeout(WHOLE_S_MAX):
                await self._converse(watcher, dialogue)
        except (ConnectionLost, TimeoutError):
            await self._abandon(dialogue)
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        if self._end is None:
            why = watcher.ended or "the command went on for an hour, and was ended"
            await say(self._command, why)
            return Exit(1, why)
        if self._end.message:
            await say(self._command, self._end.message)
        return Exit(self._end.code, self._end.message)

    async def _converse(self, watcher: Watcher, dialogue: Dialogue) -> None:
        now_s = asyncio.get_running_loop().time
        await self._do(dialogue.begin())
        while not dialogue.is_over:
            try:
                async with asyncio.timeout_at(dialogue.due_s(now_s())):
                    data = await watcher.read()
            except TimeoutError:
                await self._do(dialogue.tick(now_s()))
                continue
            if not data:
                await self._abandon(dialogue)
                return
            await self._do(dialogue.received(data, now_s()))

    async def _abandon(self, dialogue: Dialogue) -> None:
        with contextlib.suppress(Unavailable):
            await self._do(dialogue.abandon())

    async def _do(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            match output:
                case Type():
                    await self._console.write(output.keys.encode())
                case Print():
                    text = output.text.replace("\n", "\r\n") if self._command.tty else output.text
                    await self._command.write(text.encode())
                case End():
                    self._end = output
