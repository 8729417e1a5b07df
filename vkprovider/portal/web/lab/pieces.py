"""The parts of the page of a lab that change: each is an element with an id, rendered alone and put into the page.

Many people may see one piece, so that it has nothing of one visitor: its buttons belong to the form `acts` of the page.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from vkprovider.lablet.devices import Port, SeenDevice
from vkprovider.platform.times import clock, iso
from vkprovider.portal.pure.view.lab import LabView, command_for
from vkprovider.portal.web.lab.deeds import Deed
from vkprovider.portal.web.layout import Layout
from vkprovider.portal.web.live.timeleft import time_left

PIECES: Final = ("state", "time", "message", "failure", "progress", "picture", "devices", "acts")
"""The pieces, in the order of the page; the id of each is `lab-NAME`."""
_CODE: Final = re.compile(r"`([^`]+)`")


class LabPlace(NamedTuple):
    """Where the page of a lab is.

    Attributes:
        path: Its path below the base: `/labs/alice`, or `/classes/net101/lablets/bob-0`.
        topic: By which changes of it are followed: `lab:alice`, or `lablet:net101/bob-0`.
    """

    path: str
    topic: str


def lablet_place(namespace: str, pod: str) -> LabPlace:
    """Return where the page of a lablet of a class is."""
    return LabPlace(f"/classes/{namespace}/lablets/{pod}", f"lablet:{namespace}/{pod}")


def user_place(user: str) -> LabPlace:
    """Return where the page of a user's lab is."""
    return LabPlace(f"/labs/{quote(user, safe='')}", f"lab:{user}")


class Audience(NamedTuple):
    """The people who see the same pieces.

    Attributes:
        consoles: Whether they can open consoles here; else they are told the command.
        mine: Whether the lab is their own.
    """

    consoles: bool = True
    mine: bool = True


def pieces(
    layout: Layout,
    view: LabView | None,
    place: LabPlace,
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
    end = view.end_at if view is not None else None
    said = view.message.at if view is not None and view.message is not None else None
    values: dict[str, Any] = {
        "view": view,
        "place": place,
        "mine": audience.mine,
        "deeds": tuple(deeds),
        "devices": [_row(device, view, place, audience) for device in view.devices] if view is not None else [],
        "end_iso": iso(int(end)) if end is not None else "",
        "left": time_left(end - now) if end is not None else "",
        "said_iso": iso(int(said)) if said is not None else "",
        "said_at": clock(said, now) if said is not None else "",
        "spans": spans,
        "iso": iso,
    }
    return {f"lab-{name}": layout.html(f"lab/_{name}.html", base=base, **values).strip() for name in PIECES}


class ShownPort(NamedTuple):
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
        command: The command that opens it; "" where that is not needed.
        ports: Its ports.
    """

    device: SeenDevice
    console: str
    command: str
    ports: Sequence[ShownPort]


def _row(device: SeenDevice, view: LabView, place: LabPlace, audience: Audience) -> DeviceRow:
    console = f"{place.path}/consoles/{quote(device.label, safe='')}" if device.console and audience.consoles else ""
    command = command_for(view, device.label) if device.console and not audience.consoles else ""
    return DeviceRow(device, console, command, tuple(shown_port(port) for port in device.ports))


def shown_port(port: Port) -> ShownPort:
    """Return a port as the table shows it: with the one address that leads to it."""
    inside = f" {port.internal_port}" if port.internal_port else ""
    words = f"{port.access}{inside}{' over UDP' if port.transport == 'udp' else ''}"
    if not port.opened:
        return ShownPort(words, note="not opened by CML")
    if port.via:
        outside = port.via.partition(":")[0] not in {"pending", "refused"}
        return ShownPort(words, port.via if outside else "", "" if outside else port.via)
    if not port.address:
        return ShownPort(words, note=f"port {port.port} of the worker")
    host = f"[{port.address}]" if ":" in port.address else port.address
    return ShownPort(words, f"{host}:{port.port}")


def spans(text: str) -> list[tuple[str, bool]]:
    """Split a text of docs/why.md into its parts, and say which are code.

    >>> spans("Run `kubectl get ldef`.")
    [('Run ', False), ('kubectl get ldef', True), ('.', False)]
    """
    parts = _CODE.split(text)
    return [(part, number % 2 == 1) for number, part in enumerate(parts) if part]
