"""The ports of one mux while a pass decides: whose each is, also where the store knows nothing."""

import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Final

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure import state as muxstate
from vkprovider.mux.pure.facts import Channel, Mux, Owner, PortKey, ServicePort, annotation_key
from vkprovider.mux.pure.requests import PortRequest, within
from vkprovider.mux.pure.state import UNSURE_S, MuxState, Resting, drains_until, owner_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.ports.allocator import UDP, HeldPort, PortBounds, PortUsage, RequestedPort, allocate
from vkprovider.platform.ports.rows import AUTO, STATIC, PortRow

_MAPPED = re.compile(r"\s*([^:,\s]+):([0-9]{1,5})->([0-9]{1,5})\s*")
_AMBIGUOUS: Final = None


def collect_existing_port_owners(
    mux: Mux, channels: Iterable[Channel], prefix: str
) -> dict[PortKey, tuple[Owner, ServicePort]]:
    """Return the ports whose owner the cluster shows without a doubt.

    The Service of the mux has the hash of an owner as the name of each port; the annotation `ports` of a channel says
    the same in words, but whoever may write the channel may write it, so that the Service comes first.
    """
    hashed: dict[str, tuple[Owner, ServicePort] | None] = {}
    told: dict[PortKey, tuple[Owner, ServicePort] | None] = {}
    for channel in channels:
        ports = {port.name: port for port in channel.ports}
        for port in channel.ports:
            name = channel.owner.mux_port_name(port.name)
            hashed[name] = _AMBIGUOUS if name in hashed else (channel.owner, port)
        entries = channel.annotations.get(annotation_key(prefix, muxnames.MUX_PORTS), "").split(",")
        for match in map(_MAPPED.fullmatch, entries):
            mapped = ports.get(match[1]) if match else None
            if match and mapped:
                key = (mapped.protocol, int(match[3]))
                told[key] = _AMBIGUOUS if key in told else (channel.owner, mapped)
    found: dict[PortKey, tuple[Owner, ServicePort]] = {}
    for port in mux.ports:
        owned = hashed.get(port.name)
        if owned is not None and owned[1].protocol == port.protocol:
            found[port.protocol, port.port] = owned
    shown = set(found.values())
    return found | {key: owned for key, owned in told.items() if owned and key not in found and owned not in shown}


def find_mux_port_conflicts(
    owner: Owner, requests: Sequence[PortRequest], owners: Mapping[PortKey, Owner]
) -> list[tuple[PortKey, Owner]]:
    """Return the ports that a channel asks for by number and cannot have, with the owner of each.

    A port that it asks for twice is one of them: its own.
    """
    conflicts = []
    asked: set[PortKey] = set()
    for request in requests:
        if request.number is not None:
            key = (request.port.protocol, request.number)
            holder = owner if key in asked else owners.get(key)
            if holder is not None and (holder != owner or key in asked):
                conflicts.append((key, holder))
            asked.add(key)
    return conflicts


_Identity = tuple[Owner, str, str]
"""A port of a channel: its owner, name and protocol."""


