"""The page of one lab and its parts that change: elements with ids, what can be done, the form to ask for it.

Many people may see one piece, so that it has nothing of one visitor: its buttons belong to the form `acts` of the page.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from aiohttp import web
from markupsafe import Markup

from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.devices import DeviceState, Port, SeenDevice
from vkprovider.lablet.guests import GuestMode
from vkprovider.lablet.standing import passed_to
from vkprovider.platform.times import clock, iso, length
from vkprovider.portal.pure import options
from vkprovider.portal.pure.form import FormOffer
from vkprovider.portal.pure.options import Grounds, LabWish, Rejection
from vkprovider.portal.pure.plainwords import learners_view
from vkprovider.portal.pure.view import LabView, command_for
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.layout import Layout
from vkprovider.portal.web.live.topics import Rendering, time_left

_FIELDS = {"image": "image_list", "size": "size", "class": "class", "begin_from": "begin_from"}
"""The option of a request that a field of the form is."""


def wanted_of(form: Mapping[str, object]) -> LabWish | Rejection:
    """Return the lab that a form asks for, or why it asks for none."""
    found = {option: form[field] for field, option in _FIELDS.items() if form.get(field)}
    found |= {name: value for name, value in form.items() if name.startswith(options.PARAMETER) and value}
    wanted = options.parse({"options": found})
    return wanted if isinstance(wanted, LabWish) else wanted[0]


WIPES: Final = "The devices are being wiped, and start again."
ENDING_S: Final = 600.0
"""How long before the end of a lab its page warns."""
OWNER: Final = "owner"
TEACHER: Final = "teacher"
MANAGER: Final = "manager"
"""The roles of those who see the lab of a user: its own user; who teaches its class; who manages all labs."""


class Deed(NamedTuple):
    """A button.

    Attributes:
        path: Where the form is sent, below the base.
        words: On the button.
        question: What happens, and whether to go on; "" if it needs no question.
        yes: On the button that does it after the question.
        name, value: A field that is sent along; "" for none.
        done: What is said when it is done.
        variant: What tells it from another question about the same path.
    """

    path: str
    words: str
    question: str = ""
    yes: str = ""
    name: str = ""
    value: str = ""
    done: str = "It is done."
    variant: str = ""

    @property
    def act(self) -> str:
        """What it does, as one word: the end of its path, with the variant."""
        return self.path.rsplit("/", 1)[1] + self.variant


def deeds_of(view: LabView, path: str, role: str, extend_s: int, *, saves: bool = False) -> Iterable[Deed]:
    """Yield what somebody may do with the lab of a user now.

    Args:
        view: The lab.
        path: Of its page.
        role: One of those above.
        extend_s: By how much its time is extended.
        saves: Whether the next lab can begin from what the provider keeps of one that ends.
    """
    own = role == OWNER
    if own or role == TEACHER:
        if view.extend.possible:
            yield Deed(
                f"{path}/extend",
                f"Extend by {length(extend_s)}",
                done="Your lab has more time now." if own else "The lab has more time now.",
            )
        if view.reset.possible:
            question = "All devices are wiped and start again. What was typed on them is lost."
            yield Deed(f"{path}/reset", "Reset the lab", question, "Reset it now", done=WIPES)
    if view.stop.possible and own and saves and view.configurations.possible:
        question = (
            "The configurations of all devices that run are saved, and the lab is removed. Your next lab can begin "
            "from them, as long as they are kept. What else is on the devices, such as files, is lost."
        )
        done = "The configurations are being saved, and the lab is being removed."
        words = "Save and end the lab"
        yield Deed(f"{path}/stop", words, question, "Save and end it now", done=done, variant="-saved")
    elif view.stop.possible:
        question = "The lab is removed with all its devices. What was typed on them is lost, unless you download it."
        yield Deed(f"{path}/stop", "End the lab", question, "End it now", done="The lab is being removed.")


PIECES: Final = ("ending", "state", "time", "people", "message", "failure", "progress", "picture", "devices", "acts")
"""The pieces, in the order of the page; the id of each is `lab-NAME`."""
_CODE: Final = re.compile(r"`([^`]+)`")


class LabPaths(NamedTuple):
    """Where the page of a lab is.

    Attributes:
        path: Its path below the base: `/labs/alice`, or `/classes/net101/lablets/bob-0`.
        topic: By which changes of it are followed: `lab:alice`, or `lablet:net101/bob-0`.
    """

    path: str
    topic: str


def lablet_place(namespace: str, pod: str) -> LabPaths:
    """Return where the page of a lablet of a class is."""
    return LabPaths(f"/classes/{namespace}/lablets/{pod}", f"lablet:{namespace}/{pod}")


def user_place(user: str) -> LabPaths:
    """Return where the page of a user's lab is."""
    return LabPaths(f"/labs/{quote(user, safe='')}", f"lab:{user}")


