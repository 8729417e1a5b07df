"""The decision of one pass: which channel of a mux has which outside port, and which are refused, with the reason.

Ports go to their owners first: what is stored, then what the cluster shows, then channels in the order of their names.
A channel gets all of its ports or none; one that is refused keeps the numbers that it had, and nothing forwards them.
A mux whose annotations cannot be read goes on with the ports that were given, and gives no others.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import Channel, Mux, Owner, ServicePort, annotation_key, serves
from vkprovider.mux.pure.ledger import Ledger, collect_existing_port_owners, find_mux_port_conflicts, row_for
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.requests import PortRequest, bounds_of, requests_of, within
from vkprovider.mux.pure.state import STORE_BYTES_MAX, Drain, MuxState, find_drains
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.messages import count as counted
from vkprovider.platform.ports.rows import PortRow
from vkprovider.platform.times import iso

REST_S: Final = 300.0
"""The shortest time for which a freed number rests."""
PLACEHOLDER: Final = ServicePort("placeholder", 101)
"""The port of a mux that has none: a Service needs one. No endpoint has its name, so nothing answers there."""


class Mapped(NamedTuple):
    """A port of a channel behind the mux.

    Attributes:
        name: The name of the port in the Service of the mux and in its endpoints.
        row: The port of the channel and the outside port.
    """

    name: str
    row: PortRow


class RefusedChannel(NamedTuple):
    """A channel that has no port.

    Attributes:
        channel: The channel.
        fault: Why, for its Event.
        until: The time at which it gets them when nothing changes, in Unix seconds; None if that is not known.
    """

    channel: Channel
    fault: Fault
    until: float | None = None


class Plan(NamedTuple):
    """What one pass decides.

    Attributes:
        state: What is to be stored before anything else is written.
        ports: `spec.ports` of the mux.
        mapped: The ports of each channel that has them.
        drains: The others of `ports`: they forward to nobody.
        refused: The others.
        notes: What the mux itself is to be told.
    """

    state: MuxState
    ports: tuple[ServicePort, ...]
    mapped: Mapping[Owner, tuple[Mapped, ...]]
    drains: tuple[Drain, ...]
    refused: tuple[RefusedChannel, ...]
    notes: tuple[Fault, ...]

    @property
    def wake_at(self) -> float | None:
        """The time of the next pass that decides otherwise even if nothing changes; None if there is none."""
        times = [*(refused.until for refused in self.refused), *(drain.until for drain in self.drains)]
        return min((until for until in times if until is not None), default=None)


class _Asking(NamedTuple):
    """A channel with what it asks for.

    Attributes:
        names: The name in the mux of each port that it asks for.
    """

    channel: Channel
    requests: tuple[PortRequest, ...]
    names: tuple[str, ...]

    @property
    def owner(self) -> Owner:
        return self.channel.owner


def decide(
    mux: Mux,
    channels: Iterable[Channel],
    state: MuxState,
    now: float,
    *,
    prefix: str = muxnames.MUX_PREFIX,
    rest_s: float = REST_S,
    sure: bool = True,
    bytes_max: int = STORE_BYTES_MAX,
) -> Plan:
    """Decide about every port of a mux. The same facts yield the same plan, and so does what the plan stores.

    Args:
        mux: The mux, which is fit to be one.
        channels: The channels that name it. Of two with one identity the first counts.
        state: What was stored.
        now: In Unix seconds.
        prefix: The prefix of annotations.
        rest_s: How long a freed number rests before another channel or another learner gets it.
        sure: Whether the time is certain: until it is, no rest is over, and no port leaves the Service for its age.
        bytes_max: The size at which the store takes no more ports.
    """
    return _Pass(mux, channels, state, now, prefix, rest_s, sure, bytes_max).plan()


class _Pass:
    def __init__(
        self,
        mux: Mux,
        channels: Iterable[Channel],
        state: MuxState,
        now: float,
        prefix: str,
        rest_s: float,
        sure: bool,  # noqa: FBT001 (as `decide` has it)
        bytes_max: int,
    ) -> None:
        self._mux = mux
        self._prefix = prefix
        self._before = state
        self._now = now
        self._sure = sure
        self._bytes_max = bytes_max
        self._bounds = bounds_of(mux, prefix)
        self._refused: list[RefusedChannel] = []
        self._channels: dict[Owner, Channel] = {}
        for channel in sorted(channels, key=lambda channel: channel.owner.order):
            if self._channels.setdefault(channel.owner, channel) is not channel:
                told = f"another object stands for {channel.owner} already, whose ports these would be"
                self._refuse(channel, MuxReason.MUX_PORT_CONFLICT, told)
        there = {owner: channel.ports for owner, channel in self._channels.items()}
        self._ledger = Ledger(state, there, now=now, rest_s=rest_s, sure=sure, forwarded=mux.forwarded)

    def plan(self) -> Plan:
        asking = self._asking()
        self._recover(asking)
        mapped: dict[Owner, tuple[Mapped, ...]] = {}
        for each in self._admitted(sorted(asking, key=self._rank)):
            rows = self._rows(each)
            if rows:
                mapped[each.owner] = tuple(map(Mapped, each.names, rows))
        state = self._ledger.state(self._before)
        served = [
            ServicePort(each.name, each.row.mux_port, each.row.protocol) for its in mapped.values() for each in its
        ]
        kept = () if self._sure else {(port.protocol, port.port) for port in self._mux.ports}
        drains = find_drains(state, served, self._now, self._bounds.limit, kept)
        ports = sorted((*served, *(drain.port for drain in drains)), key=lambda port: (port.port, port.protocol))
        return Plan(
            state,
            tuple(ports) or (PLACEHOLDER,),
            dict(sorted(mapped.items(), key=lambda item: item[0].order)),
            drains,
            tuple(sorted(self._refused, key=lambda refused: refused.channel.owner.order)),
            self._bounds.notes,
        )

    def _asking(self) -> list[_Asking]:
        """Return the channels that the mux serves and whose requests can be read."""
        allowed = self._mux.annotations.get(annotation_key(self._prefix, muxnames.MUX_ALLOWED_NAMESPACES))
        asking = []
        for channel in self._channels.values():
            if not serves(self._mux.ref, allowed, channel.owner):
                told = (
                    f"mux {self._mux.ref} does not serve namespace {channel.owner.namespace} (its annotation "
                    f"{annotation_key(self._prefix, muxnames.MUX_ALLOWED_NAMESPACES)})"
                )
                self._refuse(channel, MuxReason.MUX_NOT_ALLOWED, told)
                continue
            try:
                requests = requests_of(channel, self._prefix)
            except InputError as error:
                self._refused.append(RefusedChannel(channel, error.fault))
                continue
            port_names = tuple(channel.owner.mux_port_name(request.port.name) for request in requests)
            asking.append(_Asking(channel, requests, port_names))
        return asking

    def _recover(self, asking: Iterable[_Asking]) -> None:
        """Give back what the cluster shows, where a channel still asks for it or may have it."""
        wanted = {
            (each.owner, request.port): request
            for each in asking
            for request in each.requests
            if request.port.name not in self._ledger.rows_of(each.owner)
        }
        if not wanted:
            return
        rest = {rest.key for rest in self._before.resting}  # a freed port in the Service shows no owner
        shown = self._mux._replace(ports=tuple(p for p in self._mux.ports if (p.protocol, p.port) not in rest))
        found = collect_existing_port_owners(shown, self._channels.values(), self._prefix)
        for key, (owner, port) in found.items():
            request = wanted.get((owner, port))
            if request is None or key in self._ledger.owners:
                continue
            _, number = key
            if request.number == number or (request.number is None and within(self._bounds.ranges, number)):
                self._ledger.recover(row_for(owner, request, number))

    def _rank(self, each: _Asking) -> tuple[int, tuple[str, str, bool, str]]:
        """Return the place of a channel: first those that have all they ask for, then those that have something."""
        if self._has_all(each):
            return 0, each.owner.order
        return (1 if self._ledger.knows(each.owner) else 2), each.owner.order

    def _has_all(self, each: _Asking) -> bool:
        return all(self._ledger.has(each.owner, request, self._bounds.ranges) for request in each.requests)

    def _admitted(self, ranked: Iterable[_Asking]) -> list[_Asking]:
        """Return the channels that nothing speaks against; the numbers that they ask for are reserved.

        A channel that gets no automatic port afterwards keeps its place in all counts, so that another pass over what
        this one stores decides the same; so does one that waits until freed ports have left the Service. Its own ones
        count, too, but for those that it has back.
        """
        admitted, port_names = [], set[str]()
        served, claimed, limit = 0, self._ledger.count, self._bounds.limit
        draining = self._ledger.draining()
        for each in ranked:
            owner, count, held = each.owner, len(each.requests), len(self._ledger.rows_of(each.owner))
            fault = self._against(each, port_names)
            if fault is not None:
                self._refused.append(fault)
                continue
            claimed_then = claimed - held + count
            if limit is not None and (served + count > limit or (count > held and claimed_then > limit)):
                told = f"{owner} needs {counted(count, 'port')}; mux {self._mux.ref} has {limit} at most"
                self._refuse(each.channel, MuxReason.MUX_PORT_LIMIT_EXCEEDED, told)
                continue
            if draining:  # which is rare
                for key in self._ledger.returning(owner, each.requests, self._bounds.ranges):
                    draining.pop(key, None)
            served, claimed = served + count, claimed_then
            port_names.update(each.names)
            self._ledger.reserve(
                owner, {(request.port.protocol, request.number) for request in each.requests if request.number}
            )
            if limit is not None and count > held and claimed + len(draining) > limit:
                ends = draining.values()
                told = f"{owner} needs {counted(count, 'port')}; UDP ports that were freed leave mux {self._mux.ref} by"
                why = Fault(MuxReason.MUX_PORT_LIMIT_EXCEEDED, f"{told} {iso(math.ceil(max(ends)))}")
                self._refused.append(RefusedChannel(each.channel, why, min(ends)))
                continue
            admitted.append(each)
        return admitted

    def _against(self, each: _Asking, port_names: Collection[str]) -> RefusedChannel | None:
        """Return the refusal of a channel that cannot have its ports, before anything is counted."""
        channel, owner = each.channel, each.owner
        if self._bounds.closed is not None and not self._has_all(each):
            return RefusedChannel(channel, self._bounds.closed)
        seen = set[str]()
        for request, name in zip(each.requests, each.names, strict=True):
            if name in port_names or name in seen:
                told = f"the name of port {request.port.name} in the mux, {name}, is that of another port already"
                return RefusedChannel(channel, Fault(MuxReason.MUX_PORT_NAME_TAKEN, told))
            seen.add(name)
        for (protocol, number), holder in find_mux_port_conflicts(owner, each.requests, self._ledger.owners):
            told = "is asked for twice" if holder == owner else f"belongs to {holder}"
            return RefusedChannel(channel, Fault(MuxReason.MUX_PORT_CONFLICT, f"{protocol} port {number} {told}"))
        for request in each.requests:
            until = request.number and self._ledger.rests_until((request.port.protocol, request.number), owner)
            if until:
                told = f"{request.port.protocol} port {request.number} was another's, and rests until"
                return RefusedChannel(
                    channel, Fault(MuxReason.MUX_PORT_RESTING, f"{told} {iso(math.ceil(until))}"), until
                )
        return None

    def _rows(self, each: _Asking) -> list[PortRow]:
        """Choose and claim the ports of a channel; none if there are too few."""
        try:
            rows = self._ledger.choose(each.owner, each.requests, self._bounds.ranges)
        except InputError:
            autos = sum(request.number is None for request in each.requests)
            searched = ", ".join(f"{start}-{end}" for start, end in self._bounds.ranges)
            lacking = f"no available port in {searched} for all of" if searched else "the mux has no port-range for"
            told = f"{lacking} {counted(autos, 'automatic port')} of {each.owner}"
            if (until := self._ledger.next_rested(each.owner, self._bounds.ranges)) is not None:
                told += f"; the next one that rests is free at {iso(math.ceil(until))}"
            self._refuse(each.channel, MuxReason.INVALID_PORT_MAPPING, told)
            return []
        if rows == [*self._ledger.rows_of(each.owner).values()]:
            return rows
        if not self._ledger.has_room(each.owner, rows, self._bytes_max):
            told = f"the store of mux {self._mux.ref} has no room for {counted(len(rows), 'port')} of {each.owner}"
            self._refuse(each.channel, MuxReason.MUX_STORE_FULL, told)
            return []
        self._ledger.claim(each.owner, rows)
        return rows

    def _refuse(self, channel: Channel, reason: MuxReason, message: str) -> None:
        self._refused.append(RefusedChannel(channel, Fault(reason, message)))
