"""The claim store: what is written is read back, what is damaged is refused whole."""

import base64
import gzip
import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.labs import builders
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.claims.table import ClaimTable
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.ports import store as portstore
from vkprovider.platform.ports.allocator import PortBounds, RequestedPort
from vkprovider.platform.reasons import Trait, reason_of

texts = st.text(max_size=20)
NOW = 1_800_000_000
counts = st.integers(0, 2**40)
rows = st.builds(
    Claim,
    pod_uid=st.uuids().map(str),
    namespace=texts,
    pod=texts,
    definition=texts,
    definition_uid=texts,
    version=texts,
    digest=texts,
    lab_id=texts,
    started_at=counts,
    ready_at=counts,
    restarts=counts,
    recoveries=counts,
    resetting=st.booleans(),
    outcome=st.sampled_from(["", "Succeeded", "Failed"]),
    outcome_reason=texts,
    outcome_message=texts,
    last_reason=texts,
    last_message=texts,
    last_at=counts,
    uncounted=counts,
    afresh=counts,
    device_restarts=st.dictionaries(texts, counts, max_size=3),
    last_started_at=counts,
    last_devices=st.lists(texts, max_size=3).map(tuple),
    exposed=texts,
    rest_until=counts,
)


@st.composite
def stores(draw: st.DrawFn) -> dict[str, Claim]:
    """Draw rows of different Pods, which may bear one name, and give ports to them that nobody else has."""
    found = {row.pod_uid: row for row in draw(st.lists(rows, max_size=5))}
    free = draw(st.lists(st.integers(1, 65535), unique=True, max_size=10))
    for uid, row in found.items():
        slots = draw(st.lists(texts, unique=True, max_size=3)) if free else []
        ports = {slot: free.pop() for slot in slots if free}
        udp = tuple(slot for slot in ports if draw(st.booleans()))
        name = draw(st.sampled_from([row.pod, "same"]))
        found[uid] = msgspec.structs.replace(row, pod=name, ports=ports, udp=udp)
    return found


def config_map(
    data: dict[str, str] | None = None, binary: dict[str, str] | None = None, *, owner: str = "inst"
) -> ConfigMap:
    metadata = Metadata("w1-port-allocations", annotations={wellknown.ANNOTATION_INSTALLATION: owner})
    return ConfigMap(metadata, data or {}, binary or {})


def read(found: ConfigMap) -> dict[str, Claim]:
    return document.read(found, worker="w1", installation="inst").claims


def write(found: dict[str, Claim]) -> tuple[dict[str, str], dict[str, str]]:
    return document.write(StoredClaims(found), worker="w1", installation="inst")


def written(found: dict[str, Claim]) -> ConfigMap:
    return config_map(*write(found))


def refused(found: ConfigMap) -> str:
    with pytest.raises(InputError) as caught:
        read(found)
    assert caught.value.reason == "ClaimStoreInvalid"
    assert found.metadata.name in caught.value.message
    return caught.value.message


@given(stores())
def test_rows_come_back_as_they_were_written(found: dict[str, Claim]) -> None:
    """R000-067: claims survive a restart, and so do their ports."""
    assert read(written(found)) == found


def test_times_keep_the_keys_of_the_schema() -> None:
    """The attributes of a claim may be renamed; what is stored is read by other versions."""
    session = Session("eu-1", "k", "alice", ready_at=1, started_at=2, ended_at=3, archived_at=4)
    row = builders.claim(started_at=5, last_started_at=6, collected_at=7, stopped_at=8, closing_reason="SessionEnded")
    [stored] = json.loads(write({"u": msgspec.structs.replace(row, session=session)})[0][portstore.DATA_KEY])["lablets"]
    assert {key: stored[key] for key in ("started", "lastStarted", "collected", "stopped", "closing")} == {
        "started": 5,
        "lastStarted": 6,
        "collected": 7,
        "stopped": 8,
        "closing": "SessionEnded",
    }
    assert {key: stored["session"][key] for key in ("ready", "started", "ended", "archived")} == {
        "ready": 1,
        "started": 2,
        "ended": 3,
        "archived": 4,
    }