class Audience(NamedTuple):
    """The people who see the same pieces.

    Attributes:
        consoles: Whether they can open consoles here; else they are told the command.
        mine: Whether the lab is their own.
        locked: Whether the cluster gives them no right to its consoles.
        guest: What they do at its consoles, if they are guests there.
        guests: The path of the page where they name guests; "" if they may not.
        learner: Whose lab a form is about, which is refused once the lab is another's; None where it is always theirs.
    """

    consoles: bool = True
    mine: bool = True
    locked: bool = False
    guest: GuestMode | None = None
    guests: str = ""
    learner: str | None = None


def pieces(
    layout: Layout,
    view: LabView | None,
    place: LabPaths,
    deeds: Iterable[Deed],
    audience: Audience,
    base: str,
    now: float,
) -> dict[str, str]:
    """Return the pieces of the page of a lab by their ids.

    Args:
        layout: Makes them of templates.
        view: The lab; None if there is none.
        place: Where its page is.
        deeds: What can be done with it.
        audience: Who sees them.
        base: The path before those of the site.
        now: Unix seconds.
    """
    if view is not None and (audience.mine or audience.guest is not None):
        view = learners_view(view)
    end = view.end_at if view is not None else None
    said = view.message.at if view is not None and view.message is not None else None
    values: dict[str, Any] = {
        "view": view,
        "place": place,
        "mine": audience.mine,
        "guest": audience.guest,
        "guests_path": audience.guests,
        "learner": audience.learner,
        "locked": audience.locked,
        "captures_path": _captures_path(view, place, audience),
        "deeds": tuple(deeds),
        "devices": [_row(device, view, place, audience) for device in view.devices] if view is not None else [],
        "end_iso": iso(int(end)) if end is not None else "",
        "ending": view is not None and end is not None and bool(view.left) and end - now <= ENDING_S,
        "left": time_left(end - now) if end is not None else "",
        "said_iso": iso(int(said)) if said is not None else "",
        "said_at": clock(said, now) if said is not None else "",
        "spans": spans,
        "iso": iso,
    }
    return {f"lab-{name}": layout.html(f"lab/_{name}.html", base=base, **values).strip() for name in PIECES}


def check_learner(form: Mapping[str, object], now: str) -> str | None:
    """Return for whose lab a form was sent; None if it does not say so. See `Audience.learner`.

    Args:
        form: What was sent.
        now: Who has the lab now.

    Raises:
        Rejected: The lab is another learner's by now.
    """
    learner = form.get("learner")
    if not isinstance(learner, str):
        return None
    if gone := passed_to(learner, now):
        raise Rejected(Grounds.CANNOT_BE_DONE, f"The lab {gone}.")
    return learner


_ACTS: Final = {
    DeviceAct.START: "Start it",
    DeviceAct.STOP: "Stop it",
    DeviceAct.RESTART: "Restart it",
    DeviceAct.WIPE: "Wipe it",
}


class PortCell(NamedTuple):
    """A port in the table.

    Attributes:
        words: What is behind it.
        address: Where it is reached; "" if it is not.
        note: Why it is not, or what it waits for.
    """

    words: str
    address: str = ""
    note: str = ""


