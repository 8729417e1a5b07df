"""`kubectl attach`: a person at the console of a device."""

import asyncio
import contextlib
from typing import Final

from tunnels.errors import ConnectionLost
from vkprovider.labs.controllers.console.shared import Console, Watcher
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.console.writers import TAKEN
from vkprovider.platform.errors import OutsideError

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
            for task in waiting:
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
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


async def say(command: RemoteCommand, text: str) -> None:
    """Show a message to a person, who may have left."""
    with contextlib.suppress(ConnectionLost):
        if command.tty:
            await command.write(f"\r\n[{text}]\r\n".encode())
        else:
            await command.write_error(f"{text}\n".encode())
