"""The grammar of port tags: what a device's tag requests, and where its outside port is.

A device of a topology carries tags; those of the forms below request a port of the worker, all others are the author's
own. The outside port in the topology is a placeholder: each lablet gets another one.

    serial:5041         the device's console         serial:5041:1   its second line
    vnc:5042            its screen                   http:5045       (https, ssh, telnet, tcp:) allocated and rewritten,
    pat:5043:22         TCP to its port 22                           but not opened by CML
    pat:udp:5044:53     UDP to its port 53
"""

import difflib
import re
from dataclasses import dataclass
from typing import Final

PORT_MAX: Final = 65535

_FORM: Final = re.compile(
    r"serial:(?P<console>[0-9]{1,9})(?::(?P<line>[0-9]{1,9}))?"
    r"|(?P<plain>vnc|https?|ssh|telnet|tcp):(?P<port>[0-9]{1,9})"
    r"|pat:(?:(?P<transport>tcp|udp):)?(?P<out>[0-9]{1,9}):(?P<inside>[0-9]{1,9})"
)
_NUMBERS: Final = ("console", "port", "out")
_HEAD: Final = re.compile(r"\s*([A-Za-z]{2,12})\s*[:=](.*)", re.DOTALL)
_WITHOUT_COLON: Final = re.compile(r"\s*([A-Za-z]{3,12})[\s_.;,/|-]*([0-9]{3,5}(?:[^0-9].*)?)", re.DOTALL)
"""A word and a number that may be a port; shorter ones are names, such as `http2`."""
_FORMS: Final = {
    "serial": "serial:PORT, or serial:PORT:LINE",
    "vnc": "vnc:PORT",
    "pat": "pat:PORT:INSIDE, or pat:udp:PORT:INSIDE",
    **{kind: f"{kind}:PORT" for kind in ("http", "https", "ssh", "telnet", "tcp")},
}
"""How a tag of each kind is written."""
_OPENED: Final = frozenset({"serial", "vnc", "pat"})
"""Kinds of tags for which CML's port service listens; no other kind ever opens a port."""


@dataclass(frozen=True, slots=True)
class PortTag:
    """A tag that requests a port.

    Attributes:
        kind: The service behind the port: serial, vnc, pat, http, https, ssh, telnet or tcp.
        protocol: The transport protocol of the outside port: tcp or udp.
        outside: The author's placeholder, any number.
        inside: The device's own port, of a `pat:` tag.
        line: The serial line, where the tag names one.
        text: The tag itself.
    """

    kind: str
    protocol: str
    outside: int
    inside: int | None
    line: int | None
    text: str

    @property
    def opened(self) -> bool:
        """Whether CML opens the port."""
        return opened_by_cml(self.kind)

    @property
    def access(self) -> str:
        """The service behind the port, unique within a device: serial, serial1, pat22, patudp53."""
        if self.kind == "pat":
            return f"pat{'udp' if self.protocol == 'udp' else ''}{self.inside}"
        return f"{self.kind}{self.line or ''}"


def opened_by_cml(kind: str) -> bool:
    """Return whether CML opens ports of a kind of tag."""
    return kind in _OPENED


def parse_tag(text: str) -> PortTag | None:
    """Parse a tag; None if it is an ordinary one.

    >>> parse_tag("pat:5067:22").access
    'pat22'
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    console, line, plain, port, transport, out, inside = found.groups()
    if inside is not None and not 1 <= int(inside) <= PORT_MAX:
        return None
    return PortTag(
        kind="pat" if inside is not None else plain or "serial",
        protocol=transport or "tcp",
        outside=int(console or port or out),
        inside=int(inside) if inside is not None else None,
        line=int(line) if line is not None else None,
        text=text,
    )


def span_of(text: str) -> tuple[int, int]:
    """Return where the outside port is in the text of a port tag.

    Raises:
        ValueError: It is not a port tag.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a port tag")
    return next(found.span(name) for name in _NUMBERS if found[name] is not None)


def fault(text: str) -> str | None:
    """Return the fault of a tag that has the form of a port tag but can never work; None if it has none."""
    found = _FORM.fullmatch(text)
    if found is not None and found["inside"] is not None and parse_tag(text) is None:
        return f"{text!r} leads to port {int(found['inside'])} of the device; ports are 1 to {PORT_MAX}"
    return None


def suspect(text: str) -> str:
    """Return how a tag that requests no port was probably meant to be written; "" if it is an ordinary one.

    >>> suspect("pat:5043")
    'pat:PORT:INSIDE, or pat:udp:PORT:INSIDE'
    >>> suspect("vnc5042")
    'vnc:PORT'
    """
    head = _HEAD.fullmatch(text) or _WITHOUT_COLON.fullmatch(text)
    if head is None or parse_tag(text) is not None:
        return ""
    kind, rest = head[1].lower(), head[2]
    if kind in _OPENED:
        return _FORMS[kind]
    if not re.search(r"[0-9]", rest):
        return ""
    long = [form for form in _FORMS if len(form) > len("pat")]  # a short word is close to many others
    meant = [kind] if kind in _FORMS else difflib.get_close_matches(kind, long, n=1, cutoff=0.75)
    return _FORMS[meant[0]] if meant else ""
