"""The rows of ports in a claims document: `portClaims` and `allocations`, of any owners.

A row names its owner in the terms of Services, with a lablet's Pod as the Service and its slot as the Service's port;
no proxy stands between a lab and its ports, so that all three port numbers are the same:

    {"namespace": "a", "service": "b", "portName": "pc1_serial", "protocol": "TCP", "channelPort": 10011,
     "muxPort": 10011, "port": 10011, "source": "auto", "podUID": "0a1b2c3d"}

`podUID` is our field: the beginning of the Pod's UID, because two Pods can have one name while the lab of the first is
being removed. A row without it, or of a Pod that has no claim, is foreign: it is kept unchanged, and holds its port.
`allocations` is the view for readers without `portClaims`: the same rows without the static ones. A row that only
`allocations` has is from an old writer; it becomes a claim of the Pod of that name.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from vkprovider.domain.claims.ports import TCP, UDP, Held

UID_CHARS: Final = 8
"""How many characters of a Pod's UID a row has; whole UIDs would fill half of an object."""

AUTO: Final = "auto"

_Number = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class PortOwner(NamedTuple):
    """A Pod as rows identify it."""

    namespace: str
    name: str
    uid: str


class _Found(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    service: str
    port_name: str
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    mux_port: _Number | None = None
    port: _Number | None = None
    source: str = AUTO
    pod_uid: str = msgspec.field(name="podUID", default="")

    @property
    def number(self) -> int:
        """The outside port."""
        number = self.port or self.mux_port
        if number is None or (self.mux_port or number) != number:
            raise ValueError(f"the port row of {self} does not name its port")
        return number

    @property
    def key(self) -> tuple[str, int]:
        """Protocol and number of the port."""
        return self.protocol, self.number

    @property
    def identity(self) -> tuple[str, str, str]:
        """The owner of the port."""
        return self.namespace, self.service, self.port_name

    def __str__(self) -> str:
        """Return the owner as text."""
        return f"{self.namespace}/{self.service} ({self.port_name})"


class ForeignRow(NamedTuple):
    """A row of another owner.

    Attributes:
        raw: Its unchanged JSON.
        owner: Namespace and name of the owner.
        uid: The beginning of the UID of a Pod that was a lablet once; empty for all others.
        held: Its port.
        auto: Whether it is in `allocations` too.
    """

    raw: msgspec.Raw
    owner: str
    uid: str
    held: Held
    auto: bool

    def is_of(self, uid: str) -> bool:
        """Return whether it belongs to this Pod."""
        return self.uid in {uid, uid[:UID_CHARS]}


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Found).decode


def read(
    claimed: Iterable[msgspec.Raw], allocated: Iterable[msgspec.Raw], owners: Collection[PortOwner]
) -> tuple[dict[str, list[Held]], list[ForeignRow]]:
    """Return the ports of each owner, by its UID, and the rows of all other owners.

    Args:
        claimed: The rows in `portClaims`.
        allocated: Those in `allocations`.
        owners: The Pods with a claim.

    Raises:
        ValueError: A row does not make sense, or one port has two owners.
    """
    by_name: dict[tuple[str, str], list[str]] = {}
    for namespace, name, uid in owners:
        by_name.setdefault((namespace, name), []).append(uid)
    rows: dict[tuple[str, int], tuple[_Found, msgspec.Raw]] = {}
    for raw in claimed:
        row = _decode(raw)
        if row.key in rows:
            raise ValueError(f"{row.protocol} port {row.number} is claimed by {rows[row.key][0]} and by {row}")
        rows[row.key] = row, raw
    old = _only_allocated(allocated, {key: row for key, (row, _) in rows.items()})
    ports: dict[str, list[Held]] = {}
    kept: list[ForeignRow] = []
    for row, raw in (*rows.values(), *old.values()):
        held = Held(row.port_name, row.protocol, row.number)
        pods = by_name.get((row.namespace, row.service), [])
        if row.key not in old:
            pods = [uid for uid in pods if row.pod_uid in {uid, uid[:UID_CHARS]}]
        match pods:
            case [uid] if row.protocol != "SCTP":
                mine = ports.setdefault(uid, [])
                if any(other.purpose == row.port_name for other in mine):
                    raise ValueError(f"{row} has two ports")
                mine.append(held)
            case _:
                kept.append(
                    ForeignRow(raw.copy(), f"{row.namespace}/{row.service}", row.pod_uid, held, row.source == AUTO)
                )
    return ports, kept


def _only_allocated(
    allocated: Iterable[msgspec.Raw], claims: Mapping[tuple[str, int], _Found]
) -> dict[tuple[str, int], tuple[_Found, msgspec.Raw]]:
    """Return the rows that an old writer allocated without a claim."""
    claimed = {row.identity for row in claims.values()}
    found: dict[tuple[str, int], tuple[_Found, msgspec.Raw]] = {}
    for raw in allocated:
        row = _decode(raw)
        claim = claims.get(row.key)
        if claim is None and row.identity not in claimed and row.key not in found:
            found[row.key] = row, raw
        elif claim is None or claim.identity != row.identity:
            told = f"it is claimed by {claim}" if claim else "another row says otherwise"
            raise ValueError(f"{row.protocol} port {row.number} is allocated to {row}, but {told}")
    return found


def write(
    owners: Sequence[tuple[PortOwner, Mapping[str, int], Collection[str]]], kept: Collection[ForeignRow]
) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """Build the rows of `portClaims` and of `allocations`, as raw JSON.

    Thousands of rows are written several times a second, so they are assembled as text: that takes a quarter of the
    time of encoding objects.

    Args:
        owners: The Pods with a claim, with their ports by the name of the slot, and the names of the UDP ones.
        kept: The rows of other owners.
    """
    alike = Counter((owner.namespace, owner.name, owner.uid[:UID_CHARS]) for owner, _, _ in owners)
    claimed, allocated = [], []
    for (namespace, name, uid), ports, udp in owners:
        short = uid[:UID_CHARS] if alike[namespace, name, uid[:UID_CHARS]] == 1 else uid
        head = f'{{"namespace":{_quoted(namespace)},"service":{_quoted(name)},"portName":'
        end = f',"podUID":{_quoted(short)}}}'
        for slot, port in ports.items():
            row = (
                f'{head}{_quoted(slot)},"protocol":"{UDP if slot in udp else TCP}","channelPort":{port},'
                f'"muxPort":{port},"port":{port},"source":"{AUTO}"'
            )
            claimed.append(row + end)
            allocated.append(row + "}")
    return (
        [row.raw for row in kept] + _raw(claimed),
        [row.raw for row in kept if row.auto] + _raw(allocated),
    )


def _raw(rows: Sequence[str]) -> list[msgspec.Raw]:
    """Join all rows to one raw piece, which an encoder copies."""
    return [msgspec.Raw(",".join(rows).encode())] if rows else []


def _quoted(text: str) -> str:
    return _encode(text).decode()
