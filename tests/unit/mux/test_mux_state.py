"""The store of a mux: the document of the schema, with keys of our own that its readers do not see."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.mux.pure import state as muxstate
from vkprovider.mux.pure.facts import Mux, MuxRef, Owner
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.state import MuxState, Resting
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.ports.rows import AUTO, STATIC, PortRow

PREFIX = "svc-mux.nowake.ai"
MUX = MuxRef("svc-mux", "mux")
API = PortRow("app", "api", "http", "TCP", 80, 20000, AUTO)
P2P = PortRow("app", "p2p", "p2p", "TCP", 30303, 30303, STATIC)
LABLET = PortRow("class-1", "lab-0", "PC_serial", "TCP", 10011, 20001, AUTO, learner="ann")
OLD = Resting(protocol="TCP", port=20002, freed_at=1000, namespace="app", service="old", port_name="http")
SEED: dict[str, Any] = {
    "schemaVersion": 1,
    "mux": {"namespace": "svc-mux", "name": "mux"},
    "portClaims": [
        {"namespace": "app", "service": "api", "portName": "http", "protocol": "TCP", "channelPort": 80}
        | {"muxPort": 20000, "port": 20000, "source": "auto"},
        {"namespace": "app", "service": "p2p", "portName": "p2p", "protocol": "TCP", "channelPort": 30303}
        | {"muxPort": 30303, "port": 30303, "source": "static"},
    ],
    "allocations": [
        {"namespace": "app", "service": "api", "portName": "http", "protocol": "TCP", "channelPort": 80}
        | {"muxPort": 20000, "port": 20000, "source": "auto"}
    ],
}


def stored(text: str, owner: str | None = "svc-mux/mux") -> ConfigMap:
    annotations = {} if owner is None else {f"{PREFIX}/mux": owner}
    return ConfigMap(Metadata("mux-port-allocations", annotations=annotations), {"allocations.json": text})


def read(document: dict[str, Any], owner: str | None = "svc-mux/mux") -> MuxState:
    return muxstate.read(stored(json.dumps(document), owner), MUX, PREFIX)


def text_of(state: MuxState) -> str:
    data, binary = muxstate.write(state, MUX)
    assert binary == {}
    return data["allocations.json"]


def refusal(document: dict[str, Any], owner: str | None = "svc-mux/mux") -> str:
    with pytest.raises(InputError) as caught:
        read(document, owner)
    assert caught.value.reason is MuxReason.PORT_ALLOCATION_STORE_INVALID
    return caught.value.message


def test_document_is_that_of_the_schema() -> None:
    """R003-035, R003-036, R003-037."""
    assert json.loads(text_of(MuxState((API, P2P)))) == SEED
    state = read(SEED)
    assert state == MuxState((API, P2P))
    assert state.port_owners() == {("TCP", 20000): Owner("app", "api"), ("TCP", 30303): Owner("app", "p2p")}


def test_what_is_ours_stands_beside_the_schema() -> None:
    """A reader that knows neither `resting` nor `learner` finds what it knows."""
    document = json.loads(text_of(MuxState((API, LABLET), (OLD,))))
    assert document.pop("resting") == [
        {"protocol": "TCP", "port": 20002, "freedAt": 1000, "namespace": "app", "service": "old", "portName": "http"}
    ]
    assert document["portClaims"][1].pop("learner") == "ann"
    assert document["portClaims"] == document["allocations"]
    assert document.keys() == SEED.keys()


def test_a_lablet_is_no_service_of_its_name() -> None:
    anonymous = LABLET._replace(learner="", mux_port=20003)
    service = LABLET._replace(learner=None, mux_port=20004)
    state = MuxState((LABLET, anonymous, service))
    assert muxstate.read(stored(text_of(state)), MUX, PREFIX) == state
    assert len(set(state.port_owners().values())) == 3


def test_allocations_alone_are_migrated() -> None:
    """R003-041."""
    old = {key: value for key, value in SEED.items() if key != "portClaims"}
    state = read(old)
    assert state.claims == (API,)
    assert json.loads(text_of(state))["portClaims"] == SEED["portClaims"][:1]


def test_fields_of_a_later_writer_stay() -> None:
    later = {**SEED, "later": {"is": [1.5, "x"]}}
    assert json.loads(text_of(read(later))) == later


@pytest.mark.parametrize(
    ("document", "owner", "told"),
    [
        (SEED, "svc-mux/other", "belongs to mux svc-mux/other, not to svc-mux/mux"),
        (SEED, None, "belongs to no mux"),
        ({**SEED, "mux": {"namespace": "svc-mux", "name": "b"}}, "svc-mux/mux", "holds the ports of mux svc-mux/b"),
    ],
)
def test_store_of_another_mux_is_refused(document: dict[str, Any], owner: str | None, told: str) -> None:
    """R003-039: in its annotation or in the document."""
    assert told in refusal(document, owner)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schemaVersion": 2}, "schema version 2"),
        ({"portClaims": 7}, "cannot be read"),
        ({"mux": None}, "cannot be read"),
        ({"resting": [{"port": 1}]}, "cannot be read"),
        ({"portClaims": [*SEED["portClaims"], {**SEED["portClaims"][1], "service": "x"}]}, "is claimed by app/p2p"),
        (
            {"portClaims": [*SEED["portClaims"], {**SEED["portClaims"][1], "port": 7, "muxPort": 7}]},
            "app/p2p (p2p) has two ports; remove the wrong row",
        ),
    ],
)
def test_damaged_store_is_refused(change: dict[str, Any], told: str) -> None:
    """R003-040."""
    assert told in refusal({**SEED, **change})


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schemaVersion": 1}', "[" * 5000])
def test_what_is_no_document_is_refused(text: str) -> None:
    """R003-040."""
    with pytest.raises(InputError, match="PortAllocationStoreInvalid: ConfigMap mux-port-allocations cannot be read"):
        muxstate.read(stored(text), MUX, PREFIX)


def test_a_claim_beats_the_rest_of_its_number() -> None:
    """A writer that does not know `resting` may have given the number."""
    mine = Resting(protocol="TCP", port=20000, freed_at=9, namespace="a", service="b", port_name="c")
    assert muxstate.read(stored(text_of(MuxState((API,), (mine, OLD)))), MUX, PREFIX).resting == (OLD,)


def test_names_of_the_store() -> None:
    """R003-034, R003-038."""
    assert muxstate.store_name(Mux(MUX), PREFIX) == "mux-port-allocations"
    assert muxstate.store_name(Mux(MUX, {f"{PREFIX}/allocation-configmap": "custom-name"}), PREFIX) == "custom-name"
    for chars, name in (
        (46, f"{'m' * 46}-port-allocations"),
        (47, f"{'m' * 47}-fcbd2d2b"),
        (63, f"{'m' * 54}-6e80a1cc"),
    ):
        assert muxstate.store_name(Mux(MuxRef("edge", "m" * chars)), PREFIX) == name
    assert muxstate.store_annotations(MUX, PREFIX) == {f"{PREFIX}/mux": "svc-mux/mux"}
    assert muxstate.store_labels() == {
        "app.kubernetes.io/name": "svc-lb-mux",
        "app.kubernetes.io/component": "mux-state",
    }


NAMES = st.from_regex(r"[a-z0-9]{1,30}", fullmatch=True)
ROW = st.builds(
    PortRow,
    namespace=NAMES,
    service=NAMES,
    port_name=NAMES,
    protocol=st.sampled_from(["TCP", "UDP", "SCTP"]),
    channel_port=st.integers(1, 65535),
    mux_port=st.integers(1, 65535),
    source=st.sampled_from([AUTO, STATIC]),
    learner=st.none() | st.text(max_size=20),
    pod_uid=st.just(""),
)


@given(
    st.lists(ROW, max_size=9, unique_by=(lambda row: row.key, lambda row: row.identity)),
    st.lists(ROW, max_size=9, unique_by=lambda row: row.key),
)
def test_state_comes_back_and_its_size_is_known(claims: list[PortRow], gone: list[PortRow]) -> None:
    """The bound is computed from rows, so what is written is never larger."""
    keys = {row.key for row in claims}
    resting = muxstate.by_age(muxstate.freed(row, 1769860800.5) for row in gone if row.key not in keys)
    state = MuxState(tuple(claims), resting)
    text = text_of(state)
    assert muxstate.read(stored(text), MUX, PREFIX) == state
    computed = sum(map(muxstate.row_bytes, claims)) + sum(map(muxstate.resting_bytes, resting))
    written, key = len(text.encode()) - len(text_of(MuxState())), len('"resting":[],')
    assert computed - 50 * len(claims) - 50 * len(resting) <= written <= computed + key
