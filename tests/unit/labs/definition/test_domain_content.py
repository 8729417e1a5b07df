"""Versions of a definition's content, and the RuntimeClass that charges for them."""

import base64
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec, parse_definition_spec
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import package as packages
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.resources import SHIPPED, Resources
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, RuntimeClass

TEXT = yaml.safe_dump(
    {
        "lab": {"version": "0.3.0", "title": "t"},
        "nodes": [{"label": "R1", "node_definition": "iosv", "tags": ["serial:5001"]}],
        "links": [],
    }
)
TOPOLOGY = parse(TEXT)


def spec(**fields: Any) -> LabletDefinitionSpec:
    return parse_definition_spec({"version": "1.0", "source": {"inline": TEXT}, **fields})


def built(
    text: str = TEXT, *, version: str = "1.0", sequence: int = 1, files: Mapping[str, str] | None = None
) -> ConfigMap:
    package = Package(version, text, files or {})
    body = contents.build(definition="netlab", uid="uid", namespace="ns", package=package, sequence=sequence)
    return msgspec.convert(body, ConfigMap)


def read(found: ConfigMap) -> Content:
    package = contents.package_of(found)
    return contents.read(found, package, packages.validate(package), spec(), SHIPPED)


def content(version: str, sequence: int, need: Resources = Resources()) -> Content:  # noqa: B008 (frozen)
    return Content("netlab", version, f"{version}-{sequence}", sequence, TOPOLOGY, need, f"netlab-{sequence}")


def test_a_version_comes_back_as_it_was_stored() -> None:
    """R000-071: instantiation reads stored content only."""
    found = built(sequence=7)
    assert found.immutable
    found_again = read(found)
    assert (found_again.definition, found_again.version, found_again.sequence) == ("netlab", "1.0", 7)
    assert found_again.topology == TOPOLOGY
    assert found_again.need == Resources(1000, 512 * 2**20, 1, 1)
    assert found_again.config_map == found.metadata.name
    assert found.metadata.name.endswith(found_again.digest[:16])
    assert found.metadata.owner_references[0].uid == "uid"


def test_another_text_or_version_is_another_object() -> None:
    made = {built().metadata.name, built(TEXT + "\n").metadata.name, built(version="1.1").metadata.name}
    assert len(made) == 3
    assert built().metadata.name == built().metadata.name


def test_files_of_a_package_come_back_and_are_part_of_the_digest() -> None:
    """R000-068."""
    files = {"grade.xml": "<grade/>", "pod.xml": "<pod>ü</pod>"}
    found = built(files=files)
    found_again = read(found)
    assert found_again.files == files
    assert (found_again.topology, found_again.version) == (TOPOLOGY, "1.0")
    others = [{}, {"grade.xml": "<grade/>"}, files | {"grade.xml": "<pod>ü</pod>"}, {"pod.xml": "<grade/>"}]
    assert found.metadata.name not in {built(files=other).metadata.name for other in others}
    assert len({built(files=other).metadata.name for other in others}) == len(others)


def test_content_stored_before_there_were_other_files_keeps_its_name() -> None:
    """Claims name it by its digest."""
    digest = hashlib.sha256(f"uid\x001.0\x00{TEXT}".encode()).hexdigest()
    assert read(built()).digest == digest
    assert list(built().binary_data) == ["cml.yaml.gz"]


def test_who_asked_for_a_version_and_when_is_kept_with_it() -> None:
    """R000-068."""
    request = refresh.write("jane", "2026-01-01T00:00:00Z", force=False)
    body = contents.build(
        definition="netlab",
        uid="uid",
        namespace="ns",
        package=Package("1.0", TEXT),
        sequence=1,
        request=request,
        stored_at="2026-01-01T00:00:01Z",
    )
    found_again = read(msgspec.convert(body, ConfigMap))
    assert (found_again.request, found_again.stored_by, found_again.stored_at) == (
        request,
        "jane",
        "2026-01-01T00:00:01Z",
    )