def test_many_rows_are_packed_and_come_back() -> None:
    """C25: the object stays within the API server's limit."""
    many = {f"uid-{i}": builders.claim(pod_uid=f"uid-{i}", lab_id=f"lab-{i}") for i in range(3000)}
    data, binary = write(many)
    assert not data
    assert len(base64.b64decode(binary[portstore.GZIP_KEY])) < 2**20
    assert read(config_map(data, binary)) == many


def test_packed_and_plain_say_the_same() -> None:
    few = {"u": builders.claim(pod_uid="u")}
    data, _ = write(few)
    packed = base64.b64encode(gzip.compress(data[portstore.DATA_KEY].encode())).decode()
    assert read(config_map({}, {portstore.GZIP_KEY: packed})) == read(config_map(data)) == few


def test_more_rows_than_an_object_holds_are_refused() -> None:
    dice = Random(1)
    many = {
        f"{i}": builders.claim(pod_uid=f"{i}", outcome_message=dice.randbytes(3000).hex(), lab_id=f"{i}")
        for i in range(400)
    }
    with pytest.raises(InputError) as caught:
        write(many)
    assert caught.value.reason == "ClaimStoreFull"
    assert "400 lablets of worker w1" in caught.value.message


@settings(max_examples=150)
@given(damage=st.binary(max_size=60), at=st.integers(0, 400), cut=st.booleans())
@example(damage=b"\x07", at=10, cut=True)
def test_a_damaged_packed_store_is_refused(damage: bytes, at: int, *, cut: bool) -> None:
    """C26: on an invalid store nothing goes on, and nothing crashes."""
    data, _ = write({"u": builders.claim(pod_uid="u")})
    raw = gzip.compress(data[portstore.DATA_KEY].encode(), mtime=0)
    broken = raw[:at] + damage + (b"" if cut else raw[at + len(damage) :])
    found = config_map({}, {portstore.GZIP_KEY: base64.b64encode(broken).decode()})
    try:
        assert read(found) == {"u": builders.claim(pod_uid="u")}
    except InputError:
        refused(found)


@given(st.text(max_size=60))
def test_no_text_in_the_store_ends_in_anything_but_a_refusal(text: str) -> None:
    refused(config_map({portstore.DATA_KEY: text}))
    refused(config_map({}, {portstore.GZIP_KEY: text}))


def document_of(**changes: Any) -> str:
    row = {k: v for k, v in msgspec.to_builtins(builders.claim()).items() if not isinstance(v, bool)}
    found = {"schemaVersion": 1, "worker": {"name": "w1", "installation": "inst"}, "lablets": [row], **changes}
    return json.dumps({k: v for k, v in found.items() if v is not ...})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (document_of(schemaVersion=2), "schema version 2"),
        (document_of(schemaVersion="1"), "cannot be read"),
        (document_of(worker=...), "cannot be read"),
        (document_of(worker={"name": "w2", "installation": "inst"}), "belongs to worker w2, not to w1"),
        (document_of(worker={"name": "w1", "installation": "other"}), "w1"),
        (document_of(lablets=None), "cannot be read"),
        (document_of(lablets=[{"podUID": "u"}]), "cannot be read"),
        (document_of(lablets=[{**json.loads(document_of())["lablets"][0], "restarts": "1"}]), "cannot be read"),
        (document_of(lablets=json.loads(document_of())["lablets"] * 2), "two rows for one pod"),
        (document_of(portClaims=[1]), "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"x":' * 100_000, "cannot be read"),
        (document_of(portClaims=...)[:-1] + ', "portClaims": [{"x": ' + "[" * 50_000, "cannot be read"),
    ],
)
def test_a_tampered_store_is_refused(text: str, told: str) -> None:
    assert told in refused(config_map({portstore.DATA_KEY: text}))


