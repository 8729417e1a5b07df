"""The objects of a workbench, as they are sent (R002-055, 059 to 063, 066): `workbench_golden.yaml` has them whole.

    VKPROVIDER_GOLDEN=1 pytest tests/unit/portal/pure/test_workbench_objects.py

writes that file again; look at what changes before it is committed.
"""

import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from vkprovider.platform.objects import CustomResource, Metadata, Node, NodeAddress, NodeStatus
from vkprovider.portal.pure.benchnet import ApiEndpoint, bench_policy_spec, worker_addresses
from vkprovider.portal.pure.benchpod import BenchUser, bench_pod_spec
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.pure.identity import group, passwd, supplemental, unprivileged
from vkprovider.portal.pure.posix import PosixGroup, PosixUser
from vkprovider.portal.pure.workbench import WorkbenchConfig, WorkbenchOf, workbench_of

MANY: Final = tuple(PosixGroup(f"g{n}", 2000 + n) for n in range(99))
GOLDEN: Final = Path(__file__).parent / "workbench_golden.yaml"
CONFIG: Final = {
    "image": "registry.example.com/workbench@sha256:ab",
    "command": ["start-lab"],
    "sizes": {"large": {"cpu": "2", "memory": "4Gi", "storage": "8Gi"}},
    "home": "home",
    "volumes": {
        "home": {"csi": {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "f", "share": "/homes/{key}"}}},
        "scratch": {"size": "1Gi"},
    },
    "mounts": [{"volume": "scratch", "path": "/scratch"}],
    "secrets": ["netrc"],
    "pullSecret": True,
    "init": {"image": "registry.example.com/provision:1", "command": ["provision"]},
    "egress": [{"cidr": "192.0.2.0/24", "ports": [443]}, {"cidr": "198.51.100.7/32"}, {"cidr": "2001:db8::/32"}],
    "ingress": [{"namespace": "hub", "labels": {"component": "proxy"}}],
}
ALICE: Final = BenchUser("alice", 4711, 2000, {"staff": 2000, "lab": 3000})


def workbench(**more: Any) -> WorkbenchConfig:
    return WorkbenchConfig.model_validate({**CONFIG, **more})


def found() -> dict[str, Any]:
    """Everything that is made, for one with all there is and for one with nothing."""
    least = WorkbenchConfig.model_validate({"image": "workbench:1"})
    api = [ApiEndpoint("10.0.0.2", 6443), ApiEndpoint("10.0.0.1", 6443)]
    workers = ["192.0.2.9", "198.51.100.7", "192.0.2.8", "203.0.113.1"]
    return {
        "full": bench_pod_spec(workbench(), "large", ALICE, provision=True),
        "least": bench_pod_spec(least, "large", BenchUser("bob", 1000, 1000)),
        "policy": bench_policy_spec(workbench(), home="vkprovider-system", api=api, workers=workers),
        "closed": bench_policy_spec(least, home="vkprovider-system", api=api, workers=workers),
        "quota": least.quota,
        "passwd": passwd("alice", 4711, 2000),
        "group": group("alice", 2000, ALICE.groups),
    }


