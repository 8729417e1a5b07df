"""What a Pod asks for, and why it is refused."""

import dataclasses
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import pod
from vkprovider.lablet import inputs, names
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import intent
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import CustomResource, Metadata

TOPOLOGY = parse(
    yaml.safe_dump(
        {
            "lab": {"version": "0.3.0"},
            "nodes": [{"label": label, "node_definition": "iosv"} for label in ("R1", "r 2")],
            "links": [],
        }
    )
)
SMALL = Resources(1000, 2**30, 2, 0)
LARGE = Resources(2000, 2**31, 3, 4)
CHARGED: dict[str, Any] = {"overhead": LARGE.quantities()}


def content(version: str, need: Resources = SMALL, sequence: int = 1) -> Content:
    return Content(
        definition="netlab",
        version=version,
        digest=version,
        sequence=sequence,
        topology=TOPOLOGY,
        need=need,
        config_map=f"netlab-{version}",
    )


def definition(*kept: Content, fault: Fault | None = None, environment: str = "default") -> dict[str, Definition]:
    return {"netlab": Definition("netlab", "uid", environment, kept, fault)}


NETLAB = definition(content("2.0", LARGE), content("1.0"))


def resolve(known: dict[str, Definition] = NETLAB, *, environment: str = "default", **fields: Any) -> Content:
    return intent.resolve(pod(**{**CHARGED, **fields}), known, environment=environment)


def refused(known: dict[str, Definition] = NETLAB, **fields: Any) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        resolve(known, **fields)
    return caught.value.reason, caught.value.message


@pytest.mark.parametrize(
    ("image", "version"), [("netlab:1.0", "1.0"), ("netlab:2.0", "2.0"), ("netlab", "2.0"), ("netlab:latest", "2.0")]
)
def test_an_image_names_a_version(image: str, version: str) -> None:
    """R004-018, R004-019."""
    assert resolve(containers=(("lab", image),)).version == version


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("netlab", ("netlab", "")),
        ("netlab:latest", ("netlab", "")),
        ("netlab:1.2.0", ("netlab", "1.2.0")),
        ("registry.example.com/netlab", ("registry.example.com/netlab", "")),
        ("", ("", "")),
    ],
)
def test_an_image_is_split(image: str, parts: tuple[str, str]) -> None:
    assert inputs.tag_of(image) == parts


@pytest.mark.parametrize("name", ["", "gvisor"])
def test_what_is_no_lablet(name: str) -> None:
    """C08: a stray pod is refused with a reason and a remedy."""
    reason, message = refused(runtimeClassName=name)
    assert reason == "NotALablet"
    assert "runtimeClassName" in message
    assert name in message


def test_init_containers_are_refused() -> None:
    assert refused(initContainers=[{"name": "istio-init", "image": "istio"}])[0] == "NotALablet"


@pytest.mark.parametrize("image", ["nginx", "nginx:1.0", "netlab2:1.0", "x/netlab:1.0", ""])
def test_an_image_of_something_else(image: str) -> None:
    reason, message = refused(containers=(("lab", "netlab:1.0"), ("r1", image)))
    assert reason == "DefinitionMismatch"
    assert "'r1'" in message


@pytest.mark.parametrize("other", ["netlab:2.0", "netlab", "netlab:latest"])
def test_two_versions_in_one_pod(other: str) -> None:
    reason, message = refused(containers=(("lab", "netlab:1.0"), ("r1", other)))
    assert reason == "DefinitionMismatch"
    assert "1.0" in message


def test_another_environment() -> None:
    """R004-022, C53."""
    reason, message = refused(environment="test")
    assert reason == "EnvironmentMismatch"
    assert "default" in message
    assert "test" in message


def test_a_definition_that_a_class_keeps_to_itself() -> None:
    """Its labs show what is in it; the versions that it keeps are not named either."""
    netlab = {"netlab": dataclasses.replace(NETLAB["netlab"], owner="friday")}
    reason, message = refused(netlab, containers=(("lab", "netlab:9"),))
    assert reason == "DefinitionNotShared"
    assert "friday" in message
    assert "2.0" not in message
    assert resolve({"netlab": dataclasses.replace(NETLAB["netlab"], owner="team")}).version == "1.0"