def test_a_well_formed_document_is_read() -> None:
    assert read(config_map({portstore.DATA_KEY: document_of()})) == {builders.POD_UID: builders.claim()}


def test_a_store_of_another_installation_is_refused() -> None:
    data, _ = write({})
    assert "belongs to installation other" in refused(config_map(data, owner="other"))
    assert "belongs to installation none" in refused(config_map(data, owner=""))


def test_a_store_without_content_is_refused() -> None:
    assert portstore.DATA_KEY in refused(config_map())


def test_a_bomb_is_not_unpacked_whole() -> None:
    bomb = gzip.compress(b" " * (portstore.DECODED_BYTES_MAX + 10), mtime=0)
    assert "cannot be read" in refused(config_map({}, {portstore.GZIP_KEY: base64.b64encode(bomb).decode()}))


def test_the_title_is_made_from_the_row() -> None:
    """R000-058, C31."""
    assert builders.claim().title == f"netlab-0a1b2c3d-{builders.POD_UID}"


def test_the_rest_after_a_write_grows_with_the_rows_up_to_a_bound() -> None:
    rests = [document.rest_s(rows) for rows in range(0, 10_001, 10)]
    assert rests == sorted(rests)
    assert document.rest_s(20) < 0.05  # a person may be watching
    assert 0.5 < document.rest_s(1000) < rests[-1] < 5.0


def test_a_stored_reason_is_the_member_again_and_one_of_a_later_version_stays() -> None:
    ours = builders.claim(last_reason=Happened.RESET, ports_fault=Fault(Trouble.PORTS_UNKNOWN, "m"))
    later = builders.claim(pod_uid="later", outcome_reason=reason_of("LabExploded"))
    claims = {ours.pod_uid: ours, later.pod_uid: later}
    data, binary = document.write(StoredClaims(claims, (), {}), worker="w1", installation="inst")
    found = read(config_map(data, binary))
    assert found == claims
    assert found[ours.pod_uid].last_reason is Happened.RESET
    fault = found[ours.pod_uid].ports_fault
    assert fault is not None
    assert fault.reason is Trouble.PORTS_UNKNOWN
    word = found["later"].outcome_reason
    assert (word, word.traits) == ("LabExploded", Trait(0))
    assert document.write(StoredClaims(found, (), {}), worker="w1", installation="inst") == (data, binary)


def test_ports_that_labs_without_a_claim_open_are_not_given_but_kept_by_the_pod_that_has_them() -> None:
    table = ClaimTable(StoredClaims())
    wanted, span = [RequestedPort("a"), RequestedPort("b", "UDP")], PortBounds(2000, 2003)
    avoid = {("TCP", 2000), ("TCP", 2001), ("UDP", 2000)}
    given = table.allocate(wanted, span, per_instance_max=9, pod_uid="p", now_unix=NOW, rest_s=60, avoid=avoid)
    assert given == {"a": 2002, "b": 2001}
    table.put(builders.claim(pod_uid="p", ports={"a": 2000, "b": 2000}, udp=("b",)))
    before = dict(table.ports.holders)
    assert table.allocate(wanted, span, per_instance_max=9, pod_uid="p", now_unix=NOW, rest_s=60, avoid=avoid) == {
        "a": 2000,
        "b": 2000,
    }
    other = table.allocate(wanted, span, per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60, avoid=avoid)
    assert other == {"a": 2002, "b": 2001}
    assert dict(table.ports.holders) == before
    with pytest.raises(InputError, match="PortRangeFull"):
        table.allocate(
            wanted[:1], PortBounds(2000, 2001), per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60, avoid=avoid
        )


def exposed_table(*, port: int = 2000) -> ClaimTable:
    """The table of a worker, one of whose lablets has lent its port to a mux and ended."""
    table = ClaimTable(StoredClaims())
    table.put(builders.claim(pod_uid="p", ports={"a": port}, exposed="labs").withdrawn(NOW + 60))
    table.remove("p")
    return table


