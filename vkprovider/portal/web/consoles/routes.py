"""The paths of the view: consoles and screens of devices, their configurations, and which console a path names."""

import io
import shlex
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from vkprovider.lablet import captures, names
from vkprovider.lablet.deviceacts import act_of
from vkprovider.lablet.guests import GuestMode
from vkprovider.lablet.standing import learner_in
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.bodies import Form, read_form
from vkprovider.platform.http.connections import unless_left
from vkprovider.platform.http.open import Places
from vkprovider.platform.http.served import Handler, attachment
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import KnownCaller
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.bridge import BrowserConsoles, printed
from vkprovider.portal.web.consoles.captures import LEFT, CaptureDownload, asked
from vkprovider.portal.web.consoles.frames import Mode, Why
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening
from vkprovider.portal.web.consoles.screens import screen_run
from vkprovider.portal.web.lab.given import given_place, given_to, have_done, typing_in
from vkprovider.portal.web.lab.pieces import check_learner
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.visitors import FORM_BODY, Visitor, VisitorReviews, link

_AT_ONCE: Final = 4
"""As many as a worker extracts at once."""
DOWNLOADS_MAX: Final = 4
"""The most downloads of a replica: each has what it has read in memory."""
_ARCHIVE_BYTES_MAX: Final = 8 * 1024 * 1024
FAILURES: Final = "not-read.txt"
_UNIX: Final = 3
_MODE: Final = 0o644 << 16


class DeviceConfiguration(NamedTuple):
    """The configuration of a device, or why there is none.

    Attributes:
        device: The name of its container, which is one of a file, too.
        text: The configuration.
        fault: A sentence; "" if there is a configuration.
    """

    device: str
    text: bytes = b""
    fault: str = ""


class TooManyDownloads(Refused):
    """So many downloads of configurations go on already."""

    status_code = HTTPStatus.TOO_MANY_REQUESTS
    remedy = "Wait for the end of the other download, and try again."
    retry_s = 5


def downloads() -> Places:
    """Return the places of a replica's downloads of configurations: a few, and one for each visitor."""
    return Places(DOWNLOADS_MAX, 1, _too_many)


def _too_many(own: bool) -> TooManyDownloads:  # noqa: FBT001 (as `Places` calls it)
    if own:
        return TooManyDownloads("another download of yours goes on: wait for its end, and try again")
    return TooManyDownloads("too many others download configurations now: try again in some seconds")


async def collected(kube: KubeClient, targets: Sequence[ConsoleTarget]) -> list[DeviceConfiguration]:
    """Read the configurations of some devices, a few at a time; one that fails stops no other.

    One that does not fit into the archive any more is left out.

    Args:
        kube: A client with the credentials of the visitor.
        targets: The devices.
    """
    found: dict[str, DeviceConfiguration] = {}

    async def read(target: ConsoleTarget) -> None:
        configuration = await _read(kube, target)
        room = _ARCHIVE_BYTES_MAX - sum(len(each.text) for each in found.values())
        found[target.device] = configuration if len(configuration.text) <= room else _left_out(target.device)

    await at_most(_AT_ONCE, read, targets)
    return [found[target.device] for target in targets]


async def _read(kube: KubeClient, target: ConsoleTarget) -> DeviceConfiguration:
    device = target.device
    try:
        text, end = await printed(kube, target, [names.CONFIG, device])
    except OutsideError as error:
        return DeviceConfiguration(device, fault=frames.refusal(error, device).text)
    return DeviceConfiguration(device, text) if end.why is Why.ENDED else DeviceConfiguration(device, fault=end.text)


def _left_out(device: str) -> DeviceConfiguration:
    size = f"{_ARCHIVE_BYTES_MAX // 2**20} MiB"
    fault = f"It does not fit: an archive has {size} of configurations at most; `config {device}` prints it."
    return DeviceConfiguration(device, fault=fault)


