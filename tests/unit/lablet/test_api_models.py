"""Custom resources: what is wrong is refused with the field's name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.platform.errors import InputError

WORKER: dict[str, Any] = {"url": "https://cml-1.example.com"}
DEFINITION: dict[str, Any] = {"version": "1.0", "source": {"inline": "lab: {}"}}

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=5,
)


def test_a_whole_worker() -> None:
    spec = parse_worker_spec(
        WORKER
        | {
            "address": "cml.example.com",
            "environment": "prod",
            "credentialsSecretName": "s",
            "portRange": {"start": 2000, "end": 7999},
            "capacity": {"cpu": 64, "memory": "256Gi", "labs": 10, "labNodes": 300},
            "stats": "On",
            "nodeLabels": {"topology.kubernetes.io/zone": "z1"},
        }
    )
    assert spec.port_range is not None
    assert spec.port_range.size == 6000, "both ends included (C22)"
    assert (spec.capacity.cpu, spec.capacity.memory, spec.capacity.lab_nodes) == ("64", "256Gi", 300)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": ...}, "spec.url"),
        ({"url": 5}, "spec.url"),
        ({"url": ""}, "spec.url"),
        ({"tunnel": "carrier-pigeon"}, "spec.tunnel"),
        ({"environment": "a b"}, "spec.environment"),
        ({"environment": "-a"}, "spec.environment"),
        ({"environment": ""}, "spec.environment"),
        ({"environment": "x" * 64}, "spec.environment"),
        ({"stats": "on"}, "spec.stats"),
        ({"capacity": {"cpu": "many"}}, "spec.capacity.cpu"),
        ({"capacity": {"memory": "1e999999999"}}, "spec.capacity.memory"),
        ({"capacity": {"cpu": ["4"]}}, "spec.capacity.cpu"),
        ({"capacity": {"labs": -1}}, "spec.capacity.labs"),
        ({"capacity": {"labNodes": "x"}}, "spec.capacity.labNodes"),
        ({"portRange": {"start": 1}}, "spec.portRange.end"),
        ({"portRange": {"start": 0, "end": 70000}}, "spec.portRange.start"),
        ({"tls": {"insecure": True}}, "spec.tls.insecure"),
        ({"nodeLabels": {"a": 1}}, "spec.nodeLabels.a"),
        ({"colour": "red"}, "spec.colour"),
    ],
)
def test_a_wrong_worker_is_refused_with_the_field(change: dict[str, Any], field: str) -> None:
    spec = {k: v for k, v in (WORKER | change).items() if v is not ...}
    with pytest.raises(InputError) as caught:
        parse_worker_spec(spec)
    assert caught.value.reason == "SpecInvalid"
    assert f"{field}:" in caught.value.message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": ...}, "spec"),
        ({"version": 1.0}, "spec.version"),
        ({"version": "a:b"}, "spec.version"),
        ({"version": ""}, "spec.version"),
        ({"source": ...}, "spec.source"),
        ({"source": {"configMap": {"namespace": "a"}}}, "spec.source.configMap.name"),
        ({"source": {}}, "spec.source"),
        ({"source": {"inline": "a", "objectStore": {"key": "a.zip"}}}, "spec.source"),
        ({"source": {"objectStore": {}}}, "spec"),
        ({"source": {"objectStore": {}}, "formQualifiedName": "a/../b"}, "spec"),
        ({"source": {"objectStore": {"key": "a", "bucket": "A/b"}}}, "spec.source.objectStore.bucket"),
        ({"resources": {"memory": "8 GB"}}, "spec.resources.memory"),
        ({"resources": {"ports": -1}}, "spec.resources.ports"),
        ({"keepVersions": 0}, "spec.keepVersions"),
        ({"unreachableTolerationSeconds": 10}, "spec.unreachableTolerationSeconds"),
        ({"lds": {"enabled": "perhaps"}}, "spec.lds.enabled"),
    ],
)
def test_a_wrong_definition_is_refused_with_the_field(change: dict[str, Any], field: str) -> None:
    spec = {k: v for k, v in (DEFINITION | change).items() if v is not ...}
    with pytest.raises(InputError) as caught:
        parse_definition_spec(spec)
    assert caught.value.reason == "SpecInvalid"
    assert f"{field}:" in caught.value.message


def test_every_wrong_field_is_named() -> None:
    with pytest.raises(InputError) as caught:
        parse_worker_spec({"tunnel": "x", "stats": "y"})
    assert all(f"spec.{field}:" in caught.value.message for field in ("url", "tunnel", "stats"))


@pytest.mark.parametrize("spec", [None, [], "text", 5])
def test_a_spec_that_is_no_mapping_is_refused(spec: object) -> None:
    for parse in (parse_worker_spec, parse_definition_spec):
        with pytest.raises(InputError, match="SpecInvalid: spec: "):
            parse(spec)


@given(st.dictionaries(st.sampled_from([*WORKER, *DEFINITION, "capacity", "tls", "portRange", "lds", "x"]), json))
def test_no_json_ends_in_anything_but_a_refusal(spec: dict[str, Any]) -> None:
    for parse in (parse_worker_spec, parse_definition_spec):
        reason = "SpecInvalid"
        try:
            parse(spec)
        except InputError as error:
            reason = error.reason
        assert reason == "SpecInvalid"


def test_a_password_in_the_wrong_place_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        parse_worker_spec({"url": "https://u", "tls": {"caBundle": ["hunter2"]}, "password": "hunter2"})
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("key", ["netlab.zip", "Exam CCNP v1.1/LAB 1.zip", ".a/..b/...", "ü.zip"])
def test_key_of_a_package_is_a_path_downwards(key: str) -> None:
    spec = parse_definition_spec({"source": {"objectStore": {"key": key}}})
    assert (spec.package_key, spec.version) == (key, None)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", ".", "a/..", "../a", "a/./b", "a\\b", "a\nb", "x" * 1025])
def test_key_of_a_package_leads_nowhere_else(key: str) -> None:
    with pytest.raises(InputError, match=r"spec\.source\.objectStore\.key: "):
        parse_definition_spec({"source": {"objectStore": {"key": key}}})


def test_form_names_the_package_where_no_key_does() -> None:
    """R000-073."""
    spec = parse_definition_spec({"source": {"objectStore": {}}, "formQualifiedName": "Exam CCNP v1.1 LAB 1"})
    assert spec.package_key == "Exam CCNP v1.1 LAB 1.zip"
