"""Outside ports: which are held by whom, and which are allocated next. This module knows neither Pods nor Services.

A port is a number of a transport protocol; TCP and UDP of one number are two ports. A holder is an opaque identity and
a purpose. Held ports are bits of a mask per protocol, so that an allocation takes microseconds however many are held.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count
from vkprovider.platform.reasons import PortReason

TCP: Final = "TCP"
UDP: Final = "UDP"


class PortBounds(NamedTuple):
    """A range of ports, both ends included."""

    start: int
    end: int


class RangeLike(Protocol):
    """Any range with both ends included."""

    @property
    def start(self) -> int:
        """The first port."""

    @property
    def end(self) -> int:
        """The last port."""


class SlotLike(Protocol):
    """A place for a port: a name that is unique within its owner, and a transport protocol."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def protocol(self) -> str:
        """`TCP` or `UDP`."""


class RequestedPort(NamedTuple):
    """A requested port."""

    name: str
    protocol: str = TCP


class HeldPort(NamedTuple):
    """A port as its owner sees it."""

    purpose: str
    protocol: str
    port: int


class Holder(NamedTuple):
    """The holder of a port, and its purpose."""

    owner: str
    purpose: str

    def __str__(self) -> str:
        """Return both as text."""
        return f"{self.owner} ({self.purpose})" if self.purpose else self.owner


class PortUsage:
    """The ports held on one worker; kept up to date with `hold` and `free`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._masks: dict[str, int] = {}
        self._holders: dict[tuple[str, int], Holder] = {}

    def __len__(self) -> int:
        """Count the ports that are held."""
        return len(self._holders)

    def __eq__(self, other: object) -> bool:
        """Return whether the same ports are held by the same owners."""
        return isinstance(other, PortUsage) and self._holders == other._holders

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def holders(self) -> Mapping[tuple[str, int], Holder]:
        """The holders by (protocol, port)."""
        return self._holders

    def mask(self, protocol: str) -> int:
        """Return the held ports of a protocol: bit n stands for port n."""
        return self._masks.get(protocol, 0)

    def hold(self, owner: str, ports: Iterable[HeldPort]) -> None:
        """Hold ports for an owner; all of them or, if one is held already, none.

        Raises:
            InputError: `PortConflict`: a port is held already, by any owner, or named twice.
        """
        fresh: dict[tuple[str, int], Holder] = {}
        for purpose, protocol, port in ports:
            key = (protocol, port)
            holder = self._holders.get(key) or fresh.get(key)
            if holder is not None:
                raise InputError(
                    PortReason.PORT_CONFLICT, f"{protocol} port {port} of {Holder(owner, purpose)} is held by {holder}"
                )
            fresh[key] = Holder(owner, purpose)
        for protocol, port in fresh:
            self._masks[protocol] = self.mask(protocol) | 1 << port
        self._holders |= fresh

    def free(self, owner: str, ports: Iterable[HeldPort]) -> None:
        """Free an owner's ports; those of other owners, and those that are not held, stay as they are."""
        for _, protocol, port in ports:
            holder = self._holders.get((protocol, port))
            if holder is not None and holder.owner == owner:
                del self._holders[protocol, port]
                self._masks[protocol] &= ~(1 << port)


def allocate(
    wanted: Sequence[SlotLike],
    taken: PortUsage,
    *ranges: RangeLike,
    per_instance_max: int,
    keep: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Choose a free port for every slot: the first that fit, consecutive ones if there are enough.

    The same slots and the same usage always yield the same ports. `taken` is not changed.

    Args:
        wanted: The slots, each name once.
        taken: The held ports.
        ranges: The ranges to search, in this order.
        per_instance_max: How many slots one owner may have.
        keep: Earlier ports of slots; they get them again if these are free and within a range.

    Returns:
        The port of each slot, in the order of the slots.

    Raises:
        InputError: `TooManyPorts`, or `PortRangeFull`: there are too few free ports.
    """
    check_count(len(wanted), per_instance_max)
    if len({slot.name for slot in wanted}) < len(wanted):
        raise ValueError(f"a slot is named twice: {[slot.name for slot in wanted]}")
    chosen: dict[str, int] = {}
    for protocol in dict.fromkeys(slot.protocol for slot in wanted):
        names = [slot.name for slot in wanted if slot.protocol == protocol]
        chosen |= _choose(names, protocol, taken, ranges, keep or {})
    return {slot.name: chosen[slot.name] for slot in wanted}


def check_count(ports: int, per_instance_max: int) -> None:
    """Check how many ports one lablet needs.

    Raises:
        InputError: `TooManyPorts`.
    """
    if ports > per_instance_max:
        needs = f"needs {count(ports, 'external port')}; the limit is {per_instance_max} per lablet"
        raise InputError(PortReason.TOO_MANY_PORTS, f"{needs} (PORTS_PER_INSTANCE_MAX)")


def udp_names(wanted: Iterable[SlotLike]) -> tuple[str, ...]:
    """Return the names of the slots whose port is a UDP port."""
    return tuple(slot.name for slot in wanted if slot.protocol == UDP)


def held(ports: Mapping[str, int], udp: Collection[str]) -> list[HeldPort]:
    """List the ports of slots.

    Args:
        ports: By the name of the slot.
        udp: Which of them are UDP ports.
    """
    return [HeldPort(name, UDP if name in udp else TCP, port) for name, port in ports.items()]


def _choose(
    names: Sequence[str], protocol: str, taken: PortUsage, ranges: Sequence[RangeLike], keep: Mapping[str, int]
) -> dict[str, int]:
    free = _mask(ranges) & ~taken.mask(protocol)
    chosen: dict[str, int] = {}
    for name in names:
        port = keep.get(name, 0)
        if port and free >> port & 1:
            chosen[name] = port
            free &= ~(1 << port)
    left = [name for name in names if name not in chosen]
    if free.bit_count() < len(left):
        searched = ", ".join(f"{r.start}-{r.end}" for r in ranges)
        raise InputError(
            PortReason.PORT_RANGE_FULL,
            f"needs {count(len(names), f'{protocol} port')}; free in {searched}: {free.bit_count() + len(chosen)}",
        )
    for range_ in ranges:
        start = _first_row(free & _mask([range_]), len(left))
        if start:
            return chosen | {name: start + i for i, name in enumerate(left)}
    numbers: list[int] = []
    for range_ in ranges:
        here = free & _mask([range_])
        while here and len(numbers) < len(left):
            lowest = here & -here
            numbers.append(lowest.bit_length() - 1)
            here ^= lowest
            free ^= lowest
    return chosen | dict(zip(left, numbers, strict=True))


def _first_row(free: int, length: int) -> int:
    """Find the lowest port with which `length` free ports in a row begin; 0 if there is none.

    A bit that survives `length` - 1 shifts begins such a row; doubling the shift takes few of them.
    """
    row = 1
    while row < length and free:
        step = min(row, length - row)
        free &= free >> step
        row += step
    return (free & -free).bit_length() - 1 if free else 0


def _mask(ranges: Iterable[RangeLike]) -> int:
    mask = 0
    for range_ in ranges:
        mask |= (1 << range_.end + 1) - (1 << range_.start)
    return mask