def test_a_version_is_built_again_from_what_it_was() -> None:
    found = built(files={"grade.xml": "<grade/>"})
    content = read(found)
    again = contents.rebuild(content, found, "uid")
    assert msgspec.convert(again, ConfigMap) == found
    found.metadata.annotations.clear()
    found.metadata.owner_references.clear()
    assert contents.rebuild(content, found, "uid") == again
    for damaged in (changed(found, "no gzip"), msgspec.structs.replace(found, binary_data={})):
        assert contents.rebuild(content, damaged, "uid") is None
    assert contents.rebuild(content, found, "another") is None, "the definition was created again"


def test_a_content_that_no_object_holds_is_refused_with_its_size() -> None:
    big = TEXT + "# " + base64.b64encode(Random(1).randbytes(900_000)).decode()
    with pytest.raises(InputError) as caught:
        built(big)
    assert caught.value.reason == "ContentTooLarge"
    assert "KiB" in caught.value.message
    with pytest.raises(InputError, match=r"ContentTooLarge: .*\(cml\.yaml 0, grade\.xml 11\d\d\), at most 1000 KiB"):
        built(files={"grade.xml": big})


def changed(found: ConfigMap, packed: bytes | str) -> ConfigMap:
    text = packed if isinstance(packed, str) else base64.b64encode(packed).decode()
    return msgspec.structs.replace(found, binary_data={contents.CONTENT_KEY: text})


@given(damage=st.binary(min_size=1, max_size=20), at=st.integers(0, 200))
def test_a_damaged_object_is_refused(damage: bytes, at: int) -> None:
    raw = gzip.compress(TEXT.encode(), mtime=0)
    broken = raw[:at] + damage + raw[at + len(damage) :]
    reason = ""
    try:
        assert read(changed(built(), broken)).topology == TOPOLOGY
    except InputError as error:
        reason = error.reason
    assert reason in {"", "ContentInvalid"}


@pytest.mark.parametrize(
    "packed", ["ü", "x", gzip.compress(b"\xff\xfe", mtime=0), gzip.compress(TEXT.encode(), mtime=0)[:-9]]
)
def test_what_is_no_content_is_refused(packed: str | bytes) -> None:
    with pytest.raises(InputError, match="ContentInvalid") as caught:
        read(changed(built(), packed))
    assert built().metadata.name in caught.value.message


@pytest.mark.parametrize(
    "key", [contents.ANNOTATION_VERSION, contents.ANNOTATION_SEQUENCE, contents.ANNOTATION_DEFINITION]
)
def test_a_missing_annotation_is_refused(key: str) -> None:
    found = built()
    del found.metadata.annotations[key]
    with pytest.raises(InputError, match="ContentInvalid"):
        read(found)


def test_the_newest_versions_are_kept_and_what_runs_is_not_dropped() -> None:
    """R000-082: what runs keeps its content."""
    every = [content(f"{n}.0", n) for n in range(1, 7)]
    kept, dropped = contents.split_kept(every, keep=3, used={"1.0-1"})
    assert [c.version for c in kept] == ["6.0", "5.0", "4.0"]
    assert [c.version for c in dropped] == ["3.0", "2.0"]


def test_the_newest_text_of_a_version_wins() -> None:
    kept, dropped = contents.split_kept([content("1.0", 1), content("1.0", 2), content("0.9", 0)], keep=3, used=())
    assert [(c.version, c.sequence) for c in kept] == [("1.0", 2), ("0.9", 0)]
    assert [(c.version, c.sequence) for c in dropped] == [("1.0", 1)]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 99)), max_size=8, unique_by=lambda t: t[1]),
    st.integers(1, 4),
    st.sets(st.integers(0, 7)),
)
def test_nothing_is_both_kept_and_dropped(versions: list[tuple[str, int]], keep: int, used: set[int]) -> None:
    every = [content(version, sequence) for version, sequence in versions]
    digests = {every[i].digest for i in used if i < len(every)}
    kept, dropped = contents.split_kept(every, keep=keep, used=digests)
    assert not {c.digest for c in kept} & {c.digest for c in dropped}
    assert not digests & {c.digest for c in dropped}
    assert len(kept) <= keep
    assert len({c.version for c in kept}) == len(kept)
    assert [c.sequence for c in kept] == sorted((c.sequence for c in kept), reverse=True)
    assert not every or kept[0].sequence == max(c.sequence for c in every)


