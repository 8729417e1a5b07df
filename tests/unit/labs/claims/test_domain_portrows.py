"""Ports in the document: the rows of a known schema, of lablets and of others."""

import base64
import json
from typing import Any

import msgspec
import pytest

from tests.unit.labs import builders
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.ports import store as portstore
from vkprovider.platform.ports.allocator import TCP, UDP

UID = builders.POD_UID
OTHER = "22222222-2222-3333-4444-555555555555"
ALIKE = UID[:-1] + "6"


def claim(uid: str = UID, ports: dict[str, int] | None = None, *udp: str, **fields: Any) -> Claim:
    return msgspec.structs.replace(builders.claim(), pod_uid=uid, ports=ports or {}, udp=udp, **fields)


def stored(*rows: Claim) -> StoredClaims:
    return StoredClaims({row.pod_uid: row for row in rows})


def document_of(what: StoredClaims) -> dict[str, Any]:
    data, _ = document.write(what, worker="w1", installation="inst")
    found: dict[str, Any] = json.loads(data[portstore.DATA_KEY])
    return found


def read(found: dict[str, Any]) -> StoredClaims:
    metadata = Metadata("w1-port-allocations", annotations={wellknown.ANNOTATION_INSTALLATION: "inst"})
    config_map = ConfigMap(metadata, {portstore.DATA_KEY: json.dumps(found)}, {})
    return document.read(config_map, worker="w1", installation="inst")


