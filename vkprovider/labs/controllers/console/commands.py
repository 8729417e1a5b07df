"""`kubectl attach`, `kubectl exec`, `exec -- config` and `-- screen`: a person, or one command, at a device."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Final

from tunnels.base import ByteChannel, ConnectionLost
from vkprovider.lablet.observations import BOOTED
from vkprovider.lablet.ports import HIDDEN_TAG, INFRASTRUCTURE_NODE_TYPES
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.finding import FoundDevice, topology_of
from vkprovider.labs.controllers.console.shared import Console, Watcher
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.console.dialogue import Dialogue, DialogueEnd, Output, Print, Type
from vkprovider.labs.pure.console.writers import TAKEN
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import InputError, Invalid, OutsideError, Unavailable

ESCAPE: Final = b"\x1d"
"""Ctrl-], as in telnet and at CML's own terminal server: leaves the console."""


async def attach(console: Console, command: RemoteCommand, *, about: str, take_over: bool) -> Exit:
    """Connect a session with a console until either ends.

    Args:
        console: The device's.
        command: The session; without stdin it only watches.
        about: What the device is, for the greeting of a terminal.
        take_over: Type, although another session does.

    Raises:
        InputError: `ConsoleInUse`, `TooManySessions`.
        OutsideError: The console did not open.
    """
    async with console.watching(person=True) as watcher:
        before = await console.claim(watcher, attached=True, take_over=take_over) if command.stdin else None
        if command.tty:
            does = "Escape character is '^]'." if command.stdin else "You watch."
            await command.write(f"Connected to {about}. {does}\r\n".encode())
        if before is not None:
            await say(
                command,
                f"you have taken over from a session that typed since {before.since_when}: it watches, and types again"
                " when you leave",
            )
        printing = asyncio.create_task(_print(watcher, command), name="console: output")
        waiting = [printing, asyncio.create_task(command.gone(), name="console: client")]
        if command.stdin:
            waiting.append(asyncio.create_task(_type(console, watcher, command), name="console: input"))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            results = await end_tasks(waiting)
    return await _end(watcher, command, results)


async def _print(watcher: Watcher, command: RemoteCommand) -> None:
    while data := await watcher.read():
        await command.write(data)


async def _type(console: Console, watcher: Watcher, command: RemoteCommand) -> None:
    """Pass keys on; return when the person leaves, go on for ever when there are no more keys."""
    told = False
    while data := await command.read():
        if not command.tty:
            data = data.replace(b"\n", b"\r")
        keys, escape, _ = data.partition(ESCAPE) if command.tty else (data, b"", b"")
        if console.types(watcher):
            if keys:
                await console.write(keys)
            told = False
        elif not told:
            told = True
            await say(command, TAKEN)
        if escape:
            return
    await asyncio.Event().wait()


async def _end(watcher: Watcher, command: RemoteCommand, results: list[BaseException | None]) -> Exit:
    failed = next((error for error in results if isinstance(error, OutsideError)), None)
    unforeseen = next((e for e in results if isinstance(e, Exception) and not isinstance(e, OutsideError)), None)
    if unforeseen is not None and not isinstance(unforeseen, ConnectionLost):
        raise unforeseen
    why = watcher.ended or (failed.message if failed is not None else "")
    if why:
        await say(command, why)
        return Exit(1, why)
    return Exit(0)


async def carry(command: RemoteCommand, channel: ByteChannel, what: str) -> Exit:
    """Pass bytes on in both directions, each as fast as its reader takes them, until either end leaves.

    Args:
        command: The session.
        channel: To the device; it is closed in the end.
        what: What the channel leads to, for the message when that ends.

    Raises:
        Unavailable: The device, or the way to it, ended it.
    """

    async def there() -> bool:
        """Return whether the client has left, and not the device."""
        while data := await command.read():
            try:
                await channel.write(data)
            except ConnectionLost:
                return False
        return True

    async def back() -> None:
        while data := await _read(channel):
            await command.write(data)

    try:
        typing = asyncio.create_task(there(), name="screen: input")
        showing = asyncio.create_task(back(), name="screen: output")
        try:
            await asyncio.wait((typing, showing), return_when=asyncio.FIRST_COMPLETED)
            has_left = not showing.done() and typing.done() and typing.result()
        finally:
            await end_tasks((typing, showing))
    finally:
        await channel.close()
    if not has_left:
        raise Unavailable(f"{what} has ended: its device stopped, or the way to it broke")
    return Exit(0)


async def _read(channel: ByteChannel) -> bytes:
    try:
        return await channel.read()
    except ConnectionLost:
        return b""


async def say(command: RemoteCommand, text: str) -> None:
    """Show a message to a person, who may have left."""
    with contextlib.suppress(ConnectionLost):
        if command.tty:
            await command.write(f"\r\n[{text}]\r\n".encode())
        else:
            await command.write_error(f"{text}\n".encode())


WHOLE_S_MAX: Final = 3600.0
"""However much a command goes on printing."""
_INTERRUPT_S: Final = 2.0
"""How long the keys may take that interrupt a command whose client is gone."""


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
        self._end: DialogueEnd | None = None
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
        except asyncio.CancelledError:  # the client's connection broke off, and with it the handler of its request
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_INTERRUPT_S):
                    await self._abandon(dialogue)
            raise
        finally:
            await end_tasks(watched)
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
        with contextlib.suppress(Unavailable, ConnectionLost):
            await self._do(dialogue.abandon())

    async def _do(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            match output:
                case Type():
                    await self._console.write(output.keys.encode())
                case Print():
                    text = output.text.replace("\n", "\r\n") if self._command.tty else output.text
                    await self._command.write(text.encode())
                case DialogueEnd():
                    self._end = output


async def print_configuration(device: FoundDevice, command: RemoteCommand) -> Exit:
    """Have CML extract the configuration of a device, and print it.

    Raises:
        InputError: `NoConfiguration`, `DeviceOff`.
        OutsideError: CML did not answer.
    """
    text = await _extracted(device)
    await command.write((text.replace("\n", "\r\n") if command.tty else text).encode())
    return Exit(0)


async def _extracted(device: FoundDevice) -> str:
    fact = device.fact
    if fact.definition in INFRASTRUCTURE_NODE_TYPES:
        raise _none(f"a device of the kind {fact.definition}, such as {fact.label}, has no configuration")
    if any(each.label == fact.label and HIDDEN_TAG in each.tags for each in topology_of(device.place).devices):
        raise _none(f"{fact.label} is hidden: its definition tags it `{HIDDEN_TAG}`")
    if fact.state != BOOTED:
        text = f"the configuration of {fact.label} cannot be extracted while the device is {fact.state}"
        raise InputError(ConsoleReason.DEVICE_OFF, text)
    configs, faults = await device.worker.labs.extract_configs(device.lab_id, (fact,))
    error = faults.get(fact.label)
    if isinstance(error, Invalid):
        raise _none(f"CML extracts no configuration of {fact.label}, a device of the kind {fact.definition}")
    if error is not None:
        raise error
    if fact.label not in configs:
        raise _none(f"the configuration of {fact.label} ({fact.definition}) is empty")
    return configs[fact.label]


def _none(text: str) -> InputError:
    return InputError(ConsoleReason.NO_CONFIGURATION, text)
