"""The outside ports that a channel asks for, and the limits of a mux: annotations that people write.

A channel's annotation `external-ports` maps names of its ports to outside ports, `http:8080,grpc:auto`; a port that it
does not name is the same outside.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import Channel, Mux, ServicePort, annotation_key
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.platform.errors import InputError, shorten
from vkprovider.platform.messages import Fault
from vkprovider.platform.ports.allocator import PortBounds
from vkprovider.platform.ports.rows import AUTO

GKE_PORTS_MAX: Final = 100
"""The most ports that a load balancer of GKE has."""
_PORT_MAX: Final = 65535
_QUOTED_CHARS: Final = 60
_GKE_CLASS: Final = "networking.gke.io/"
_GKE_ANNOTATIONS: Final = frozenset(
    {"cloud.google.com/l4-rbs", "cloud.google.com/load-balancer-type", "networking.gke.io/load-balancer-type"}
)
_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE = re.compile(r"([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?")


class PortRequest(NamedTuple):
    """A port of a channel and the outside port that it asks for.

    Attributes:
        port: The port of the channel.
        number: The outside port; None for any in the ranges of the mux.
    """

    port: ServicePort
    number: int | None


class PortLimit(NamedTuple):
    """How many ports a mux may have.

    Attributes:
        ports: None for as many as there are.
        applied: The note that it is another than its annotation says.
    """

    ports: int | None
    applied: Fault | None = None


class Bounds(NamedTuple):
    """What a mux may give.

    Attributes:
        limit: How many ports.
        ranges: Where automatic ones are found.
        closed: Why it gives none beyond those that it gave.
        notes: What it is to be told.
    """

    limit: int | None
    ranges: tuple[PortBounds, ...]
    closed: Fault | None
    notes: tuple[Fault, ...]


def requests_of(channel: Channel, prefix: str) -> tuple[PortRequest, ...]:
    """Return the outside ports that a channel asks for, in the order of its ports.

    Raises:
        InputError: `InvalidPort`, or `InvalidPortMapping`.
    """
    for port in channel.ports:
        if not port.name:
            raise InputError(MuxReason.INVALID_PORT, f"port {port.port} of {channel.owner} has no name")
    text = channel.annotations.get(annotation_key(prefix, muxnames.MUX_EXTERNAL_PORTS), "")
    external = parse_external_ports_annotation(text, {port.name for port in channel.ports})
    return tuple(PortRequest(port, resolve_channel_external_port(port, external)) for port in channel.ports)


def parse_external_ports_annotation(text: str, port_names: Collection[str]) -> dict[str, int | None]:
    """Parse the annotation `external-ports`: a number for each name, None for `auto`.

    >>> parse_external_ports_annotation("http:8080,grpc:auto", {"http", "grpc"})
    {'http': 8080, 'grpc': None}

    Raises:
        InputError: `InvalidPortMapping`.
    """
    external: dict[str, int | None] = {}
    for entry in text.split(",") if text.strip() else []:
        name, colon, value = (part.strip() for part in entry.partition(":"))
        if not (colon and name and value):
            raise _wrong_mapping(f"entry {_quoted(entry)} is not NAME:PORT or NAME:{AUTO}")
        if name not in port_names:
            has = ", ".join(sorted(port_names)) or "none"
            raise _wrong_mapping(f"port {_quoted(name)} is not in spec.ports, which has {has}")
        if name in external:
            raise _wrong_mapping(f"port {_quoted(name)} is named twice")
        external[name] = None if value == AUTO else _port(value)
    return external


def resolve_channel_external_port(port: ServicePort, external: Mapping[str, int | None]) -> int | None:
    """Return the outside port that a port asks for: that of the annotation, else its own; None for any.

    Raises:
        InputError: `InvalidPortMapping`: its own is none.
    """
    number = external.get(port.name, port.port)
    return None if number is None else _port(str(number))


def requested_port_range(text: str) -> tuple[PortBounds, ...]:
    """Parse the annotation `port-range`: numbers, and ranges with both ends included, in their order of use.

    >>> requested_port_range("20000-20099,21000")
    (PortBounds(start=20000, end=20099), PortBounds(start=21000, end=21000))

    Raises:
        InputError: `InvalidPortRange`.
    """
    ranges = []
    for entry in text.split(",") if text.strip() else []:
        match = _RANGE.fullmatch(entry.strip())
        start, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= start <= end <= _PORT_MAX:
            raise InputError(
                MuxReason.INVALID_PORT_RANGE,
                f"annotation {muxnames.MUX_PORT_RANGE}: {_quoted(entry)} is neither a port nor a range START-END "
                f"within 1-{_PORT_MAX}",
            )
        ranges.append(PortBounds(start, end))
    return tuple(ranges)


def effective_mux_max_ports(mux: Mux, prefix: str) -> PortLimit:
    """Return the port limit of a mux: its annotation `max-ports`, and the cap of GKE.

    Raises:
        InputError: `InvalidMaxPorts`.
    """
    text = mux.annotations.get(annotation_key(prefix, muxnames.MUX_MAX_PORTS))
    asked = None
    if text is not None:
        if not _NUMBER.fullmatch(text.strip()) or not int(text):
            raise InputError(
                MuxReason.INVALID_MAX_PORTS,
                f"annotation {muxnames.MUX_MAX_PORTS}: {_quoted(text)} is no whole number from 1",
            )
        asked = int(text)
    if not is_gke(mux) or (asked is not None and asked <= GKE_PORTS_MAX):
        return PortLimit(asked)
    told = "is missing" if asked is None else f"is {asked}"
    return PortLimit(
        GKE_PORTS_MAX,
        Fault(
            MuxReason.GKE_PORT_LIMIT_APPLIED,
            f"annotation {muxnames.MUX_MAX_PORTS} {told}; a load balancer of GKE has {GKE_PORTS_MAX} ports at most",
        ),
    )


def bounds_of(mux: Mux, prefix: str) -> Bounds:
    """Return what a mux may give; one of whose annotations cannot be read is closed."""
    notes: list[Fault] = []
    limit, ranges = PortLimit(None), tuple[PortBounds, ...]()
    try:
        ranges = requested_port_range(mux.annotations.get(annotation_key(prefix, muxnames.MUX_PORT_RANGE), ""))
    except InputError as error:
        notes.append(error.fault)
    try:
        limit = effective_mux_max_ports(mux, prefix)
    except InputError as error:
        notes.append(error.fault)
    closed = notes[0] if notes else None
    return Bounds(limit.ports, ranges, closed, (*notes, *([limit.applied] if limit.applied else [])))


def is_gke(mux: Mux) -> bool:
    """Return whether the load balancer of a mux is one of GKE."""
    return mux.load_balancer_class.startswith(_GKE_CLASS) or not _GKE_ANNOTATIONS.isdisjoint(mux.annotations)


def within(ranges: Sequence[PortBounds], number: int) -> bool:
    """Return whether a number lies in one of the ranges."""
    for start, end in ranges:  # noqa: SIM110 (`any` takes twice as long, and every pass asks for each port several times)
        if start <= number <= end:
            return True
    return False


def _port(text: str) -> int:
    number = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= number <= _PORT_MAX:
        raise _wrong_mapping(f"{_quoted(text)} is no port within 1-{_PORT_MAX}")
    return number


def _wrong_mapping(what: str) -> InputError:
    return InputError(MuxReason.INVALID_PORT_MAPPING, f"annotation {muxnames.MUX_EXTERNAL_PORTS}: {what}")


def _quoted(text: str) -> str:
    """Return a text that somebody wrote, cut to fit into a message."""
    return repr(shorten(text, _QUOTED_CHARS))