class DeviceRow(NamedTuple):
    """A device in the table, and in the picture.

    Attributes:
        device: The device.
        console: The path of its console below the base; "" if it cannot be opened here.
        screen: The path of its screen below the base; "" if it has none, or it cannot be opened here.
        command: The command that opens it; "" where that is not needed.
        ports: Its ports.
        deeds: What may be done with it here.
    """

    device: SeenDevice
    console: str
    screen: str
    command: str
    ports: Sequence[PortCell]
    deeds: Sequence[Deed]


def _row(device: SeenDevice, view: LabView, place: LabPaths, audience: Audience) -> DeviceRow:
    console = f"{place.path}/consoles/{quote(device.label, safe='')}" if device.console and audience.consoles else ""
    has_screen = console and device.has_screen and audience.guest is not GuestMode.WATCH
    screen = f"{place.path}/screens/{quote(device.label, safe='')}" if has_screen else ""
    command = command_for(view, device.label) if device.console and not (audience.consoles or audience.locked) else ""
    acts = device.acts if audience.consoles and audience.guest is not GuestMode.WATCH else ()
    deeds = tuple(
        Deed(f"{place.path}/devices/{act}", _ACTS[act], name="device", value=device.label, done=act.told(device.label))
        for act in acts
    )
    return DeviceRow(device, console, screen, command, tuple(shown_port(port) for port in device.ports), deeds)


def _captures_path(view: LabView | None, place: LabPaths, audience: Audience) -> str:
    """Return the path of captures below the base; "" where there are none: nothing runs, or one only watches."""
    runs = view is not None and any(device.state is DeviceState.RUNNING for device in view.devices)
    return f"{place.path}/captures" if runs and audience.consoles and audience.guest is not GuestMode.WATCH else ""


def shown_port(port: Port) -> PortCell:
    """Return a port as the table shows it: with the one address that leads to it."""
    inside = f" {port.internal_port}" if port.internal_port else ""
    words = f"{port.access}{inside}{' over UDP' if port.transport == 'udp' else ''}"
    if not port.opened:
        return PortCell(words, note="not opened by CML")
    if port.via:
        outside = port.via.partition(":")[0] not in {"pending", "refused"}
        return PortCell(words, _dialled(port, port.via), "") if outside else PortCell(words, note=port.via)
    if not port.address:
        return PortCell(words, note=f"port {port.port} of the worker")
    host = f"[{port.address}]" if ":" in port.address else port.address
    return PortCell(words, _dialled(port, f"{host}:{port.port}"))


def _dialled(port: Port, address: str) -> str:
    """Return an address as one types it: a console of lines with the program that opens it."""
    if port.access != "serial":
        return address
    host, _, number = address.rpartition(":")
    return f"telnet {host.strip('[]')} {number}"


def spans(text: str) -> list[tuple[str, bool]]:
    """Split a text of docs/why.md into its parts, and say which are code.

    >>> spans("Run `kubectl get ldef`.")
    [('Run ', False), ('kubectl get ldef', True), ('.', False)]
    """
    parts = _CODE.split(text)
    return [(part, number % 2 == 1) for number, part in enumerate(parts) if part]


def lab_page(
    request: web.Request,
    layout: Layout,
    shown: Rendering,
    place: LabPaths,
    *,
    title: str,
    offer: FormOffer | None = None,
    class_: str = "",
    crumbs: Iterable[tuple[str, str]] = (),
) -> web.Response:
    """Return the page of a lab.

    Args:
        request: What it answers; its sender was asked for.
        layout: Makes pages.
        shown: The lab, rendered by its topic for this sender.
        place: Where the page is.
        title: Of the page.
        offer: What its reader may ask for; None if that is nothing.
        class_: The class that the reader asks a lab for.
        crumbs: Pages above this one, each with its words and its path.
    """
    found = {name.removeprefix("lab-"): Markup(html) for name, html in shown.rendered.elements.items()}  # noqa: S704 (of our templates, which escape)
    return layout.render(
        request,
        "lab/page.html",
        place=place,
        pieces=found,
        version=shown.version,
        title=title,
        offer=offer,
        class_name=class_,
        crumbs=tuple(crumbs),
    )
