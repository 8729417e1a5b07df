"""The hand-out of a class: where each learner begins. Pure."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import msgspec

from vkprovider.classroom.roster import sheet
from vkprovider.lablet.devices import Port

HEADINGS: Final = ("learner", "name", "lablet", "class", "link", "until", "ports")
"""Of the columns of a hand-out as CSV."""


class HandOutRow(msgspec.Struct, frozen=True):
    """Where one learner begins; what is unknown is empty.

    Attributes:
        learner: Who.
        lablet: The name of the Pod.
        link: Of the learner's page at the portal.
        until: When the time ends.
        ports: By which the devices are reached.
        shown: The name by which people know the learner.
    """

    learner: str
    lablet: str
    link: str
    until: str
    ports: tuple[str, ...]
    shown: str = ""


def lablet_link(portal: str, namespace: str, pod: str) -> str:
    """Return the address of a lablet's page for its learner; "" if that of the portal is not known.

    >>> lablet_link("https://labs.example.com/", "friday", "warm-1")
    'https://labs.example.com/lablets/friday/warm-1'
    """
    return f"{portal.rstrip('/')}/lablets/{quote(namespace, safe='')}/{quote(pod, safe='')}" if portal else ""


def lab_link(portal: str, user: str) -> str:
    """Return the address of the page of a lab that the portal has made; "" if that of the portal is not known.

    >>> lab_link("https://labs.example.com/", "a b")
    'https://labs.example.com/labs/a%20b'
    """
    return f"{portal.rstrip('/')}/labs/{quote(user, safe='')}" if portal else ""


def ways_in(ports: Iterable[Port]) -> list[str]:
    """Return the ports that CML has opened, such as `r1 serial 198.51.100.1:2000`, each by the one address to use."""
    return [f"{port.device} {port.access} {_address(port)}" for port in ports if port.opened and port.address]


def _address(port: Port) -> str:
    if port.via and port.via.partition(":")[0] not in {"pending", "refused"}:
        return port.via
    host = f"[{port.address}]" if ":" in port.address else port.address
    return f"{host}:{port.port}"


def as_csv(rows: Iterable[HandOutRow], class_: str) -> str:
    """Return a hand-out as CSV for a spreadsheet."""
    cells = ((row.learner, row.shown, row.lablet, class_, row.link, row.until, "; ".join(row.ports)) for row in rows)
    return sheet(HEADINGS, cells)