def archive(found: Iterable[DeviceConfiguration], *, at: float) -> bytes:
    """Return a zip archive with a file for each configuration, and one that says which could not be read, if any.

    Args:
        found: The configurations.
        at: The time of the files, in Unix seconds.
    """
    files = {f"{each.device}.cfg": each.text for each in found if not each.fault}
    faults = "".join(f"{each.device}: {each.fault}\n" for each in found if each.fault)
    if faults or not files:
        files[FAILURES] = (faults or "This lab shows no devices.\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, text in files.items():
            whole.writestr(zip_entry(name, at), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def zip_entry(name: str, at: float) -> zipfile.ZipInfo:
    """Return the head of a file in an archive, which its owner may write wherever it is unpacked.

    Args:
        name: Of the file, with its folders.
        at: Its time, in Unix seconds.
    """
    entry = zipfile.ZipInfo(name, time.gmtime(at)[:6])
    entry.create_system, entry.external_attr = _UNIX, _MODE
    return entry


TILE: Final = "tile"
"""The value of `panel` in the address of a console that is one of many on a wall."""


class LabPlace(NamedTuple):
    """A lab that a visitor may see.

    Attributes:
        path: Of its page.
        whose: What it is called there.
        pod: The lablet; None if there is none now.
        mine: Whether the visitor is who works in it, or a guest.
        watches: Whether the visitor is a guest who only watches.
        may_type: Tells whether a visitor who types still may; None: as long as they have the right.
    """

    path: str
    whose: str
    pod: Pod | None
    mine: bool
    watches: bool = False
    may_type: Callable[[], bool] | None = None

    def target(self, device: str) -> ConsoleTarget:
        """Return the console of a device; there is a lablet.

        Raises:
            HTTPNotFound: There is none.
        """
        if self.pod is None:
            raise web.HTTPNotFound
        meta, containers = self.pod.metadata, self.pod.spec.containers
        return ConsoleTarget(meta.namespace, meta.name, containers[0].name if containers else "", device)


def console_path(place: LabPlace, device: str) -> str:
    """Return the path of the page of a console."""
    return f"{place.path}/consoles/{quote(device, safe='')}"


def screen_path(path: str, device: str) -> str:
    """Return the path of the page of a screen, by that of the page of its lab."""
    return f"{path}/screens/{quote(device, safe='')}"


def kubectl_command(target: ConsoleTarget) -> str:
    """Return the command that opens a console in a terminal."""
    pod = f"-n {target.namespace} {target.pod} -c {target.container}"
    return f"kubectl exec -it {pod} -- console {shlex.quote(target.device)}"


def screen_command(target: ConsoleTarget) -> str:
    """Return the command that leads a VNC viewer to a screen."""
    return f"kubectl lablet screen -n {target.namespace} {target.pod} {shlex.quote(target.device)}"


Finder = Callable[[web.Request, Visitor], Awaitable[LabPlace]]
"""Called with each request to find its lab; raises `HTTPNotFound` for a visitor who may not see it."""


class LabFinder:
    """Finds labs by the paths of requests."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site

    async def of_user(self, request: web.Request, visitor: Visitor) -> LabPlace:
        """Return the lab that `/labs/{user}` names.

        Raises:
            HTTPNotFound: The visitor may not see it, whether it exists or not.
            Refused: 429, or 503.
        """
        user = request.match_info["user"]
        if not await self._sees_lab(visitor.known, user):
            raise web.HTTPNotFound
        if visitor.known.caller.user == user:
            await self._site.requests.find(visitor.known.caller)
        lab = self._site.index.lab(user)
        pod, mine = lab.pod if lab is not None else None, visitor.known.caller.user == user
        return LabPlace(f"/labs/{quote(user, safe='')}", f"Lab of {user}", pod, mine)

    async def of_class(self, request: web.Request, visitor: Visitor) -> LabPlace:
        """Return the lablet that `/classes/{namespace}/lablets/{pod}` names.

        Raises:
            HTTPNotFound: The visitor may not see it, whether it exists or not.
            Refused: 429, or 503.
        """
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        if not await self._site.callers.teaches(visitor.known, "", namespace):
            raise web.HTTPNotFound
        path = f"/classes/{quote(namespace, safe='')}/lablets/{quote(name, safe='')}"
        pod, user = self._site.lablets.pod(namespace, name), visitor.known.caller.user
        return LabPlace(path, name, pod, mine=bool(user) and pod is not None and learner_in(pod) == user)

    async def of_learner(self, request: web.Request, visitor: Visitor) -> LabPlace:
        """Return the lablet that `/lablets/{namespace}/{pod}` names, for the learner who has it.

        Raises:
            HTTPNotFound: It is not theirs, whether it exists or not.
            Refused: 429, or 503.
        """
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        found = await given_to(self._site, visitor, namespace, name)
        path, whose = given_place(namespace, name).path, f"My lab of {namespace}"
        if found.guest is not None:
            whose = f"Lab of {learner_in(found.pod)}"
        may_type = typing_in(self._site, visitor, found.pod)
        return LabPlace(path, whose, found.pod, mine=True, watches=found.guest is GuestMode.WATCH, may_type=may_type)

    async def _sees_lab(self, known: KnownCaller, user: str) -> bool:
        """Return whether somebody owns a user's lab, teaches its class, or manages all labs."""
        callers, lab = self._site.callers, self._site.index.lab(user)
        class_ = lab.record.class_ if lab is not None else ""
        return (
            await callers.owns(known, user)
            or await callers.teaches(known, user, class_)
            or await callers.manages(known, user)
        )


_LAB: Final = "/labs/{user}"
_LABLET: Final = "/classes/{namespace}/lablets/{pod}"
_GIVEN: Final = "/lablets/{namespace}/{pod}"
_HEADERS: Final = {"Content-Type": "application/zip"}


class ConsoleViews(NamedTuple):
    """The handlers.

    Attributes:
        site: What all views share.
        finder: Finds labs.
        reviews: Asks whether somebody still may open a console.
        consoles: The open ones.
        downloads: Those of configurations that go on.
    """

    site: SiteContext
    finder: LabFinder
    reviews: VisitorReviews
    consoles: BrowserConsoles
    downloads: Places

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        found: list[Route] = []
        finder = self.finder
        for lab, find in ((_LAB, finder.of_user), (_LABLET, finder.of_class), (_GIVEN, finder.of_learner)):
            found += [
                Route("GET", f"{lab}/consoles/{{device}}", self._page_of(find)),
                Route("GET", f"{lab}/consoles/{{device}}/stream", self._stream_of(find)),
                Route("GET", f"{lab}/screens/{{device}}", self._screen_of(find)),
                Route("GET", f"{lab}/screens/{{device}}/stream", self._screen_stream_of(find)),
                Route("GET", f"{lab}/configurations", self._configurations_of(find)),
                Route("POST", f"{lab}/devices/{{act}}", self.site.visitors.posting(self._device_act_of(find))),
                Route("POST", f"{lab}/captures/start", self.site.visitors.posting(self._capture_of(find))),
                Route("POST", f"{lab}/captures/stop", self.site.visitors.posting(self._capture_stop_of(find))),
            ]
        return tuple(found)

    def _page_of(self, find: Finder) -> Handler:
        async def page(request: web.Request) -> web.StreamResponse:
            visitor = await self.site.visitors.of(request)
            place, device = await find(request, visitor), request.match_info["device"]
            if place.pod is None:
                raise web.HTTPSeeOther(link(request, place.path))
            here = console_path(place, device)
            return self.site.layout.render(
                request,
                "consoles/page.html",
                nonce=True,
                framed=True,
                is_panel="panel" in request.query,
                is_tile=request.query.get("panel") == TILE,
                device=device,
                whose=place.whose,
                back=place.path,
                here=here,
                stream=f"{here}/stream",
                mode=_first_mode(request, place),
                command=kubectl_command(place.target(device)),
                has_token=bool(visitor.token),
                only_watches=place.watches,
            )

        return page

    def _stream_of(self, find: Finder) -> Handler:
        async def stream(request: web.Request) -> web.StreamResponse:
            visitor = await self.site.visitors.watching(request)
            place = await find(request, visitor)
            mode = Mode.WATCH if place.watches else _mode(request)
            target = place.target(request.match_info["device"])
            user = visitor.known.of_cluster.username
            opening = Opening(user, visitor.user or user, mode, _again(request))
            renewed = partial(self._renewed, visitor)
            async with (
                self.site.as_visitor.client(visitor.token) as kube,
                self.reviews.holding(
                    visitor, target.right, may=place.may_type if mode is not Mode.WATCH else None
                ) as withdrawn,
            ):
                return await self.consoles.serve(request, opening, kube, target, withdrawn, renewed)

        return stream

    def _renewed(self, visitor: Visitor, ticket: str) -> None:
        session = self.site.visitors.of_ticket(ticket, self.site.ctx.wall())
        if session is not None and session.id == visitor.session:
            self.reviews.renewed(session)

    def _screen_of(self, find: Finder) -> Handler:
        async def page(request: web.Request) -> web.StreamResponse:
            visitor = await self.site.visitors.of(request)
            place, device = await find(request, visitor), request.match_info["device"]
            if place.pod is None:
                raise web.HTTPSeeOther(link(request, place.path))
            if place.watches:  # VNC knows nobody who only looks
                raise web.HTTPNotFound
            here = screen_path(place.path, device)
            return self.site.layout.render(
                request,
                "consoles/screen.html",
                pictures=True,
                device=device,
                whose=place.whose,
                back=place.path,
                here=here,
                stream=f"{here}/stream",
                mine=place.mine,
                command=screen_command(place.target(device)),
                has_token=bool(visitor.token),
            )

        return page

    def _screen_stream_of(self, find: Finder) -> Handler:
        async def stream(request: web.Request) -> web.StreamResponse:
            visitor = await self.site.visitors.watching(request)
            place = await find(request, visitor)
            if place.watches:
                raise web.HTTPNotFound
            target = place.target(request.match_info["device"])
            async with (
                self.site.as_visitor.client(visitor.token) as kube,
                self.reviews.holding(visitor, target.right, may=place.may_type) as withdrawn,
            ):
                run = screen_run(kube, target, withdrawn, partial(self._renewed, visitor))
                return await self.consoles.carried(request, visitor.known.of_cluster.username, run)

        return stream

    def _configurations_of(self, find: Finder) -> Handler:
        async def configurations(request: web.Request) -> web.StreamResponse:
            visitor = await self.site.visitors.of(request)
            place = await find(request, visitor)
            if place.pod is None:
                raise web.HTTPNotFound
            devices = [container.name for container in place.pod.spec.containers[1:]]
            user, targets = visitor.known.of_cluster.username, [place.target(device) for device in devices]
            with self.downloads.taken(user):
                async with self.site.as_visitor.client(visitor.token) as kube:
                    found = await unless_left(request, collected(kube, targets))
            if found is None:
                return web.Response(status=LEFT)
            named = attachment(f"{place.path.rsplit('/', 1)[-1]}-configurations.zip")
            return web.Response(body=archive(found, at=self.site.ctx.wall()), headers={**_HEADERS, **named})

        return configurations

    async def _using(self, find: Finder, request: web.Request) -> tuple[Visitor, LabPlace]:
        """Return who asks, and the lab, which they may use and not only watch.

        Raises:
            HTTPNotFound: They only watch.
        """
        visitor = await self.site.visitors.of(request)
        place = await find(request, visitor)
        if place.watches:
            raise web.HTTPNotFound
        return visitor, place

    def _device_act_of(self, find: Finder) -> Handler:
        async def change(request: web.Request) -> web.StreamResponse:
            """Do it to one device, by the visitor's own right, and lead back to the page."""
            visitor, place = await self._using(find, request)
            act, form = act_of(request.match_info["act"]), await _form_of(request, place)
            device = str(form.get("device", ""))
            if act is None or not device:
                raise web.HTTPNotFound
            await have_done(self.site, visitor, place.target(device), (names.DEVICE, act, device, "--yes"))
            raise web.HTTPSeeOther(link(request, place.path))

        return change

    def _capture_of(self, find: Finder) -> Handler:
        async def capture(request: web.Request) -> web.StreamResponse:
            visitor, place = await self._using(find, request)
            wanted = asked(await _form_of(request, place))
            download = CaptureDownload(self.site, self.reviews, self.consoles)
            return await download.answer(request, visitor, place.target("the lab"), wanted, place.may_type)

        return capture

    def _capture_stop_of(self, find: Finder) -> Handler:
        async def stop(request: web.Request) -> web.StreamResponse:
            visitor, place = await self._using(find, request)
            await _form_of(request, place)
            await have_done(self.site, visitor, place.target("the lab"), (names.CAPTURE, captures.STOP))
            raise web.HTTPSeeOther(link(request, place.path))

        return stop


async def _form_of(request: web.Request, place: LabPlace) -> Form:
    """Read a form about a lab.

    Raises:
        Rejected: It was sent for another learner than has the lab now.
    """
    form = await read_form(request, FORM_BODY)
    if place.pod is not None:
        check_learner(form, learner_in(place.pod))
    return form


def _mode(request: web.Request) -> Mode:
    """Return what a visitor wants at a console.

    Raises:
        HTTPBadRequest: The request does not say so in our words.
    """
    try:
        return Mode(request.query.get("as", Mode.TYPE))
    except ValueError:
        raise web.HTTPBadRequest from None


def _again(request: web.Request) -> float:
    """Return when a page that connects once more by itself opened its console (Unix seconds); else 0.

    Raises:
        HTTPBadRequest: The request does not say so in our words.
    """
    try:
        return float(request.query.get("again", "0"))
    except ValueError:
        raise web.HTTPBadRequest from None


def _first_mode(request: web.Request, place: LabPlace) -> Mode:
    """Return how a page opens its console at first: who looks at the lab of somebody else watches.

    It takes over only when its button is pressed, after no link.

    Raises:
        HTTPBadRequest: The request does not say it in our words.
    """
    if place.watches:
        return Mode.WATCH
    mode = _mode(request) if place.mine or "as" in request.query else Mode.WATCH
    return Mode.TYPE if mode is Mode.TAKE_OVER else mode


def routes(site: SiteContext, live: Live, consoles: BrowserConsoles, places: Places) -> tuple[Route, ...]:
    """Return the paths.

    Args:
        site: What every view is given.
        live: Asks whether somebody still may open a console.
        consoles: The open ones.
        places: Of downloads of configurations, of all pages.
    """
    return ConsoleViews(site, LabFinder(site), live.reviews, consoles, places).routes()
