"""What the kubelet API needs of the lablets."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from tunnels.base import ByteChannel
from vkprovider.lablet import names
from vkprovider.lablet.inputs import message_of
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console import logs
from vkprovider.labs.controllers.console.captures import OpenCaptures
from vkprovider.labs.controllers.console.commands import (
    Execution,
    attach,
    carry,
    print_configuration,
)
from vkprovider.labs.controllers.console.finding import Finder, FoundDevice, FoundLablet, told
from vkprovider.labs.controllers.console.logs import Followed, chosen
from vkprovider.labs.controllers.console.open import OpenConsoles
from vkprovider.labs.controllers.console.requests import REQUESTS, device_asked, request, request_of_device
from vkprovider.labs.controllers.console.usage import UsageFigures
from vkprovider.labs.kubelet.spi import DeviceUsage, Exit, LogLine, LogOptions, RemoteCommand, Target
from vkprovider.labs.pure.console.dialogue import Dialogue
from vkprovider.labs.pure.console.history import TimedLine
from vkprovider.labs.pure.console.manners import Manners
from vkprovider.labs.pure.console.ports import PortRoute
from vkprovider.labs.pure.console.words import is_shell, line_of, moves_files
from vkprovider.platform.errors import InputError, NotFound, Unavailable
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context
from vkprovider.rest.dialect import Unsent

_NAMED_WORDS: Final = 2
OF_WHOLE: Final = REQUESTS | {names.CONFIG, names.DEVICE, names.SCREEN, names.CAPTURE}
"""The commands that the container of the lablet as a whole serves."""


class LabletDevices:
    """`spi.Devices` of this replica.

    Args:
        ctx: The replica.
        finder: Finds lablets and devices.
        opened: What is open.
        usage: What devices use.
        manners: How devices talk.
        exec_timeout_s: How long a device may be silent before a command counts as lost.
    """

    def __init__(
        self,
        ctx: Context,
        finder: Finder,
        opened: OpenConsoles,
        usage: UsageFigures,
        *,
        manners: Manners,
        exec_timeout_s: float,
    ) -> None:
        self._ctx = ctx
        self._finder = finder
        self._opened = opened
        self._usage = usage
        self._manners = manners
        self._exec_timeout_s = exec_timeout_s
        self._captures = OpenCaptures(finder)
        self._followed: dict[tuple[str, str, str], Followed] = {}

    async def attach(self, target: Target, command: RemoteCommand, *, take_over: bool = False) -> Exit:
        """Connect a session with the console of a device; see `spi.Devices`."""
        with told():
            return await self._attach(await self._finder.running(target), command, take_over=take_over)

    async def execute(self, target: Target, words: Sequence[str], command: RemoteCommand) -> Exit:
        """Type a command at a device's prompt; see `spi.Devices`."""
        with told():
            return await self._execute(target, words, command)

    async def dial(self, namespace: str, pod: str, port: int) -> ByteChannel:
        """Connect to a port of a lablet; see `spi.Devices`.

        A console or screen whose port does not open, because PATty is off, is reached through CML's own interface.
        """
        return await self._reach(*self._finder.way(namespace, pod, port), pod)

    async def _reach(self, place: FoundLablet, way: PortRoute, pod: str) -> ByteChannel:
        consoles = place.worker.labs.consoles
        with told():
            try:
                return await self._opened.connect(place.worker, partial(consoles.open_port, way.port))
            except Unsent:
                if way.slot.kind not in {"serial", "vnc"}:
                    raise
                return await self._dial_console(place, way, pod)

    async def _dial_console(self, place: FoundLablet, way: PortRoute, pod: str) -> ByteChannel:
        claim = place.claim
        target = Target(claim.namespace, pod, claim.pod_uid, way.slot.container)
        device = await self._finder.running(target)
        consoles, node, line = place.worker.labs.consoles, device.fact.id, way.slot.tag.line or 0
        dial = partial(consoles.open_console, device.lab_id, node, line)
        if way.slot.kind == "vnc":
            dial = partial(consoles.open_screen, device.lab_id, node)
        try:
            return await self._opened.connect(place.worker, dial)
        except NotFound:
            text = f"port {way.port} ({way.slot.name}) of pod {pod} is not open, and CML knows nothing behind it"
            raise InputError(ConsoleReason.NO_CONSOLE, text) from None

    async def log(self, target: Target, options: LogOptions) -> AsyncIterator[LogLine]:
        """Read the log of a device; see `spi.Devices`."""
        with told():
            device = await self._finder.device(target)
            if because := device.worker.seen.silent_because:
                raise Unavailable(because)
            now, tail = self._ctx.wall(), options.tail_lines
            if not options.follow:
                read = (
                    logs.read_previous(device, now=now) if options.previous else logs.read(device, now=now, tail=tail)
                )
                for line in chosen(await read, since_at=options.since_at, tail=tail):
                    yield line
                return
            async with aclosing(self._follow(target, device)) as parts:
                async for some in parts:
                    for line in chosen(some, since_at=options.since_at, tail=tail):
                        yield line
                    tail = None

    def usage(self, node: str) -> Iterable[DeviceUsage]:
        """List what the devices on a Node use; see `spi.Devices`."""
        return list(self._usage.of_node(node))

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Show an instructor's new message to the people at the consoles of its lablet."""
        note = names.ANNOTATION_MESSAGE
        if old is None or new is None or old.metadata.annotations.get(note) == new.metadata.annotations.get(note):
            return
        worker = self._finder.workers.get(names.worker_of(new.spec.node_name) or "")
        claim = worker.claims.claims.get(new.metadata.uid) if worker is not None else None
        message = message_of(new.metadata.annotations)
        if worker is not None and claim is not None and claim.lab_id and message is not None:
            self._opened.announce(worker.name, claim.lab_id, f"message: {message.text}")

    async def _execute(self, target: Target, words: Sequence[str], command: RemoteCommand) -> Exit:
        if words and words[0] == names.CONSOLE:
            named = [word for word in words[1:] if word != names.TAKE_OVER]
            if len(named) > 1:
                text = f"write `{names.CONSOLE} [DEVICE] [{names.TAKE_OVER}]`"
                raise InputError(ConsoleReason.COMMAND_INVALID, text)
            device = await self._finder.running(target, named="".join(named))
            return await self._attach(device, command, take_over=names.TAKE_OVER in words)
        if words and words[0] in OF_WHOLE and await self._finder.is_whole(target):
            return await self._execute_of_whole(target, words, command)
        if moves_files(words):
            raise InputError(
                ConsoleReason.NO_FILES,
                "a console passes no files on. Use scp, if the device has a tag for its SSH port (`pat:…:22`):"
                f" `kubectl port-forward {target.pod} 2222:22`, then `scp -P 2222 FILE USER@127.0.0.1:`",
            )
        if is_shell(words):
            if not (command.stdin and command.tty):
                raise InputError(
                    ConsoleReason.NO_TERMINAL,
                    "a shell at a device is its console, which needs a person: "
                    f"`kubectl exec -it {target.pod} -c {target.container} -- console`",
                )
            return await self._attach(await self._finder.running(target), command, take_over=False)
        device = await self._finder.running(target)
        manner = self._manners.of(device.fact.definition)
        if manner is None:
            raise InputError(
                ConsoleReason.UNSUPPORTED_DEVICE,
                f"the prompt of {device.label} ({device.fact.definition}) is not known: use `kubectl lablet console`,"
                " or name it in the file of VKPROVIDER_CONSOLE_PROMPTS",
            )
        line = line_of(words, quotes=manner.quotes)
        console = self._opened.console(device, self._manners.line(device.fact.definition))
        async with console.watching() as watcher:
            await console.claim(watcher, attached=False)
            dialogue = Dialogue(
                manner,
                line,
                device=device.label,
                timeout_s=self._exec_timeout_s,
                now_s=asyncio.get_running_loop().time(),
            )
            return await Execution(console, target.container, command).run(watcher, dialogue)

    async def _execute_of_whole(self, target: Target, words: Sequence[str], command: RemoteCommand) -> Exit:
        """Do what the container of the lablet as a whole serves by the first word; see `OF_WHOLE`."""
        match words[0]:
            case names.CONFIG:
                if len(words) != _NAMED_WORDS:
                    raise InputError(ConsoleReason.COMMAND_INVALID, f"write `{names.CONFIG} DEVICE`")
                return await print_configuration(await self._finder.any_device(target, named=words[1]), command)
            case names.DEVICE:
                act, label, sure = device_asked(words)
                found = await self._finder.any_device(target, named=label)
                return await request_of_device(self._ctx, found, act, command, sure=sure)
            case names.SCREEN:
                if len(words) != _NAMED_WORDS or command.tty or not command.stdin:
                    text = f"write `{names.SCREEN} DEVICE`, with input and without a terminal: `kubectl exec -i`"
                    raise InputError(ConsoleReason.COMMAND_INVALID, text)
                place, way = await self._finder.screen(target, words[1])
                return await carry(command, await self._reach(place, way, target.pod), f"the screen of {words[1]}")
            case names.CAPTURE:
                place = self._finder.place(target.namespace, target.pod, target.uid)
                return await self._captures.serve(place, words, command)
            case _:
                place = self._finder.place(target.namespace, target.pod, target.uid)
                return await request(self._ctx, place, words, command)

    async def _attach(self, device: FoundDevice, command: RemoteCommand, *, take_over: bool) -> Exit:
        about = f"the console of {device.label} ({device.fact.definition}) on worker {device.worker.name}"
        console = self._opened.console(device, self._manners.line(device.fact.definition))
        return await attach(console, command, about=about, take_over=take_over)

    def _follow(self, target: Target, device: FoundDevice) -> AsyncGenerator[list[TimedLine]]:
        self._followed = {key: found for key, found in self._followed.items() if found.is_followed}
        key = (target.uid or device.place.lablet.uid, device.label, device.place.claim.learner)
        found = self._followed.get(key)
        if found is None:
            found = self._followed[key] = Followed(
                partial(self._finder.again, device), self._opened.console, self._ctx.wall
            )
        return found.follow()
