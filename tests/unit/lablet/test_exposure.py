"""The slice of an exposed lablet, and the answer of its mux: anything else than was written is a fault."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import exposure, names
from vkprovider.lablet.exposure import Access, Exposure
from vkprovider.lablet.reasons.happened import ExposureReason
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import EndpointSlice, Metadata

TEXT = st.text(min_size=1, max_size=20)
ADDRESS = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
SLOTS = st.lists(
    st.tuples(TEXT, st.sampled_from(["TCP", "UDP"]), st.integers(1, 65535)),
    min_size=1,
    max_size=8,
    unique_by=lambda slot: slot[0],
)
ACCESS = st.builds(
    Access,
    st.sampled_from([exposure.PENDING, exposure.LIVE, exposure.REFUSED]),
    address=TEXT,
    port=st.integers(0, 65535),
    why=st.text(alphabet="abc :", max_size=40).map(lambda text: " ".join(text.split())),
)


@st.composite
def exposures(draw: st.DrawFn) -> Exposure:
    ports = exposure.ports_of(draw(SLOTS))
    return Exposure(draw(TEXT), "labs.edge", draw(TEXT), draw(TEXT), draw(TEXT), draw(st.text()), draw(ADDRESS), ports)


def found(body: dict[str, Any]) -> EndpointSlice:
    return msgspec.json.decode(msgspec.json.encode(body), type=EndpointSlice)


@given(exposures())
def test_the_mux_reads_what_the_provider_wrote(written: Exposure) -> None:
    body = exposure.encode(written, "vkprovider", worker_uid="uid-w")
    assert exposure.decode(found(body)) == written
    assert names.ANNOTATION_MUX_ANSWER not in body["metadata"]["annotations"]


@given(SLOTS)
def test_every_slot_has_a_name_of_its_own_that_a_slice_may_have(slots: list[tuple[str, str, int]]) -> None:
    ports = exposure.ports_of(slots)
    assert len({port.name for port in ports}) == len(slots)
    assert all(re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", port.name) for port in ports)
    assert ports == exposure.ports_of(list(reversed(slots)))


ONE = Exposure("w", "labs", "a", "p", "u", "ann", "198.51.100.1", exposure.ports_of([("PC_serial", "TCP", 10011)]))


def test_no_kube_proxy_and_no_garbage_collector_takes_the_slice_for_its_own() -> None:
    meta = exposure.encode(ONE, "vkprovider", worker_uid="uid-w")["metadata"]
    assert meta["labels"] == {
        "endpointslice.kubernetes.io/managed-by": "vkprovider",
        "service.kubernetes.io/service-proxy-name": "vkprovider-mux",
        "app.kubernetes.io/managed-by": "vkprovider",
        "vkprovider.io/component": "exposed-lablet",
        "vkprovider.io/worker": "w",
    }
    assert [(owner["kind"], owner["uid"]) for owner in meta["ownerReferences"]] == [("CMLWorker", "uid-w")]
    assert exposure.selector("w") == "vkprovider.io/component=exposed-lablet,vkprovider.io/worker=w"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metadata": {"name": "lablet-u", "annotations": {}}}, "cannot be read"),
        ({"metadata": {"name": "lablet-u", "annotations": {names.ANNOTATION_EXPOSED: "[" * 5000}}}, "cannot be read"),
        ({"metadata": {"name": "lablet-v"}}, "it names the pod of lablet-u"),
        ({"endpoints": None}, "it has 0 addresses"),
        ({"endpoints": [{"addresses": ["198.51.100.1", "198.51.100.2"]}]}, "it has 2 addresses"),
        ({"endpoints": [{"addresses": ["worker.example.com"]}]}, "is no IP address"),
        ({"ports": None}, "not those of its slots"),
        ({"ports": [{"name": "pc-serial"}]}, "has no number"),
        ({"ports": [{"name": "other", "port": 1}]}, "that of no slot"),
        ({"ports": [{"name": "pc-serial", "port": 1}, {"name": "pc-serial", "port": 2}]}, "not those of its slots"),
    ],
)
def test_a_slice_that_says_anything_else_is_a_clear_fault(change: dict[str, Any], told: str) -> None:
    body = exposure.encode(ONE, "vkprovider", worker_uid="uid-w")
    body |= {"metadata": body["metadata"] | change.pop("metadata", {})} | change
    with pytest.raises(InputError) as refused:
        exposure.decode(found(body))
    assert refused.value.reason is ExposureReason.EXPOSURE_INVALID
    assert told in refused.value.message
    assert body["metadata"]["name"] in refused.value.message


@given(st.dictionaries(TEXT, ACCESS, max_size=5))
def test_the_provider_reads_what_the_mux_answered(answer: dict[str, Access]) -> None:
    test, add = exposure.answer_patch("uid", answer)
    assert test == {"op": "test", "path": "/metadata/uid", "value": "uid"}
    assert add["path"] == "/metadata/annotations/vkprovider.io~1mux-answer"
    meta = Metadata("lablet-u", annotations={names.ANNOTATION_MUX_ANSWER: add["value"]})
    assert exposure.decode_answer(meta) == answer


def test_no_answer_is_none_yet_and_a_damaged_one_a_fault() -> None:
    assert exposure.decode_answer(Metadata("lablet-u")) == {}
    with pytest.raises(InputError, match="mux-answer cannot be read"):
        exposure.decode_answer(Metadata("lablet-u", annotations={names.ANNOTATION_MUX_ANSWER: '{"a":{"state":"x"}}'}))


def test_a_long_refusal_is_cut() -> None:
    assert len(exposure.encode_answer({"a": Access(exposure.REFUSED, why="x" * 5000)})) < 300