def test_the_objects_are_the_golden_ones() -> None:
    text = yaml.safe_dump(found(), sort_keys=False)
    if os.environ.get("VKPROVIDER_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_an_init_container_is_there_until_it_has_succeeded() -> None:
    assert "initContainers" not in bench_pod_spec(workbench(), "", ALICE, provision=False)
    assert "initContainers" not in bench_pod_spec(workbench(init=None), "", ALICE, provision=True)


def test_no_secret_of_the_portal_is_in_what_a_learner_can_look_into_before() -> None:
    [init] = bench_pod_spec(workbench(), "", ALICE, provision=True)["initContainers"]
    assert {each["name"] for each in init["volumeMounts"]} == {"home", "tmp", "nss", "scratch"}
    assert not any("secretKeyRef" in each.get("valueFrom", {}) for each in init["env"])


@pytest.mark.parametrize(
    ("known", "used"),
    [
        (PosixUser(), PosixUser()),
        (PosixUser(4711, 2000), PosixUser(4711, 2000)),
        (PosixUser(0, 999), PosixUser()),
        (PosixUser(2**31 - 1), PosixUser()),
        (
            PosixUser(groups=(PosixGroup("lab", 3000), PosixGroup("docker", 999))),
            PosixUser(groups=(PosixGroup("lab", 3000),)),
        ),
        (PosixUser(groups=MANY), PosixUser(groups=MANY[:64])),
    ],
)
def test_a_workbench_has_numbers_that_no_user_of_the_system_has(known: PosixUser, used: PosixUser) -> None:
    assert unprivileged(known) == used


def test_names_of_the_system_stay_its_own_and_no_line_is_smuggled_in() -> None:
    assert passwd("root", 1000, 1000).splitlines()[-1] == "nb-root:x:1000:1000::/home/nb-root:/bin/bash"
    lines = group("alice", 1000, {"a:x:0:alice\nroot": 2000, "root": 3000, "users": 4000}).splitlines()
    assert lines[-2:] == ["alice:x:1000:", "a-x-0-alice-root:x:2000:alice"]
    assert all(line.count(":") == 3 for line in lines)
    assert supplemental(1000, {"a": 1000, "c": 3000, "b": 2000, "d": 2000}) == [2000, 3000]


@pytest.mark.parametrize(
    "wrong",
    [
        {"mounts": [{"volume": "scratch", "path": "/home/alice"}]},
        {"mounts": [{"volume": "scratch", "path": "/etc"}]},
        {"mounts": [{"volume": "scratch", "path": "/a/../etc"}]},
        {"mounts": [{"volume": "scratch", "path": "/"}]},
        {"mounts": [{"volume": "none", "path": "/a"}]},
        {"home": "none"},
        {"volumes": {"token": {"size": "1Gi"}}, "mounts": [], "home": None},
        {"volumes": {"a": {"hostPath": "/"}}, "mounts": [], "home": None},
        {"volumes": {"a": {}}, "mounts": [], "home": None},
        {"uid": 0},
        {"quota": {"limits.cpu": "4"}},
        {"quota": {"pods": "many"}},
        {"gid": 999},
        {"port": 80},
        {"egress": [{"cidr": "10.0.0.1/8"}]},
        {"image": ""},
    ],
)
def test_what_no_workbench_may_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workbench(**wrong)


def test_a_class_counts_before_an_entry_of_the_menu_and_that_before_a_definition() -> None:
    of = WorkbenchOf(classes={"net101": "a", "exam": ""}, images={"netlab": "b", "netlab:2": "c", "plain": ""})
    asked = {"class_": "", "family": "other", "version": "1", "labelled": "d"}
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "d"),
        ({"labelled": ""}, ""),
        ({"family": "netlab"}, "b"),
        ({"family": "netlab", "version": "2"}, "c"),
        ({"family": "plain"}, ""),
        ({"family": "netlab", "class_": "net101"}, "a"),
        ({"family": "netlab", "class_": "exam"}, ""),
        ({"family": "netlab", "class_": "net103"}, "b"),
    ]
    assert [workbench_of(of, **{**asked, **change}) for change, _ in cases] == [name for _, name in cases]


def test_no_allowed_network_reaches_what_a_cloud_tells_its_nodes() -> None:
    everywhere = workbench(egress=[{"cidr": "0.0.0.0/0"}, {"cidr": "169.254.169.254/32"}])
    spec = bench_policy_spec(everywhere, home="a", api=[], workers=["192.0.2.9"])
    [_, only] = spec["egress"]
    assert only == {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16", "192.0.2.9/32"]}}]}


def test_only_workbenches_that_are_there_are_named() -> None:
    with pytest.raises(ValidationError, match="workbenches has no pyats"):
        PortalConfig.model_validate({"workbenchOf": {"images": {"netlab": "pyats"}}})


def test_the_addresses_of_workers_are_those_of_their_nodes_as_far_as_they_are_addresses() -> None:
    addresses = [NodeAddress("ExternalIP", "192.0.2.9"), NodeAddress("ExternalDNS", "cml.example.com")]
    node = Node(Metadata("a"), status=NodeStatus(addresses=addresses))
    specs = [
        {"url": "https://198.51.100.4:8443", "address": "192.0.2.9"},
        {"url": "https://[2001:db8::1]"},
        {"url": "https://cml.example.com", "address": "2001:db8::2"},
        {"url": "https://[broken"},
        {},
    ]
    workers = [CustomResource(Metadata("a"), spec) for spec in specs]
    assert worker_addresses([node], []) == ["192.0.2.9"]
    assert worker_addresses([node], workers) == ["192.0.2.9", "198.51.100.4", "2001:db8::1", "2001:db8::2"]