def refused(found: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        read(found)
    assert caught.value.reason == "ClaimStoreInvalid"
    return caught.value.message


def foreign(port: int, **fields: Any) -> dict[str, Any]:
    return {"namespace": "app", "service": "api", "portName": f"p{port}", "port": port, "source": "static", **fields}


def with_rows(
    what: StoredClaims, *rows: dict[str, Any], allocations: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    found = document_of(what)
    found["portClaims"] += rows
    found["allocations"] += allocations or []
    return found


def test_ports_stand_in_the_schema_of_others() -> None:
    """R003-035, R003-036, R003-037, C25."""
    found = document_of(stored(claim(UID, {"pc1_serial": 10011, "pc1_patudp53": 10011}, "pc1_patudp53")))
    row = {
        "namespace": "team",
        "service": "pod-1",
        "portName": "pc1_serial",
        "protocol": "TCP",
        "channelPort": 10011,
        "muxPort": 10011,
        "port": 10011,
        "source": "auto",
    }
    second = {**row, "portName": "pc1_patudp53", "protocol": "UDP"}
    assert found["allocations"] == [row, second]
    assert found["portClaims"] == [{**row, "podUID": UID[:8]}, {**second, "podUID": UID[:8]}]
    assert "ports" not in found["lablets"][0]
    assert found["schemaVersion"] == 1


def test_rows_of_others_are_kept_and_hold_their_ports() -> None:
    """R003-030: whatever else they say."""
    ours = stored(claim(UID, {"a": 1}))
    static, auto = foreign(10000, note={"by": ["hand"]}), foreign(10001, source="auto", protocol="UDP")
    found = read(with_rows(ours, static, auto))
    assert found.claims == ours.claims
    usage = document.usage_of(found.claims.values(), found.foreign)
    assert set(usage.holders) == {(TCP, 1), (TCP, 10000), (UDP, 10001)}
    assert str(usage.holders[TCP, 10000]) == "app/api (p10000)"
    again = document_of(found)
    assert static in again["portClaims"]
    assert auto in again["portClaims"]
    assert auto in again["allocations"]
    assert static not in again["allocations"]
    assert document_of(read(again)) == again


def test_unknown_fields_of_the_document_are_kept() -> None:
    found = {**document_of(stored(claim())), "remark": {"a": [1, None]}, "mux": "x"}
    assert document_of(read(found)) == found


def test_a_row_may_tell_its_port_by_either_name() -> None:
    rows = [foreign(5), {k: v for k, v in foreign(6, muxPort=6).items() if k != "port"}, foreign(7, muxPort=7)]
    assert [row.held.port for row in read(with_rows(StoredClaims(), *rows)).foreign] == [5, 6, 7]


def test_allocation_only_state_is_read_and_becomes_claims() -> None:
    """R003-041: rows of lablets are theirs again, all others are kept."""
    ours = stored(claim(UID, {"a": 1, "b": 1}, "b"), claim(OTHER, {"a": 2}, pod="pod-2"))
    old = with_rows(ours, allocations=[foreign(9, source="auto")])
    del old["portClaims"]
    found = read(old)
    assert found.claims == ours.claims
    assert [row.held.port for row in found.foreign] == [9]
    assert {row["port"] for row in document_of(found)["portClaims"]} == {1, 2, 9}


def test_allocations_of_an_older_writer_are_kept_beside_claims() -> None:
    found = read(with_rows(stored(claim(UID, {"a": 1})), allocations=[foreign(9, source="auto")]))
    assert [row.held.port for row in found.foreign] == [9]
    assert found.claims[UID].ports == {"a": 1}


def test_an_allocation_whose_claim_was_lost_is_the_lablets_again() -> None:
    ours = stored(claim(UID, {"a": 1, "b": 2}))
    found = document_of(ours)
    del found["portClaims"][1]
    assert read(found) == ours


def test_two_pods_of_one_name_have_their_own_ports() -> None:
    """The first one's lab is being removed when the second comes, whatever their UIDs begin with."""
    ours = stored(claim(UID, {"a": 1}), claim(OTHER, {"a": 2}), claim(ALIKE, {"a": 3}))
    found = document_of(ours)
    assert [row["podUID"] for row in found["portClaims"]] == [UID, OTHER[:8], ALIKE]
    assert read(found) == ours


def test_ports_of_a_row_that_was_lost_stay_held() -> None:
    """Nobody knows whether its lab is there (C27); when its Pod has a row again, they give way to it."""
    found = document_of(stored(claim(UID, {"a": 1}), claim(OTHER, {"a": 2}, pod="pod-2")))
    del found["lablets"][0]
    left = read(found)
    assert list(left.claims) == [OTHER]
    assert [(row.uid, row.held.port) for row in left.foreign] == [(UID[:8], 1)]
    assert left.foreign_without(UID) == ()
    assert left.foreign_without(ALIKE.replace("1", "9")) == left.foreign


def test_ports_of_a_lablet_do_not_come_from_its_own_row() -> None:
    found = document_of(stored(claim(UID, {"a": 1})))
    found["lablets"][0]["ports"] = {"a": 5, "z": 6}
    assert read(found).claims[UID].ports == {"a": 1}


OURS = stored(claim(UID, {"a": 1}))
OUR_ROW = document_of(OURS)["portClaims"][0]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (with_rows(OURS, foreign(1)), "TCP port 1 is claimed by team/pod-1 (a) and by app/api (p1)"),
        (with_rows(OURS, OUR_ROW), "TCP port 1 is claimed by team/pod-1 (a) and by team/pod-1 (a)"),
        (with_rows(OURS, {**OUR_ROW, "port": 2, "muxPort": 2}), "team/pod-1 (a) has two ports"),
        (
            with_rows(OURS, allocations=[foreign(1)]),
            "TCP port 1 is allocated to app/api (p1), but it is claimed by team/pod-1 (a)",
        ),
        (
            with_rows(OURS, allocations=[{**OUR_ROW, "port": 2, "muxPort": 2}]),
            "TCP port 2 is allocated to team/pod-1 (a), but another row says otherwise",
        ),
        (with_rows(StoredClaims(), foreign(5, muxPort=6)), "app/api (p5) does not name its port"),
        (with_rows(StoredClaims(), {**foreign(5), "port": None}), "app/api (p5) does not name its port"),
        (with_rows(StoredClaims(), foreign(0)), "cannot be read"),
        (with_rows(StoredClaims(), foreign(65536)), "cannot be read"),
        (with_rows(StoredClaims(), {**foreign(5), "port": "5"}), "cannot be read"),
        (with_rows(StoredClaims(), {**foreign(5), "port": True}), "cannot be read"),
        (with_rows(StoredClaims(), foreign(5, protocol="ICMP")), "cannot be read"),
        (with_rows(StoredClaims(), {"port": 5}), "cannot be read"),
        (with_rows(StoredClaims(), allocations=[{"port": 5}]), "cannot be read"),
    ],
)
def test_rows_that_make_no_sense_are_refused(found: dict[str, Any], told: str) -> None:
    """R003-024, R003-040, R003-043."""
    message = refused(found)
    assert told in message
    assert message.startswith("ConfigMap w1-port-allocations")


def test_ten_thousand_lablets_with_a_port_fit() -> None:
    """C25: every port of the default range, with names and ids that do not repeat."""
    many = StoredClaims(builders.many_claims(10_001))
    data, binary = document.write(many, worker="w1", installation="inst")
    assert not data
    assert len(base64.b64decode(binary[portstore.GZIP_KEY])) <= portstore.OBJECT_BYTES_MAX < 2**20
    metadata = Metadata("w1-port-allocations", annotations={wellknown.ANNOTATION_INSTALLATION: "inst"})
    assert document.read(ConfigMap(metadata, {}, binary), worker="w1", installation="inst") == many