@pytest.mark.parametrize(
    ("label", "source", "owner"),
    [
        ("friday", {"configMap": {"namespace": "friday", "name": "x"}}, "friday"),
        ("friday", {"configMap": {"namespace": "courses", "name": "x"}}, ""),
        ("", {"configMap": {"namespace": "courses", "name": "x"}}, ""),
        ("friday", {"inline": "lab: {}"}, ""),
        ("friday", {"objectStore": {"key": "x.zip"}}, ""),
        ("friday", None, ""),
    ],
)
def test_which_definitions_a_class_keeps_to_itself(label: str, source: dict[str, Any] | None, owner: str) -> None:
    labels = {names.LABEL_OWNER_NAMESPACE: label} if label else {}
    assert intent.owner_of(CustomResource(Metadata("netlab", labels=labels), {"source": source})) == owner


@pytest.mark.parametrize("fault", [None, Fault(DefinitionReason.TOPOLOGY_INVALID, "nodes is empty")])
def test_a_definition_without_content(fault: Fault | None) -> None:
    reason, message = refused(definition(fault=fault))
    assert reason == "DefinitionNotReady"
    assert ("TopologyInvalid: nodes is empty" in message) == (fault is not None)


def test_a_fault_does_not_stop_what_is_kept() -> None:
    """R000-078: a broken edit leaves the stored content untouched."""
    assert resolve(definition(content("1.0"), fault=Fault(DefinitionReason.TOPOLOGY_INVALID, "x"))).version == "1.0"


def test_a_version_that_is_not_kept() -> None:
    reason, message = refused(containers=(("lab", "netlab:9"),))
    assert reason == "UnknownVersion"
    assert "'9'" in message
    assert "2.0, 1.0" in message


def test_a_pod_that_was_charged_too_little() -> None:
    little: dict[str, Any] = {"overhead": SMALL.quantities()}
    reason, message = refused(containers=(("lab", "netlab:2.0"),), **little)
    assert reason == "ChargedTooLittle"
    assert "cpu 2 > 1" in message
    assert resolve(containers=(("lab", "netlab"),), **little).version == "1.0", "the newest that fits"
    assert refused(containers=(("lab", "netlab"),), overhead={})[0] == "ChargedTooLittle"


def test_a_container_that_names_no_device() -> None:
    """R004-017."""
    reason, message = refused(containers=(("lab", "netlab:1.0"), ("r9", "netlab:1.0")))
    assert reason == "UnknownDevice"
    assert "'r9'" in message
    assert "r-2, r1" in message


def test_devices_of_a_pod() -> None:
    found = pod(containers=(("lab", "netlab:1.0"), ("r-2", "netlab:1.0")), **CHARGED)
    assert intent.devices_of(found, content("1.0")) == {"r-2": "r 2"}


images = st.sampled_from(
    ["netlab", "netlab:1.0", "netlab:2.0", "netlab:", "nginx", "", ":", "netlab@sha256:ab", "a:b:c"]
)


@given(
    containers=st.lists(st.tuples(st.sampled_from(["lab", "r1", "r-2", "x"]), images), min_size=1, max_size=3),
    runtime=st.sampled_from(["netlab", "", "x"]),
    overhead=st.sampled_from([{}, LARGE.quantities(), SMALL.quantities()]),
)
def test_a_pod_is_run_or_refused_and_nothing_else(
    containers: list[tuple[str, str]], runtime: str, overhead: dict[str, str]
) -> None:
    try:
        found = resolve(containers=tuple(containers), runtimeClassName=runtime, overhead=overhead)
    except InputError as error:
        reason, message = error.reason, error.message
        assert reason.isalnum()
        assert message
        return
    assert found.version in {"1.0", "2.0"}
    assert Resources.from_quantities(overhead).covers(found.need)


def test_what_the_scheduler_would_have_refused() -> None:
    """A Pod bound past the scheduler, by spec.nodeName or by another scheduler."""
    capacity = Resources(4000, 2**34, 10, 5)

    def shortage(taken: Resources, lablets: int) -> InputError | None:
        return intent.shortage(LARGE, taken, capacity, lablets=lablets, pods=2)

    assert shortage(Resources(), 0) is None
    full = shortage(Resources(3000, 0, 0, 0), 1)
    assert full is not None
    assert (full.reason, "cpu 5 > 4" in full.message) == ("OutOfcpu", True)
    ports = shortage(Resources(ports=4), 1)
    assert ports is not None
    assert ports.reason == f"OutOf{names.RESOURCE_PORTS}"
    many = shortage(Resources(), 2)
    assert many is not None
    assert many.reason == "OutOfpods"
