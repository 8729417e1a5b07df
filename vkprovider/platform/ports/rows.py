"""The rows of ports in a stored document: `portClaims` and `allocations`, of any owners.

A row says which port of which Service has which outside port:

    {"namespace": "a", "service": "b", "portName": "http", "protocol": "TCP", "channelPort": 80,
     "muxPort": 20000, "port": 20000, "source": "auto"}

`port` repeats `muxPort` for old readers. `allocations` is the view for readers without `portClaims`: the same rows
without the static ones. A row that only `allocations` has is from an old writer.

A lablet's Pod stands in place of the Service, and its slot in place of the Service's port; no proxy stands between a
lab and its ports, so that all three numbers are the same. `podUID` is our field: the beginning of the Pod's UID,
because two Pods can have one name while the lab of the first is being removed. `learner` is ours too: a lablet's row in
the store of a mux has it, because there the learner, not the Pod, keeps the number. Neither stands in `allocations`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, Protocol

import msgspec

from vkprovider.platform.ports.allocator import TCP, HeldPort

AUTO: Final = "auto"
STATIC: Final = "static"
_PORT_MAX: Final = 65535

_Number = Annotated[int, msgspec.Meta(ge=1, le=_PORT_MAX)]


class PortRow(NamedTuple):
    """A stored port.

    Attributes:
        channel_port: The port of the Service itself.
        mux_port: The outside port.
        source: `auto` if it was allocated, `static` if it was asked for.
        pod_uid: The beginning of the UID of a lablet's Pod, or all of it; "" for a Service.
        learner: In the store of a mux the learner of a lablet, "" for none; None for a Service.
    """

    namespace: str
    service: str
    port_name: str
    protocol: str
    channel_port: int
    mux_port: int
    source: str = AUTO
    pod_uid: str = ""
    learner: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Protocol and number of the outside port."""
        return self.protocol, self.mux_port

    @property
    def identity(self) -> tuple[str, str, str]:
        """The owner of the port."""
        return self.namespace, self.service, self.port_name

    @property
    def held(self) -> HeldPort:
        """The outside port as its owner sees it."""
        return HeldPort(self.port_name, self.protocol, self.mux_port)

    def __str__(self) -> str:
        """Return the owner as text."""
        return f"{self.namespace}/{self.service} ({self.port_name})"


class StoredRow(NamedTuple):
    """A row as it was found.

    Attributes:
        row: Its port.
        raw: Its JSON, in which fields may stand that `row` lacks; a view into the text of the document.
        migrated: Whether an old writer left it in `allocations` alone.
    """

    row: PortRow
    raw: msgspec.Raw
    migrated: bool = False


class Unchanged(Protocol):
    """A row that is written as it was found."""

    @property
    def raw(self) -> msgspec.Raw:
        """Its JSON."""

    @property
    def auto(self) -> bool:
        """Whether it is in `allocations` too."""


class _Found(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    service: str
    port_name: str
    protocol: Literal["TCP", "UDP", "SCTP"] = TCP
    channel_port: object = None
    mux_port: _Number | None = None
    port: _Number | None = None
    source: str = AUTO
    pod_uid: str = msgspec.field(name="podUID", default="")
    learner: str | None = None

    def row(self) -> PortRow:
        """Return the row; a channel's port that is missing or none counts as the outside port.

        Raises:
            ValueError: It does not name its port.
        """
        number = self.port or self.mux_port
        if number is None or (self.mux_port or number) != number:
            who = f"{self.namespace}/{self.service} ({self.port_name})"
            raise ValueError(f"the port row of {who} does not name its port")
        inside = self.channel_port
        channel_port = inside if type(inside) is int and 0 < inside <= _PORT_MAX else number
        return PortRow(
            self.namespace,
            self.service,
            self.port_name,
            self.protocol,
            channel_port,
            number,
            self.source,
            self.pod_uid,
            self.learner,
        )


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Found).decode


def read(claimed: Iterable[msgspec.Raw], allocated: Iterable[msgspec.Raw]) -> list[StoredRow]:
    """Return all rows: those of `portClaims`, then those that only `allocations` has.

    Args:
        claimed: The rows in `portClaims`.
        allocated: Those in `allocations`.

    Raises:
        ValueError: A row does not make sense, or one port has two owners.
    """
    rows: dict[tuple[str, int], StoredRow] = {}
    for raw in claimed:
        row = _decode(raw).row()
        if row.key in rows:
            raise ValueError(f"{row.protocol} port {row.mux_port} is claimed by {rows[row.key].row} and by {row}")
        rows[row.key] = StoredRow(row, raw)
    return [*rows.values(), *_only_allocated(allocated, {key: found.row for key, found in rows.items()})]


def _only_allocated(allocated: Iterable[msgspec.Raw], claims: Mapping[tuple[str, int], PortRow]) -> Iterable[StoredRow]:
    """Return the rows that an old writer allocated without a claim."""
    claimed = {row.identity for row in claims.values()}
    found: dict[tuple[str, int], StoredRow] = {}
    for raw in allocated:
        row = _decode(raw).row()
        claim = claims.get(row.key)
        if claim is None and row.identity not in claimed and row.key not in found:
            found[row.key] = StoredRow(row, raw, migrated=True)
        elif claim is None or claim.identity != row.identity:
            told = f"it is claimed by {claim}" if claim else "another row says otherwise"
            raise ValueError(f"{row.protocol} port {row.mux_port} is allocated to {row}, but {told}")
    return found.values()


def write(rows: Iterable[PortRow], unchanged: Iterable[Unchanged]) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """Build `portClaims` and `allocations`, as raw JSON.

    Thousands of rows are written several times a second, so they are assembled as text: that takes a quarter of the
    time of encoding objects.

    Args:
        rows: The rows; those of one owner one after another, so that its name is written as JSON once.
        unchanged: Rows that come before them, as they were found.
    """
    claimed, allocated = [], []
    owner, head, tail, uid = None, "", "", ""
    for namespace, service, port_name, protocol, channel_port, mux_port, source, pod_uid, learner in rows:
        if (namespace, service, source, pod_uid, learner) != owner:
            owner = namespace, service, source, pod_uid, learner
            head = f'{{"namespace":{_quoted(namespace)},"service":{_quoted(service)},"portName":'
            tail = f',"source":{_quoted(source)}'
            uid = f',"podUID":{_quoted(pod_uid)}' if pod_uid else ""
            uid += f',"learner":{_quoted(learner)}' if learner is not None else ""
        row = (
            f'{head}{_quoted(port_name)},"protocol":"{protocol}","channelPort":{channel_port},'
            f'"muxPort":{mux_port},"port":{mux_port}{tail}'
        )
        claimed.append(f"{row}{uid}}}")
        if source == AUTO:
            allocated.append(row + "}")
    kept = list(unchanged)
    return (
        [row.raw for row in kept] + _raw(claimed),
        [row.raw for row in kept if row.auto] + _raw(allocated),
    )


def _raw(rows: Sequence[str]) -> list[msgspec.Raw]:
    """Join all rows to one raw piece, which an encoder copies."""
    return [msgspec.Raw(",".join(rows).encode())] if rows else []


def _quoted(text: str) -> str:
    return _encode(text).decode()
