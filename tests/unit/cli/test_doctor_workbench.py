"""What the doctor says of workbenches: whether they are let through and opened, and what stops fork bombs."""

from typing import Any

import msgspec

from tests.unit.cli.test_doctor_portal import KEY, NAMESPACE, settings
from vkprovider.doctor.findings import Level
from vkprovider.platform.objects import Metadata, Node
from vkprovider.portal.checks.benches import ConfinePolicy, KubeletConfig, asked, check_hosts, check_pids, check_policy
from vkprovider.portal.pure.config import PortalConfig

KIND: dict[str, Any] = {
    "image": "example.com/workbench@sha256:ab",
    "init": {"image": "example.com/init:1"},
    "home": "home",
    "volumes": {"home": {"csi": {"driver": "nfs.csi.k8s.io"}}},
}
CONFIG = PortalConfig.model_validate({"workbenches": {"pyats": KIND}})


def policy(images: str, drivers: str) -> ConfinePolicy:
    variables = [{"name": "images", "expression": images}, {"name": "drivers", "expression": drivers}]
    return msgspec.convert({"spec": {"variables": variables}}, ConfinePolicy)


def test_what_the_policy_does_not_list_is_named() -> None:
    [images, drivers] = check_policy(CONFIG, policy("['example.com/init:1']", "[]"))
    assert (images.level, images.reason) == (Level.FAULT, "WorkbenchNotAllowed")
    assert "does not list example.com/workbench@sha256:ab" in images.message
    assert "example.com/init:1" not in images.message
    assert "does not list nfs.csi.k8s.io" in drivers.message
    every = policy('["example.com/init:1", "example.com/workbench@sha256:ab"]', "['nfs.csi.k8s.io']")
    assert check_policy(CONFIG, every) == []
    assert check_policy(CONFIG, None) == [], "who may not read it learns of it elsewhere"


def test_a_workbench_that_no_page_leads_to_is_said() -> None:
    [found] = check_hosts(NAMESPACE, settings())
    assert (found.level, found.reason) == (Level.NOTE, "WorkbenchWithoutHost")
    assert check_hosts(NAMESPACE, settings(WORKBENCH_HOSTS="*.wb.example.com", COOKIE_KEY=KEY)) == []


def test_nodes_whose_pods_may_have_any_number_of_processes_are_named() -> None:
    def kubelet(limit: int) -> KubeletConfig:
        return msgspec.json.decode(f'{{"kubeletconfig": {{"podPidsLimit": {limit}}}}}', type=KubeletConfig)

    [found] = check_pids({"a": kubelet(-1), "b": kubelet(1024), "c": None, "d": KubeletConfig()})
    assert (found.level, found.reason) == (Level.NOTE, "PidsUnlimited")
    assert "the kubelet of a, d has no podPidsLimit" in found.message
    assert check_pids({"b": kubelet(1024)}) == []


def test_no_virtual_node_is_asked() -> None:
    virtual = Node(Metadata("vnode.a", labels={"vkprovider.io/component": "vnode"}))
    assert asked([virtual, Node(Metadata("worker-1"))]) == ["worker-1"]
