"""The store of ports of another owner than lablets: a multiplexer, as the schema has it (R003-033 to R003-041)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.ports import rows as portrows
from vkprovider.platform.ports import store as portstore
from vkprovider.platform.ports.rows import AUTO, STATIC, PortRow, StoredRow
from vkprovider.platform.ports.store import Codec, Document, OpenedStore, StoreDamaged, StoreFull, StoreInvalid

API = PortRow("app", "api", "http", "TCP", 80, 20000, AUTO)
P2P = PortRow("app", "p2p", "p2p", "TCP", 30303, 30303, STATIC)
DNS = PortRow("infra", "dns", "dns", "UDP", 53, 53, STATIC)
DNS_TCP = PortRow("infra", "dns", "dns-tcp", "TCP", 53, 53, STATIC)


class Mux(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class MuxDocument(Document, frozen=True):
    mux: Mux


CODEC = Codec(MuxDocument)
MUX = Mux("svc-mux", "mux")


def config_map(data: dict[str, str], binary: dict[str, str] | None = None) -> ConfigMap:
    return ConfigMap(Metadata("mux-port-allocations"), data, binary or {})


def write(*rows: PortRow, opened: OpenedStore[MuxDocument] | None = None, bytes_max: int = 10**6) -> Any:
    fields = opened.fields if opened is not None else {}
    return portstore.write({"mux": MUX}, rows, [], fields, bytes_max=bytes_max)


def read(text: str) -> OpenedStore[MuxDocument]:
    return CODEC.read(config_map({portstore.DATA_KEY: text}))


def seed_row(row: PortRow) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "service": row.service,
        "portName": row.port_name,
        "protocol": row.protocol,
        "channelPort": row.channel_port,
        "muxPort": row.mux_port,
        "port": row.mux_port,
        "source": row.source,
    }


def test_document_of_a_mux_is_that_of_the_schema() -> None:
    """Static claims stand in `portClaims` alone, and no row has a field that only lablets have."""
    data, binary = write(API, P2P)
    assert binary == {}
    assert json.loads(data["allocations.json"]) == {
        "schemaVersion": 1,
        "mux": {"namespace": "svc-mux", "name": "mux"},
        "portClaims": [seed_row(API), seed_row(P2P)],
        "allocations": [seed_row(API)],
    }
    opened = read(data["allocations.json"])
    assert opened.document.mux == MUX
    assert [found.row for found in opened.rows()] == [API, P2P]


def test_allocations_of_an_old_writer_are_migrated() -> None:
    text = json.dumps({"schemaVersion": 1, "mux": {"namespace": "n", "name": "m"}, "allocations": [seed_row(API)]})
    [found] = read(text).rows()
    assert (found.row, found.migrated) == (API, True)
    assert json.loads(write(found.row)[0]["allocations.json"])["portClaims"] == [seed_row(API)]


def test_fields_of_a_later_writer_stay() -> None:
    text = write(API)[0]["allocations.json"][:-1] + ',"later":{"is": [1.50, "ü"]}}'
    opened = read(text)
    again = write(*(found.row for found in opened.rows()), opened=opened)
    assert again == ({"allocations.json": text}, {})


def test_numbers_of_both_protocols_are_independent() -> None:
    assert [found.row for found in read(write(DNS, DNS_TCP)[0]["allocations.json"]).rows()] == [DNS, DNS_TCP]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"portClaims": [seed_row(API), seed_row(P2P._replace(mux_port=20000))]}, "claimed by app/api (http) and by"),
        ({"allocations": [seed_row(API._replace(mux_port=20001))]}, "TCP port 20001 is allocated to app/api (http)"),
        ({"portClaims": [{**seed_row(API), "port": 20001}]}, "does not name its port"),
    ],
)
def test_contradiction_is_refused(change: dict[str, Any], told: str) -> None:
    found = json.loads(write(API)[0]["allocations.json"]) | change
    with pytest.raises(StoreInvalid, match="; remove the wrong row") as caught:
        read(json.dumps(found)).rows()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{", StoreDamaged),
        ("[]", StoreDamaged),
        ('{"schemaVersion": 1}', StoreDamaged),
        ('{"schemaVersion": 2, "mux": {"namespace": "n", "name": "m"}}', StoreInvalid),
    ],
)
def test_what_is_no_document_is_refused(text: str, kind: type[ValueError]) -> None:
    with pytest.raises(kind):
        read(text)


@pytest.mark.parametrize("row", ["7", '{"namespace": "a"}', '{"namespace":"a","service":"b","portName":"c","port":0}'])
def test_what_is_no_row_is_refused(row: str) -> None:
    text = '{"schemaVersion": 1, "mux": {"namespace": "n", "name": "m"}, "portClaims": [%s]}' % row  # noqa: UP031 (braces)
    with pytest.raises(StoreDamaged):
        read(text).rows()


def test_missing_key_is_named() -> None:
    with pytest.raises(StoreInvalid, match=r"has no key allocations\.json"):
        CODEC.read(config_map({}))


@pytest.mark.parametrize(
    ("found", "channel_port"), [({"channelPort": 80}, 80), ({}, 7), ({"channelPort": "80"}, 7), ({"channelPort": 0}, 7)]
)
def test_port_of_a_channel_is_the_outside_one_where_it_is_not_said(found: dict[str, Any], channel_port: int) -> None:
    raw = msgspec.Raw(msgspec.json.encode({"namespace": "a", "service": "b", "portName": "c", "port": 7, **found}))
    assert portrows.read([raw], []) == [
        StoredRow(PortRow("a", "b", "c", "TCP", channel_port, 7, AUTO), raw, migrated=False)
    ]


def test_many_rows_are_packed_and_too_many_refused() -> None:
    rows = [API._replace(service=f"api-{n}", port_name=f"p{n}", mux_port=n) for n in range(1, 2501)]
    data, binary = write(*rows)
    assert (data, list(binary)) == ({}, ["allocations.json.gz"])
    assert [found.row for found in CODEC.read(config_map(data, binary)).rows()] == rows
    with pytest.raises(StoreFull, match="do not fit into 1000"):
        write(*rows, bytes_max=1000)


ROWS = st.builds(
    PortRow,
    namespace=st.text(max_size=9),
    service=st.text(max_size=9),
    port_name=st.text(max_size=9),
    protocol=st.sampled_from(["TCP", "UDP", "SCTP"]),
    channel_port=st.integers(1, 65535),
    mux_port=st.integers(1, 65535),
    source=st.sampled_from([AUTO, STATIC]),
    pod_uid=st.sampled_from(["", "0a1b2c3d"]),
)


@given(st.lists(ROWS, max_size=9, unique_by=lambda row: row.key))
def test_rows_come_back_as_they_were_written(rows: list[PortRow]) -> None:
    """Whatever names contain, and in whichever order their owners come."""
    identities = {row.identity for row in rows}
    if len(identities) < len(rows):
        rows = [row._replace(port_name=f"{n}") for n, row in enumerate(rows)]
    opened = read(write(*rows)[0]["allocations.json"])
    assert [found.row for found in opened.rows()] == rows
    assert not any(found.migrated for found in opened.rows())
