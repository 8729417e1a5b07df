"""`kubectl exec`: one command, typed at the prompt of a device."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Final

from tunnels.errors import ConnectionLost
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.attach import say
from vkprovider.labs.controllers.console.shared import Console, Watcher
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.console.dialogue import Dialogue, End, Output, Print, Type
from vkprovider.platform.errors import InputError, Unavailable

WHOLE_S_MAX: Final = 3600.0
"""However much a command goes on printing."""


class Execution:
    """One command at a console.

    Args:
        console: The device's.
        container: The container that stands for the device, for messages.
        command: The session.
    """

    def __init__(self, console: Console, container: str, command: RemoteCommand) -> None:
        self._console = console
        self._container = container
        self._command = command
        self._end: End | None = None
        self._has_input = False

    async def run(self, watcher: Watcher, dialogue: Dialogue) -> Exit:
        """Type the command and print its output until it ends, or the client leaves.

        Raises:
            InputError: `NoInput`: the client sends input, which the device would never see.
            OutsideError: The console broke off before the command was typed.
        """
        watched = [
            asyncio.create_task(self._until_gone(watcher), name="exec: client"),
            asyncio.create_task(self._until_input(watcher), name="exec: input"),
        ]
        try:
            async with asyncio.timeout(WHOLE_S_MAX):
                await self._converse(watcher, dialogue)
        except (ConnectionLost, TimeoutError):
            await self._abandon(dialogue)
        finally:
            for task in watched:
                task.cancel()
            await asyncio.gather(*watched, return_exceptions=True)
        if self._has_input and self._end is None:
            state = "was interrupted" if dialogue.was_typed else "was not typed"
            raise InputError(
                ConsoleReason.NO_INPUT,
                f"exec passes no input on to a device, and the command {state}: for input use `kubectl attach -i` or"
                f" `kubectl exec -i POD -c {self._container} -- console`",
            )
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
            if not data or self._has_input:
                await self._abandon(dialogue)
                return
            await self._do(dialogue.received(data, now_s()))

    async def _until_gone(self, watcher: Watcher) -> None:
        await self._command.gone()
        watcher.end("")

    async def _until_input(self, watcher: Watcher) -> None:
        if self._command.stdin and await self._command.read():
            self._has_input = True
            watcher.end("")

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