def test_a_port_that_was_lent_to_a_mux_rests_before_another_lablet_gets_it() -> None:
    table, span = exposed_table(), PortBounds(2000, 2000)
    assert not table.ports.holders
    with pytest.raises(InputError, match=r"PortsResting: 1 port that other lablets .* until 2027-01-15T08:01:00Z"):
        table.allocate([RequestedPort("a")], span, per_instance_max=9, pod_uid="q", now_unix=NOW + 59, rest_s=60)
    assert table.allocate(
        [RequestedPort("a")], span, per_instance_max=9, pod_uid="q", now_unix=NOW + 60, rest_s=60
    ) == {"a": 2000}
    udp = table.allocate([RequestedPort("a", "UDP")], span, per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60)
    assert udp == {"a": 2000}, "TCP and UDP of one number are two ports"
    wider = table.allocate(
        [RequestedPort("a")], PortBounds(2000, 2001), per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60
    )
    assert wider == {"a": 2001}


def test_a_port_rests_until_it_is_certain_that_its_time_is_over() -> None:
    table, span = exposed_table(), PortBounds(2000, 2000)
    with pytest.raises(InputError, match="PortsResting"):
        table.allocate(
            [RequestedPort("a")], span, per_instance_max=9, pod_uid="q", now_unix=NOW + 9000, rest_s=60, sure=False
        )


def test_a_range_that_is_too_small_anyway_is_said_to_be() -> None:
    two = [RequestedPort("a"), RequestedPort("b")]
    with pytest.raises(InputError, match="PortRangeFull"):
        exposed_table().allocate(two, PortBounds(2000, 2000), per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60)


def test_the_next_replica_knows_which_ports_rest() -> None:
    written_ = config_map(*document.write(exposed_table().stored, worker="w1", installation="inst"))
    table = ClaimTable(document.read(written_, worker="w1", installation="inst"))
    with pytest.raises(InputError, match="PortsResting"):
        table.allocate(
            [RequestedPort("a")], PortBounds(2000, 2000), per_instance_max=9, pod_uid="q", now_unix=NOW, rest_s=60
        )
    table.forget_rested(NOW + 59)
    assert table.stored.resting
    table.forget_rested(NOW + 60)
    assert not table.stored.resting
    assert "resting" not in document.write(table.stored, worker="w1", installation="inst")[0][portstore.DATA_KEY]


def test_a_clock_that_is_set_back_does_not_let_a_port_rest_for_long() -> None:
    table, span = exposed_table(), PortBounds(2000, 2000)
    for now in (NOW - 86400, NOW - 11):
        given = table.allocate([RequestedPort("a")], span, per_instance_max=9, pod_uid="q", now_unix=now, rest_s=60)
        assert given == {"a": 2000}
    for now in (NOW, NOW - 2):  # the clock of another replica may be a little behind
        with pytest.raises(InputError, match="PortsResting"):
            table.allocate([RequestedPort("a")], span, per_instance_max=9, pod_uid="q", now_unix=now, rest_s=60)
    lent_again = builders.claim(rest_until=NOW + 86400).withdrawn(NOW + 60)
    assert lent_again.rest_until == NOW + 60


def test_ports_that_a_lablet_exchanges_rest_and_those_that_it_keeps_do_not() -> None:
    table = ClaimTable(StoredClaims())
    before = builders.claim(pod_uid="p", ports={"a": 2000, "b": 2001}).withdrawn(NOW + 60)
    table.put(before)
    table.put(before.with_ports({"a": 2000, "b": 2002}, ()))
    assert [(rest.protocol, rest.port, rest.until) for rest in table.stored.resting] == [("TCP", 2001, NOW + 60)]


def test_ports_that_were_lent_to_no_mux_do_not_rest() -> None:
    table = ClaimTable(StoredClaims())
    table.put(builders.claim(pod_uid="p", ports={"a": 2000}))
    table.remove("p")
    assert table.stored.resting == ()