def test_a_pod_is_charged_for_whatever_it_may_run() -> None:
    kept = [content("2", 2, Resources(1000, 5, 1, 9)), content("1", 1, Resources(4000, 3, 2, 0))]
    assert contents.charged(kept) == Resources(4000, 5, 2, 9)


def runtime_class(charge: Resources = Resources(1500, 2**30, 2, 0), **fields: Any) -> dict[str, Any]:  # noqa: B008 (it is frozen)
    return contents.runtime_class("netlab", "uid", "inst", spec(**fields), charge)


def test_the_runtime_class_is_the_scheduling_contract() -> None:
    """R004-020, R004-021, R004-044."""
    made = runtime_class(environment="prod")
    assert made["overhead"] == {"podFixed": {"cpu": "1500m", "memory": "1Gi", names.RESOURCE_LAB_NODES: "2"}}
    assert made["scheduling"]["nodeSelector"] == {"vkprovider.io/component": "vnode", "vkprovider.io/env": "prod"}
    ours, env, not_ready, unreachable = made["scheduling"]["tolerations"]
    assert ours == {"key": "vkprovider.io/virtual-node", "operator": "Equal", "value": "true"}
    assert env == {"key": "vkprovider.io/env", "operator": "Equal", "value": "prod"}
    assert {not_ready["key"], unreachable["key"]} == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
    assert "tolerationSeconds" not in not_ready, "a silent worker does not end learners' work"
    impatient = runtime_class(unreachableTolerationSeconds=600)["scheduling"]["tolerations"]
    assert [t.get("tolerationSeconds") for t in impatient] == [None, None, 600, 600]


def test_a_topology_that_not_every_cml_imports_goes_where_it_is_known() -> None:
    def of(number: str, version: str) -> Content:
        made = content(number, int(number))
        return replace(made, topology=replace(made.topology, version=version))

    assert contents.versions_of_few([of("1", "0.3.0"), of("2", "0.0.5")]) == []
    few = contents.versions_of_few([of("1", "0.3.0"), of("2", "0.3.1"), of("3", "0.3.1")])
    made = contents.runtime_class("netlab", "uid", "inst", spec(), Resources(), few)
    selector = made["scheduling"]["nodeSelector"]
    assert selector.pop("vkprovider.io/topology-0.3.1") == "true"
    assert selector == runtime_class()["scheduling"]["nodeSelector"]


def back(made: dict[str, Any]) -> RuntimeClass:
    """What the API server gives back: empty maps are dropped."""
    overhead = {k: v for k, v in made["overhead"].items() if v}
    return msgspec.convert({**made, "overhead": overhead}, RuntimeClass)


@given(
    st.builds(Resources, st.integers(0, 10**6), st.integers(0, 2**44), st.integers(0, 9000), st.integers(0, 9000)),
    st.sampled_from([None, 300]),
)
def test_a_runtime_class_that_is_right_is_not_written_again(charge: Resources, patience: int | None) -> None:
    made = runtime_class(charge, unreachableTolerationSeconds=patience)
    assert contents.same_runtime_class(back(made), made)


def test_a_runtime_class_that_differs_is_seen() -> None:
    made = runtime_class()
    for other in (
        runtime_class(Resources(1600, 2**30, 2, 0)),
        runtime_class(Resources()),
        runtime_class(environment="prod"),
        runtime_class(unreachableTolerationSeconds=300),
    ):
        assert not contents.same_runtime_class(back(other), made)


def test_a_lablet_that_needs_nothing_is_charged_nothing() -> None:
    made = runtime_class(Resources())
    assert made["overhead"] == {"podFixed": {}}
    assert contents.same_runtime_class(back(made), made)
