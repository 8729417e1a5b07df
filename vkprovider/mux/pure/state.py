"""What a mux remembers: which channel has which outside port, and UDP ports that drain.

    {"schemaVersion": 1, "mux": {"namespace": "svc-mux", "name": "mux"},
     "resting": [{"protocol": "TCP", "port": 20001, "freedAt": 1769860800,
                  "namespace": "app", "service": "old", "portName": "http"}],
     "portClaims": […], "allocations": […]}

`resting` and the `learner` of a row are ours; readers that do not know them find the document that they know. A claim
is written before its port is: whoever begins again finds every port with its owner.

Draining: kube-proxy ends an open UDP flow only while the port of the Service has a serving endpoint, and the flow leads
to another one (`CleanStaleEntries` in its pkg/proxy/conntrack/cleanup.go). If the port were taken away, the sender
would go on to reach the port of the worker, also when the device of the next learner has it. It therefore stays, under
its name, with `DISCARD` as its only backend. It forwards to nobody: no machine has that address. The relay sees TCP
ports alone.
"""

import hashlib
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

import msgspec

from vkprovider.lablet import names
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import Mux, MuxRef, Owner, PortKey, ServicePort, annotation_key
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap
from vkprovider.platform.ports import store
from vkprovider.platform.ports.allocator import UDP
from vkprovider.platform.ports.rows import AUTO, PortRow
from vkprovider.platform.ports.store import Codec, Document, StoreDamaged, StoreFull, StoreInvalid

STORE_BYTES_MAX: Final = 768 * 1024
"""The size at which a mux takes no more ports: about 2,500 automatic ones. One that is freed may need some more."""
_ROW_BYTES: Final = 135
"""What a row takes beside its names, with the comma: its keys and numbers."""
_RESTING_BYTES: Final = 115
_STORE_CHARS_MAX: Final = 63
_STORE_HEAD_CHARS: Final = 54
_STORE_HASH_CHARS: Final = 8


