"""What a pool is made of, and how large each is."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.unit.classroom.test_classroom_ledger import pod
from vkprovider.classroom.deployments import Deployment
from vkprovider.classroom.pools import PoolSize, offered, pool_body, sizes
from vkprovider.platform.objects import CustomResource, Metadata

EXAMPLE = Path("manifests/examples/pool.yaml")


def definition(name: str = "netlab", owner: str = "", **status: Any) -> CustomResource:
    labels = {"vkprovider.io/owner-namespace": owner} if owner else {}
    return CustomResource(Metadata(name, labels=labels), status=status)


def deployment(name: str, replicas: int, runtime_class: str = "netlab") -> Deployment:
    labels = {"vkprovider.io/pool": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"spec": {"runtimeClassName": runtime_class}},
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Deployment)


def test_a_pool_is_as_the_example_has_it() -> None:
    devices = [
        {"label": "h0", "container": "h0", "nodeDefinition": "alpine"},
        {"label": "h1", "container": "h1", "nodeDefinition": "alpine"},
        {"label": "sw", "container": "sw", "nodeDefinition": "unmanaged_switch"},
    ]
    found = pool_body("warm", definition(version="1.0.0", devices=devices, bootTimeoutSeconds=1800), "friday", 24)
    example = yaml.safe_load(EXAMPLE.read_text())
    lab = example["spec"]["template"]["spec"]["containers"][0]
    lab.update(stdin=True, tty=True)
    assert found.pop("metadata") == {"name": "warm", "labels": {"class": "friday"}}
    del example["metadata"]
    assert found == example


def test_the_size_of_each_pool() -> None:
    pods = [pod("a"), pod("b", ready=False), pod("c", "ann")]
    pools = [deployment("warm", 2), deployment("next", 0), deployment("web", 3, "")]
    assert sizes(pools, pods) == [PoolSize("next", "netlab", 0, 0), PoolSize("warm", "netlab", 2, 1)]


def test_a_class_uses_its_own_definitions_and_those_of_nobody() -> None:
    found = [definition("b"), definition("own", "friday"), definition("other", "monday"), definition("a")]
    assert offered(found, "friday") == ["own", "a", "b"]
