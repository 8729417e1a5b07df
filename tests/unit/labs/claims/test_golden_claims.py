"""Claims that an older program stored: read as they were meant, and written back byte by byte."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.labs import builders
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform import wellknown
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.packing import pack, unpack
from vkprovider.platform.ports import store as portstore
from vkprovider.platform.reasons import reason_of

GOLDEN = (Path(__file__).parent / "golden" / "claims.json").read_text(encoding="utf-8")
"""Made by the program before its store of ports had a package of its own. Never write it again."""
FIRST = Claim(
    pod_uid="0a1b2c3d-0000-0000-0000-000000000001",
    namespace="class-a",
    pod="netlab-0",
    definition="netlab",
    definition_uid="d-1",
    version="1.0.0",
    digest="ab" * 32,
    lab_id="6f2c",
    started_at=1_700_000_000,
    ready_at=1_700_000_100,
    restarts=2,
    afresh=1,
    device_restarts={"r1": 1},
    ports={"r1_serial": 10011, "r1_snmp": 10011},
    udp=("r1_snmp",),
    learner="ada",
    noted="ada k1 default",
    session=Session("default", "k1", "ada", id="s-1"),
    sessions=1,
)
SECOND = Claim(
    pod_uid="0a1b2c3d-0000-0000-0000-000000000002",
    namespace="class-a",
    pod="netlab-0",
    definition="netlab",
    definition_uid="d-1",
    version="1.0.0",
    digest="ab" * 32,
    ports={"r1_serial": 10012},
)
THIRD = Claim(
    pod_uid="ffffffff-0000-0000-0000-000000000003",
    namespace="klasse-ü",
    pod='a"b',
    definition="vpn",
    definition_uid="d-2",
    version="2",
    digest="cd" * 32,
    outcome="Failed",
    outcome_reason=reason_of("LabLost"),
    outcome_message="gone",
    ports={"vpn": 10013},
    udp=("vpn",),
)
FOURTH = Claim(
    pod_uid="eeeeeeee-0000-0000-0000-000000000004",
    namespace="class-a",
    pod="plain",
    definition="plain",
    definition_uid="d-3",
    version="2",
    digest="ef" * 32,
)
CLAIMS = {claim.pod_uid: claim for claim in (FIRST, SECOND, THIRD, FOURTH)}
FOREIGN = [
    ("app/p2p", "", ("p2p", "TCP", 30303), False),
    ("app/api", "", ("http", "TCP", 20000), True),
    ("app/sig", "", ("m3ua", "SCTP", 2905), False),
    ("gone/was-a-pod", "99999999", ("r1_serial", "TCP", 10090), True),
]


def read(data: dict[str, str], binary: dict[str, str] | None = None) -> StoredClaims:
    metadata = Metadata("w1-port-allocations", annotations={wellknown.ANNOTATION_INSTALLATION: "uid-1"})
    return document.read(ConfigMap(metadata, data, binary or {}), worker="w1", installation="uid-1")


def write(stored: StoredClaims) -> tuple[dict[str, str], dict[str, str]]:
    return document.write(stored, worker="w1", installation="uid-1")


@pytest.mark.parametrize(
    ("data", "binary"),
    [({"allocations.json": GOLDEN}, {}), ({}, {"allocations.json.gz": pack(GOLDEN.encode())})],
    ids=["plain", "packed"],
)
def test_stored_claims_are_read(data: dict[str, str], binary: dict[str, str]) -> None:
    stored = read(data, binary)
    assert stored.claims == CLAIMS
    assert [(row.owner, row.uid, tuple(row.held), row.auto) for row in stored.foreign] == FOREIGN
    assert {name: bytes(raw) for name, raw in stored.fields.items()} == {
        "futureField": b'{"of": ["a", "later"], "writer": 1.5}'
    }


def test_unchanged_claims_are_the_same_bytes() -> None:
    assert write(read({"allocations.json": GOLDEN})) == ({"allocations.json": GOLDEN}, {})


def test_unchanged_packed_claims_are_the_same_text() -> None:
    """As packed as they are: how much another release of zlib makes of it, is its own affair."""
    found: dict[str, Any] = json.loads(GOLDEN)
    filler = [msgspec.to_builtins(builders.claim(pod_uid=f"{n:08}-x", pod=f"pod-{n}")) for n in range(2000)]
    found["lablets"] += filler
    text = msgspec.json.encode(found)
    assert len(text) > portstore.PLAIN_BYTES_MAX
    first = write(read({"allocations.json": text.decode()}))
    again = write(read(*first))
    assert first == again
    [(key, value)] = first[1].items()
    assert (first[0], key) == ({}, "allocations.json.gz")
    assert unpack(value, len(text) * 2) == text
