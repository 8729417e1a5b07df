"""A console for who came by ssh, whatever carries its bytes: with the account of the link, as the page opens it."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog
from aiohttp import web

from vkprovider.lablet.guests import GuestMode
from vkprovider.platform.errors import OutsideError, Unavailable
from vkprovider.platform.http.answers import Refused
from vkprovider.portal.pure.view import from_pod
from vkprovider.portal.ssh import logins
from vkprovider.portal.ssh.door import Door, SshPerson
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.bridge import BrowserConsoles, UpstreamConsole, after, first_end, upstream
from vkprovider.portal.web.consoles.frames import ConsoleEnd, Mode, Why
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening
from vkprovider.portal.web.consoles.typists import BrowserSession
from vkprovider.portal.web.lab.given import given_to, typing_in
from vkprovider.portal.web.linksite import LinkSite

_log: Final = structlog.get_logger(__name__)
_FAILED: Final = 1


class TerminalStream(Protocol):
    """The bytes of a terminal."""

    async def read(self) -> bytes:
        """Return what was typed next; none at the end."""

    async def write(self, data: bytes) -> None:
        """Show bytes, and wait while the terminal is slow.

        Raises:
            ConnectionError: It has gone.
        """

    def say(self, text: str) -> None:
        """Show a text beside the output of the device."""


class SshConsoles:
    """Opens consoles of a replica for those who came by ssh."""

    def __init__(self, links: LinkSite, consoles: BrowserConsoles, door: Door) -> None:
        """Create it.

        Args:
            links: What links open.
            consoles: The open ones of the replica, of all pages, whose places these take.
            door: Says whether who came in before still may.
        """
        self._door = door
        self._site = links.context
        self._reviews = links.live.reviews
        self._consoles = consoles

    async def serve(self, person: SshPerson, mode: Mode, terminal: TerminalStream) -> int:
        """Serve the console that a login names, until either side ends it; return the exit status."""
        try:
            now = await self._door.again(person)
            if now is not None:
                return await self._serve(now, mode, terminal)
            terminal.say(logins.NOT_YET)
        except Refused as refusal:
            terminal.say(refusal.message)
        except OutsideError as error:
            terminal.say(error.message)
        except web.HTTPNotFound:
            terminal.say(logins.NOT_YET)
        return _FAILED

    async def _serve(self, person: SshPerson, mode: Mode, terminal: TerminalStream) -> int:
        site, only, learner = self._site, person.only, person.visitor.user
        found = await given_to(site, person.visitor, only.namespace, only.pod)
        pod = found.pod
        view = from_pod(pod, site.index.status_of(pod.spec.runtime_class_name), (), site.ctx.wall())
        there = [(each.label, each.state or "") for each in view.devices if each.console]
        labels = [label for label, _ in there]
        device = logins.device_in(person.login, learner, {only.namespace, only.pod}, labels)
        if device not in labels:
            terminal.say(logins.devices_shown(learner, there, device))
            return _FAILED if device else 0
        if found.guest is GuestMode.WATCH:
            mode = Mode.WATCH
        containers = pod.spec.containers
        target = ConsoleTarget(only.namespace, only.pod, containers[0].name if containers else "", device)
        may_type = typing_in(site, person.visitor, pod)
        end = await self._opened(person, mode, target, terminal, None if mode is Mode.WATCH else may_type)
        if end.why is Why.IN_USE:
            terminal.say(logins.watching(end.text, person.login))
            end = await self._opened(person, Mode.WATCH, target, terminal, None)
        if end.why is Why.ENDED:
            return 0
        terminal.say(end.text)
        return _FAILED

    async def _opened(
        self,
        person: SshPerson,
        mode: Mode,
        target: ConsoleTarget,
        terminal: TerminalStream,
        may: Callable[[], bool] | None,
    ) -> ConsoleEnd:
        """Open a console and pass on what comes both ways; return why it has ended.

        Raises:
            Refused: There are too many.
        """
        visitor = person.visitor
        caller = visitor.known.of_cluster.username
        about = {"user": caller, "namespace": target.namespace, "pod": target.pod, "device": target.device}
        with self._consoles.place(caller) as leaving:
            _log.info("a console begins by ssh", mode=mode, **about)
            async with (
                self._site.as_visitor.client(visitor.token) as kube,
                self._reviews.holding(visitor, target.right, may=may) as withdrawn,
                self._consoles.typists.session(target, Opening(caller, visitor.user, mode)) as session,
            ):
                try:
                    async with upstream(kube, target, mode) as console:
                        end = await self._pass_on(console, target, session, terminal, withdrawn, leaving)
                except OutsideError as error:
                    end = frames.refusal(error, target.device)
                except ConnectionError:
                    end = frames.ENDED  # the person has left
                other = self._consoles.typists.other(target, session)
            _log.info("a console by ssh has ended", why=end.why, **about)
        return end.by(other.opening.name) if other is not None else end

    async def _pass_on(
        self,
        console: UpstreamConsole,
        target: ConsoleTarget,
        session: BrowserSession,
        terminal: TerminalStream,
        withdrawn: asyncio.Event,
        leaving: asyncio.Event,
    ) -> ConsoleEnd:
        def note(data: bytes) -> None:
            self._consoles.typists.feed(target, session, data)

        return await first_end(
            output=_output(console, terminal, note),
            input=_input(console, terminal, types=session.opening.mode is not Mode.WATCH),
            right=after(withdrawn, frames.WITHDRAWN),
            elsewhere=after(session.moved, frames.MOVED),
            leaving=after(leaving, frames.LEAVING),
        )


async def _output(console: UpstreamConsole, terminal: TerminalStream, note: Callable[[bytes], None]) -> ConsoleEnd:
    while data := await console.read():
        note(data)
        await terminal.write(data)
    return console.end


async def _input(console: UpstreamConsole, terminal: TerminalStream, *, types: bool) -> ConsoleEnd:
    while keys := await terminal.read():
        if not types:
            if b"\x03" in keys:
                break  # as `kubectl lablet console --watch` ends
            continue
        try:
            await console.write(keys)
        except Unavailable:
            return frames.BROKEN
    return frames.ENDED