class Resting(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A number that was freed.

    Attributes:
        freed_at: When, in Unix seconds.
        learner: As in `Owner`.
    """

    protocol: str
    port: int
    freed_at: int
    namespace: str
    service: str
    port_name: str
    learner: str | None = None

    @property
    def key(self) -> PortKey:
        """Protocol and number."""
        return self.protocol, self.port

    def since(self, freed_at: int) -> Self:
        """Return it as freed at another time."""
        return msgspec.structs.replace(self, freed_at=freed_at)

    @property
    def owner(self) -> Owner:
        """The channel that had it, which alone may have it again at once."""
        return Owner(self.namespace, self.service, self.learner)


class MuxState(msgspec.Struct, frozen=True):
    """What a mux remembers.

    Attributes:
        claims: The ports of its channels, one port of one channel each.
        resting: Numbers that were freed, the oldest first.
        fields: Fields of the document that this program does not know.
    """

    claims: tuple[PortRow, ...] = ()
    resting: tuple[Resting, ...] = ()
    fields: dict[str, msgspec.Raw] = {}

    def port_owners(self) -> dict[PortKey, Owner]:
        """Return the owner of each port."""
        return {row.key: owner_of(row) for row in self.claims}


class _Mux(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class _Document(Document, frozen=True):
    mux: _Mux
    resting: tuple[Resting, ...] = ()


_codec: Final = Codec(_Document)


def owner_of(row: PortRow) -> Owner:
    """Return the owner of a row."""
    return Owner(row.namespace, row.service, row.learner)


def freed(row: PortRow, now: float) -> Resting:
    """Return the number of a row as one that rests from now on."""
    return Resting(
        protocol=row.protocol,
        port=row.mux_port,
        freed_at=math.ceil(now),
        namespace=row.namespace,
        service=row.service,
        port_name=row.port_name,
        learner=row.learner,
    )


def store_name(mux: Mux, prefix: str) -> str:
    """Return the name of the ConfigMap of a mux, in its namespace; that of a long name is svc-lb-mux's own."""
    if asked := mux.annotations.get(annotation_key(prefix, muxnames.MUX_STORE)):
        return asked
    name = mux.ref.name
    usual = names.claims_name(name)
    if len(usual) <= _STORE_CHARS_MAX:
        return usual
    return f"{name[:_STORE_HEAD_CHARS]}-{hashlib.sha256(name.encode()).hexdigest()[:_STORE_HASH_CHARS]}"


def store_labels() -> dict[str, str]:
    """Return the labels of the ConfigMap of every mux."""
    return {"app.kubernetes.io/name": muxnames.MUX_PROGRAM, "app.kubernetes.io/component": "mux-state"}


def store_annotations(ref: MuxRef, prefix: str) -> dict[str, str]:
    """Return the annotations of the ConfigMap of a mux, which say whose it is."""
    return {annotation_key(prefix, muxnames.MUX_OWNER): str(ref)}


def read(config_map: ConfigMap, ref: MuxRef, prefix: str) -> MuxState:
    """Read the store of a mux. One that does not exist yet is `MuxState()`.

    Raises:
        InputError: `PortAllocationStoreInvalid`: it belongs to another mux, or is damaged. No port may be given until
            it is repaired, because a row that cannot be read may be a port in use.
    """
    try:
        return _read(config_map, ref, prefix)
    except StoreDamaged as error:
        told = f" cannot be read ({error}); restore it, or delete it and let every port be given again"
        raise _invalid(config_map, told) from None
    except StoreInvalid as error:
        raise _invalid(config_map, str(error)) from None


def _read(config_map: ConfigMap, ref: MuxRef, prefix: str) -> MuxState:
    key = annotation_key(prefix, muxnames.MUX_OWNER)
    marked = config_map.metadata.annotations.get(key)
    if marked != str(ref):
        raise StoreInvalid(f" belongs to {f'mux {marked}' if marked else 'no mux'}, not to {ref} (annotation {key})")
    opened = _codec.read(config_map)
    found = MuxRef(opened.document.mux.namespace, opened.document.mux.name)
    if found != ref:
        raise StoreInvalid(f" holds the ports of mux {found}, not of {ref}")
    claims = tuple(stored.row for stored in opened.rows())
    by_identity: dict[tuple[Owner, str], PortRow] = {}
    for row in claims:
        if by_identity.setdefault((owner_of(row), row.port_name), row) is not row:
            raise StoreInvalid(f": {row} has two ports; remove the wrong row")
    claimed = {row.key for row in claims}
    resting = {rest.key: rest for rest in opened.document.resting if rest.key not in claimed}
    return MuxState(claims, by_age(resting.values()), opened.fields)


def write(state: MuxState, ref: MuxRef) -> tuple[dict[str, str], dict[str, str]]:
    """Build the ConfigMap's `data` and `binaryData`.

    Raises:
        InputError: `MuxStoreFull`: more ports than one object can hold, though `decide` takes fewer.
    """
    owned: dict[str, object] = {"mux": _Mux(*ref), "resting": state.resting}
    if not state.resting:
        del owned["resting"]
    try:
        return store.write(owned, state.claims, [], state.fields, plain_bytes_max=store.OBJECT_BYTES_MAX)
    except StoreFull as error:
        raise InputError(MuxReason.MUX_STORE_FULL, str(error)) from None


def by_age(resting: Iterable[Resting]) -> tuple[Resting, ...]:
    """Sort numbers that rest, the oldest first."""
    return tuple(sorted(resting, key=lambda rest: (rest.freed_at, rest.protocol, rest.port)))


def row_bytes(row: PortRow) -> int:
    """Return the bytes of a row in the document; an automatic one stands there twice."""
    size = _ROW_BYTES + len(row.namespace) + len(row.service) + len(row.port_name)
    learner = 0 if row.learner is None else 13 + _json_bytes(row.learner)
    return (2 * size if row.source == AUTO else size) + learner


def resting_bytes(rest: Resting) -> int:
    """Return the bytes of a number that rests in the document."""
    size = _RESTING_BYTES + len(rest.namespace) + len(rest.service) + len(rest.port_name)
    return size + (0 if rest.learner is None else 13 + _json_bytes(rest.learner))


def _json_bytes(text: str) -> int:
    return len(msgspec.json.encode(text))


def _invalid(config_map: ConfigMap, told: str) -> InputError:
    return InputError(MuxReason.PORT_ALLOCATION_STORE_INVALID, f"ConfigMap {config_map.metadata.name}{told}")


DRAIN_S: Final = 30.0
"""The time for which a freed UDP port stays. A kube-proxy needs seconds to see the change; the port of the worker rests
for 60 s before another learner gets it."""
DISCARD: Final[Mapping[str, str]] = {"IPv4": "192.0.2.254", "IPv6": "100::1"}
"""Addresses that no machine has, and that the API server takes for endpoints: of TEST-NET-1 (RFC 5737) and of the
discard prefix (RFC 6666)."""

UNSURE_S: Final = 5.0
"""How soon is looked again whether the time is certain."""


class Drain(NamedTuple):
    """A port of a mux that nobody serves.

    Attributes:
        owner: The channel that has it, or had it last.
        port: The port in the Service of the mux.
        until: When it leaves the Service, in Unix seconds; None while its channel keeps the number.
    """

    owner: Owner
    port: ServicePort
    until: float | None


def find_drains(
    state: MuxState,
    served: Sequence[ServicePort],
    now: float,
    limit: int | None,
    kept: Container[PortKey] = (),
) -> tuple[Drain, ...]:
    """Return the UDP ports that stay in the Service of a mux though no channel has them there.

    Those are numbers that were freed lately, and those of channels that are refused.

    Args:
        state: What is stored.
        served: The ports of channels in the Service, which come first.
        now: In Unix seconds.
        limit: The most ports of the Service.
        kept: Those that it has, and that leave it for no age, because the time is not certain.
    """
    taken = {port.name for port in served}
    keys = {(port.protocol, port.port) for port in served}
    found: list[Drain] = []
    for owner, port_name, number, until in _unserved(state, now, kept):
        if (UDP, number) in keys or (limit is not None and len(served) + len(found) >= limit):
            continue
        names = (owner.mux_port_name(port_name), owner.mux_port_name(f"{port_name}/{number}"))
        name = next((name for name in names if name not in taken), None)  # its channel may have another number already
        if name is not None:
            taken.add(name)
            found.append(Drain(owner, ServicePort(name, number, UDP), until))
    return tuple(found)


def drains_until(rest: Resting) -> float:
    """Return when a freed number leaves the Service; TCP ports leave it at once."""
    return rest.freed_at + DRAIN_S if rest.protocol == UDP else float("-inf")


def _unserved(state: MuxState, now: float, kept: Container[PortKey]) -> Iterable[tuple[Owner, str, int, float | None]]:
    for rest in reversed(state.resting):
        until = drains_until(rest)
        if rest.protocol == UDP and rest.key in kept:
            until = max(until, now + UNSURE_S)
        if now < until:
            yield rest.owner, rest.port_name, rest.port, until
    for row in state.claims:
        if row.protocol == UDP:
            yield owner_of(row), row.port_name, row.mux_port, None