class Ledger:
    """Who has which port. No port has two owners, and none is given to another while it rests.

    A port is *claimed* when it is in the store, *recovered* when the cluster shows whose it was, *reserved* when a
    channel asks for its number and nobody else has it.
    """

    def __init__(
        self,
        state: MuxState,
        there: Mapping[Owner, Collection[ServicePort]],
        *,
        now: float,
        rest_s: float,
        sure: bool = True,
        forwarded: Container[str] = frozenset(),
    ) -> None:
        """Begin with what was stored; a claim whose channel has no such port any more is freed.

        Args:
            state: What was stored.
            there: The ports of the channels that exist.
            now: In Unix seconds.
            rest_s: How long a freed number rests.
            sure: Whether the time is certain: until it is, no rest is over.
            forwarded: As in `Mux`: a number is freed when it leads nowhere, which may be after it was stored as freed.
        """
        self._now = now
        self._rest_s = rest_s
        self._sure = sure
        self._claims: dict[Owner, dict[str, PortRow]] = {}
        self._recovered: dict[PortKey, PortRow] = {}
        self._shown: set[Owner] = set()
        self._owners: dict[PortKey, Owner] = {}
        self._resting: dict[PortKey, Resting] = {}
        self._before: dict[_Identity, int] = {}
        self._usage = PortUsage()
        self._released: set[PortKey] = set()
        self._bytes = 0
        latest = math.ceil(now)
        claims = [(owner_of(row), row) for row in state.claims]
        held = {(owner, row.port_name) for owner, row in claims}
        for rest in state.resting:
            name = rest.owner.mux_port_name(rest.port_name)
            leads = rest.protocol == UDP and name in forwarded and (rest.owner, rest.port_name) not in held
            self._rest(rest.since(latest) if leads or rest.freed_at > latest else rest)
        ports = {(owner, port.name, port.protocol) for owner, its in there.items() for port in its}
        for owner, row in claims:
            if (owner, row.port_name, row.protocol) in ports:
                self._hold(owner, row)
            else:
                self._rest(muxstate.freed(row, now))
        self._use({*self._owners, *self._resting})

    @property
    def owners(self) -> Mapping[PortKey, Owner]:
        """The owner of each port that is claimed, recovered or reserved."""
        return self._owners

    @property
    def count(self) -> int:
        """The number of claims."""
        return sum(len(rows) for rows in self._claims.values())

    def rows_of(self, owner: Owner) -> Mapping[str, PortRow]:
        """Return the claims of a channel by the names of its ports."""
        return self._claims.get(owner, {})

    def knows(self, owner: Owner) -> bool:
        """Return whether a channel has claimed or recovered something."""
        return owner in self._claims or owner in self._shown

    def has(self, owner: Owner, request: PortRequest, ranges: Sequence[PortBounds]) -> bool:
        """Return whether a channel has claimed what it asks for; without ranges any number that it has will do."""
        row = self.rows_of(owner).get(request.port.name)
        return row is not None and _suits(row.mux_port, request, ranges)

    def draining(self) -> dict[PortKey, float]:
        """Return when the freed numbers that are still in the Service leave it."""
        untils = {rest.key: drains_until(rest) for rest in self._resting.values()}
        return {key: until for key, until in untils.items() if self._now < until}

    def returning(self, owner: Owner, requests: Iterable[PortRequest], ranges: Sequence[PortBounds]) -> list[PortKey]:
        """Return the numbers that a channel asks for or has back, if it gets its ports."""
        numbers = [(each.port.protocol, each.number or self._own(owner, each, ranges)) for each in requests]
        return [(protocol, number) for protocol, number in numbers if number]

    def rests_until(self, key: PortKey, owner: Owner) -> float | None:
        """Return the time until which a number rests for a channel; None if it need not wait."""
        rest = self._resting.get(key)
        if rest is None or rest.owner == owner or self._is_over(rest):
            return None
        until = rest.freed_at + self._rest_s
        return until if self._sure else max(until, self._now + UNSURE_S)

    def next_rested(self, owner: Owner, ranges: Sequence[PortBounds]) -> float | None:
        """Return when the next number in ranges has rested for a channel; None if none rests there."""
        waits = (self.rests_until(rest.key, owner) for rest in self._resting.values() if within(ranges, rest.port))
        return min((until for until in waits if until is not None), default=None)

    def recover(self, row: PortRow) -> None:
        """Let a channel have again what it was seen to have, unless that is another's or rests for another."""
        owner, rest = owner_of(row), self._resting.get(row.key)
        if (
            row.key not in self._owners
            and row.port_name not in self.rows_of(owner)
            and (rest is None or rest.owner == owner or self._is_over(rest))
        ):
            self._recovered[row.key] = row
            self._shown.add(owner)
            self._before[owner, row.port_name, row.protocol] = row.mux_port
            self.reserve(owner, [row.key])

    def reserve(self, owner: Owner, keys: Collection[PortKey]) -> None:
        """Keep ports for a channel, before any is chosen for another."""
        for key in keys:
            self._owners.setdefault(key, owner)
        self._use(keys)

    def choose(self, owner: Owner, requests: Sequence[PortRequest], ranges: Sequence[PortBounds]) -> list[PortRow]:
        """Choose the ports of a channel: those that it asks for by number, its own ones again, else fresh ones.

        A fresh number is the first in the order of the ranges that never was freed; when there is none left, one whose
        rest is over, the oldest first. Nothing is claimed yet.

        Raises:
            InputError: `PortRangeFull`: there are too few.
        """
        taken = {(request.port.protocol, request.number) for request in requests if request.number}
        numbers: dict[str, int] = {}
        for request in requests:
            number = request.number or self._own(owner, request, ranges)
            key = (request.port.protocol, number)
            if request.number or (number and key not in taken):
                taken.add(key)
                numbers[request.port.name] = number
        if len(numbers) == len(requests):
            return [row_for(owner, request, numbers[request.port.name]) for request in requests]
        held = [HeldPort("", *key) for key in taken if key not in self._usage.holders]
        self._usage.hold("", held)
        try:
            for request in requests:
                if request.port.name not in numbers:
                    number = self._fresh(request.port.protocol, ranges, taken)
                    numbers[request.port.name] = number
                    held.append(HeldPort("", request.port.protocol, number))
                    self._usage.hold("", held[-1:])
        finally:
            self._usage.free("", held)
        return [row_for(owner, request, numbers[request.port.name]) for request in requests]

    def has_room(self, owner: Owner, rows: Iterable[PortRow], bytes_max: int) -> bool:
        """Return whether the store has room for the ports of a channel; it forgets numbers whose rest is over."""
        held = {row.key for row in self.rows_of(owner).values()}
        added = sum(muxstate.row_bytes(row) for row in rows if row.key not in held)
        if added and self._bytes + added > bytes_max:
            for rest in [rest for rest in self._resting.values() if self._is_over(rest)]:
                self._wake(rest.key)
                if rest.key not in self._owners:
                    self._usage.free("", [HeldPort("", *rest.key)])
        return not added or self._bytes + added <= bytes_max

    def claim(self, owner: Owner, rows: Sequence[PortRow]) -> None:
        """Let a channel have these ports and no others."""
        kept = {row.key for row in rows}
        for row in self._claims.pop(owner, {}).values():
            self._bytes -= muxstate.row_bytes(row)
            if row.key not in kept:
                del self._owners[row.key]
                self._rest(muxstate.freed(row, self._now))
        for row in rows:
            self._recovered.pop(row.key, None)
            self._hold(owner, row)
        self._use(kept)

    def state(self, before: MuxState) -> MuxState:
        """Return the state to be stored; a port that was recovered, and that its channel did not get, rests.

        Args:
            before: What was stored; its unknown fields are kept.
        """
        for row in self._recovered.values():
            if row.key not in self._resting:
                self._rest(muxstate.freed(row, self._now))
        claims = [
            row
            for owner in sorted(self._claims, key=lambda owner: owner.order)
            for row in sorted(self._claims[owner].values(), key=lambda row: (row.mux_port, row.protocol))
        ]
        return MuxState(tuple(claims), muxstate.by_age(self._resting.values()), before.fields)

    def _own(self, owner: Owner, request: PortRequest, ranges: Sequence[PortBounds]) -> int:
        """Return the number that a port has, or had last, if it may have it; 0 if there is none."""
        row = self.rows_of(owner).get(request.port.name)
        number = row.mux_port if row else self._before.get((owner, request.port.name, request.port.protocol), 0)
        mine = self._owners.get((request.port.protocol, number), owner) == owner
        return number if number and mine and _suits(number, request, ranges) else 0

    def _fresh(self, protocol: str, ranges: Sequence[PortBounds], taken: Container[PortKey]) -> int:
        while True:
            try:
                return allocate([RequestedPort("", protocol)], self._usage, *ranges, per_instance_max=1)[""]
            except InputError:
                free = (rest for rest in self._resting.values() if self._is_free(rest, protocol, ranges))
                rested = next((rest for rest in free if rest.key not in taken), None)
                if rested is None:
                    raise
                self._released.add(rested.key)
                self._usage.free("", [HeldPort("", *rested.key)])

    def _is_free(self, rest: Resting, protocol: str, ranges: Sequence[PortBounds]) -> bool:
        """Return whether a number can be given again, once in a pass."""
        kept = rest.key not in self._released and rest.key not in self._owners
        return kept and rest.protocol == protocol and self._is_over(rest) and within(ranges, rest.port)

    def _is_over(self, rest: Resting) -> bool:
        return self._sure and rest.freed_at + self._rest_s <= self._now

    def _hold(self, owner: Owner, row: PortRow) -> None:
        self._wake(row.key)
        self._claims.setdefault(owner, {})[row.port_name] = row
        self._owners[row.key] = owner
        self._bytes += muxstate.row_bytes(row)

    def _rest(self, rest: Resting) -> None:
        self._resting[rest.key] = rest
        self._before[rest.owner, rest.port_name, rest.protocol] = rest.port
        self._bytes += muxstate.resting_bytes(rest)

    def _wake(self, key: PortKey) -> None:
        rest = self._resting.pop(key, None)
        if rest is not None:
            self._bytes -= muxstate.resting_bytes(rest)

    def _use(self, keys: Iterable[PortKey]) -> None:
        self._usage.hold("", [HeldPort("", *key) for key in keys if key not in self._usage.holders])


def _suits(number: int, request: PortRequest, ranges: Sequence[PortBounds]) -> bool:
    if request.number is not None:
        return number == request.number
    return not ranges or within(ranges, number)


def row_for(owner: Owner, request: PortRequest, number: int) -> PortRow:
    """Return the row of a port that a channel has, or is to have."""
    port, source = request.port, AUTO if request.number is None else STATIC
    return PortRow(
        owner.namespace, owner.service, port.name, port.protocol, port.port, number, source, learner=owner.learner
    )
