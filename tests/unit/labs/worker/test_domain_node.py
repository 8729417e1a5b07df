"""A CMLWorker as a Node: what is ours is repaired, what is others' is kept, and what is right is not written."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import apply_merge
from vkprovider.lablet import names
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.worker import capacity as capacities
from vkprovider.labs.pure.worker import node as nodes
from vkprovider.labs.pure.worker.capacity import Capacity, Stats, shown_images
from vkprovider.labs.pure.worker.endpoint import KubeletEndpoint, withdrawal
from vkprovider.labs.pure.worker.node import NodeView
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import Node
from vkprovider.platform.times import iso

UNIX = 1_800_000_000
RANGE = (10000, 20000)
ENDPOINT = KubeletEndpoint("10.0.0.9", 20250)
FOREIGN_CONDITION = {"type": "KernelDeadlock", "status": "False", "reason": "R", "message": "m"}
FOREIGN_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def spec(**fields: Any) -> CMLWorkerSpec:
    return parse_worker_spec(
        {
            "url": "https://cml-1.example.com",
            "environment": "prod",
            "capacity": {"cpu": "64", "memory": "1Ti", "labNodes": 300, "labs": 1000},
            **fields,
        }
    )


def view(**changes: Any) -> NodeView:
    worker = changes.pop("spec", spec())
    capacity, allocatable = capacities.capacity_of(worker, None, RANGE).amounts()
    fields = {
        "worker": "w1",
        "uid": "worker-uid",
        "installation": "inst",
        "spec": worker,
        "version": "2.9.1+build.7",
        "ip": "198.51.100.1",
        "dns": "cml-1.example.com",
        "endpoint": ENDPOINT,
        "capacity": capacity,
        "allocatable": allocatable,
        "health": nodes.healthy("CML 2.9.1 answers"),
        "taint_effect": "NoExecute",
        "kubelet_version": "v1.33.13-vkprovider",
    }
    return NodeView(**{**fields, **changes})


def made(wanted: NodeView) -> Node:
    """The Node as the API server gives it back after its creation."""
    return msgspec.convert(nodes.create(wanted, UNIX), Node)


def patched(found: Node, patch: dict[str, Any] | None) -> Node:
    return found if patch is None else msgspec.convert(apply_merge(msgspec.to_builtins(found), patch), Node)


def with_metadata(found: Node, **fields: Any) -> Node:
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, **fields))


def ready(found: Node) -> tuple[str, str, str | None]:
    one = next(c for c in found.status.conditions if c.type == "Ready")
    return one.status, one.reason, one.last_transition_time


def test_labels_taints_and_names() -> None:
    """R004-006 to R004-012, R004-015."""
    found = made(view())
    assert found.metadata.name == "vnode.w1"
    labels = found.metadata.labels
    assert labels[names.LABEL_COMPONENT] == "vnode"
    assert labels[names.LABEL_STACK] == "cml"
    assert labels[names.LABEL_ENV] == "prod"
    assert labels[names.LABEL_WORKER] == "w1"
    assert labels[names.LABEL_TUNNEL] == "direct"
    assert labels[names.LABEL_CML_VERSION] == "2.9.1"
    assert labels["type"] == "virtual-kubelet"
    assert labels["kubernetes.io/hostname"] == "vnode.w1"
    assert labels["node-role.kubernetes.io/cml-worker"] == ""
    assert "kubernetes.io/os" not in labels, "else DaemonSets of the cluster land on it"
    assert found.metadata.annotations[names.ANNOTATION_CML_BUILD] == "2.9.1+build.7"
    assert [(t.key, t.value, t.effect) for t in found.spec.taints] == [
        ("vkprovider.io/virtual-node", "true", "NoExecute"),
        ("vkprovider.io/env", "prod", "NoExecute"),
    ]
    assert found.spec.provider_id == "vkprovider://w1"


@pytest.mark.parametrize(
    ("version", "known"),
    [("2.9.1+build.7", "false"), ("2.10.0+build.1", "true"), ("2.10.1", "true"), ("", None), ("nightly", None)],
)
def test_which_topologies_its_cml_imports(version: str, known: str | None) -> None:
    assert made(view(version=version)).metadata.labels.get("vkprovider.io/topology-0.3.1") == known


def test_addresses() -> None:
    """R004-013."""
    assert [(a.type, a.address) for a in made(view()).status.addresses] == [
        ("InternalIP", "10.0.0.9"),
        ("ExternalIP", "198.51.100.1"),
        ("ExternalDNS", "cml-1.example.com"),
    ]
    unknown = made(view(ip="", dns="", endpoint=None))
    assert [a.type for a in unknown.status.addresses] == []


def test_the_kubelet_api_is_declared_and_withdrawn() -> None:
    node = made(view())
    assert node.status.daemon_endpoints.kubelet_endpoint.port == 20250
    assert node.status.declared_features == ["ExtendWebSocketsToKubelet"]
    patch = withdrawal(node)
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == node.metadata.resource_version
    left = patched(node, patch)
    assert [a.type for a in left.status.addresses] == ["ExternalIP", "ExternalDNS"]
    assert left.status.daemon_endpoints.kubelet_endpoint.port == 0
    assert left.status.declared_features == []
    assert left.status.conditions == node.status.conditions
    assert withdrawal(left) is None


def test_an_api_server_that_drops_the_features_is_not_written_to_for_ever() -> None:
    node = made(view())
    old = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, declared_features=[]))
    assert nodes.status_patch(old, view(), UNIX) is None


def test_the_wide_table_reads_well() -> None:
    info = made(view()).status.node_info
    assert info["containerRuntimeVersion"] == "cml://2.9.1"
    assert info["osImage"] == "Cisco Modeling Labs 2.9.1"
    assert info["kubeletVersion"] == "v1.33.13-vkprovider"
    assert made(view(version="")).status.node_info["containerRuntimeVersion"] == "cml://unknown"


def test_capacity() -> None:
    """R004-047; in the words in which the API server gives quantities back, or every turn would write them again."""
    found = made(view(spec=spec(portRange={"start": 2000, "end": 7999})))
    assert (
        found.status.capacity
        == found.status.allocatable
        == {
            "cpu": "64",
            "memory": "1Ti",
            "pods": "1k",
            "vkprovider.io/lab-nodes": "300",
            "vkprovider.io/ports": "6k",
        }
    )


def test_capacity_is_asked_of_cml_where_the_worker_does_not_say() -> None:
    worker = spec(capacity={"cpu": "8"}, stats="On")
    stats = Stats(cpus=64, memory_bytes=2**38, lab_nodes=300, foreign=Resources(2000, 2**30, 5, 0))
    offered = capacities.capacity_of(worker, stats, RANGE)
    assert (offered.total, offered.labs) == (Resources(8000, 2**38, 300, 10001), capacities.LABS_DEFAULT)
    capacity, allocatable = offered.amounts()
    assert (capacity["cpu"], allocatable["cpu"]) == ("8", "6")
    assert (capacity["memory"], allocatable["memory"]) == ("256Gi", "255Gi")
    assert (capacity[names.RESOURCE_LAB_NODES], allocatable[names.RESOURCE_LAB_NODES]) == ("300", "295")
    assert capacity["pods"] == allocatable["pods"] == "200"


def test_allocatable_is_never_negative() -> None:
    _, allocatable = Capacity(Resources(1000, 10, 1, 1), 1, Resources(9000, 99, 9, 9)).amounts()
    assert set(allocatable.values()) == {"0", "1"}


@pytest.mark.parametrize(
    ("capacity", "stats", "missing"),
    [
        ({}, None, "cpu, memory, labNodes"),
        ({"cpu": "4", "memory": "8Gi"}, None, "labNodes"),
        ({"cpu": "4", "labNodes": 5}, Stats(cpus=4), "memory"),
    ],
)
def test_unknown_capacity_is_said(capacity: dict[str, Any], stats: Stats | None, missing: str) -> None:
    with pytest.raises(InputError) as caught:
        capacities.capacity_of(spec(capacity=capacity), stats, RANGE)
    assert caught.value.reason == "CapacityUnknown"
    assert f"spec.capacity lacks {missing};" in caught.value.message


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        ({"cpu": 0}, "spec.capacity.cpu is 0"),
        ({"cpu": "0m", "labs": 0}, "spec.capacity.cpu is 0m; spec.capacity.labs is 0"),
        ({"labs": 0}, "spec.capacity.labs is 0"),
        ({"labNodes": 0}, "spec.capacity.labNodes is 0"),
        ({"memory": "0"}, "spec.capacity.memory is 0"),
        ({"memory": 256}, "spec.capacity.memory is 256, which is 256 bytes: write its unit, as in 256Gi"),
        ({"memory": "262144"}, "spec.capacity.memory is 262144, which is 262144 bytes: write its unit, as in 256Gi"),
        ({"memory": "256k"}, "spec.capacity.memory is 256k, which is 256000 bytes: write its unit, as in 256Gi"),
    ],
)
@pytest.mark.parametrize("stats", ["On", "Off"])
def test_capacity_in_which_nothing_fits_is_a_fault(capacity: dict[str, Any], said: str, stats: str) -> None:
    """Also if CML or the Node knows better figures: what a person wrote counts."""
    good = {"cpu": "4", "memory": "8Gi", "labs": 9, "labNodes": 5}
    node = made(view())
    offered = capacities.capacity(spec(capacity={**good, **capacity}, stats=stats), Stats(4, 2**33, 5), RANGE, node)
    assert offered.fault is not None
    assert offered.fault.reason == "CapacityTooSmall"
    assert offered.fault.message.startswith(said)
    assert capacities.capacity(spec(capacity=good, stats=stats), None, RANGE, node).fault is None


@pytest.mark.parametrize(
    ("named", "number", "begins"),
    [
        ({"b/y", "a/x"}, 2, "2 lablets: a/x, b/y; delete"),
        ({f"a/{n}" for n in range(7)}, 9, "9 lablets: a/0, a/1, a/2, a/3 and 5 more; delete"),
        (set(), 1, "1 lablet; delete"),
    ],
)
def test_worker_in_use_names_a_few_of_its_lablets(named: set[str], number: int, begins: str) -> None:
    said = nodes.in_use("w1", named, number)
    assert (said.ready, said.reason) == (False, "InUse")
    assert said.message.startswith(begins)


@pytest.mark.parametrize("version", ["2.8.0", "2.9.1+build.7", "2.10.0-dev0+build.1"])
def test_supported_versions(version: str) -> None:
    assert nodes.check_version(version) is None


@pytest.mark.parametrize("version", ["2.7.9", "2.11.0", "3.0.0", "1.9.0", "", "x"])
def test_unsupported_versions(version: str) -> None:
    fault = nodes.check_version(version)
    assert fault is not None
    assert fault.reason == "UnsupportedVersion"
    assert repr(version) in fault.message


def test_what_is_right_is_not_written() -> None:
    found = made(view())
    assert nodes.metadata_patch(found, view()) is None
    assert nodes.status_patch(found, view(), UNIX + 60) is None


def test_a_node_of_somebody_else_is_known_as_such() -> None:
    found = made(view())
    assert nodes.ours(found, "inst")
    assert not nodes.ours(found, "other")
    assert not nodes.ours(with_metadata(found, annotations={}), "inst")


keys = st.sampled_from([names.LABEL_ENV, names.LABEL_STACK, "kubernetes.io/hostname", "example.com/theirs", "zone"])
values = st.sampled_from(["", "x", "prod"])
taints = st.lists(
    st.sampled_from(
        [
            FOREIGN_TAINT,
            {"key": names.TAINT_ENV, "value": "other", "effect": "NoExecute"},
            {"key": names.TAINT_ENV, "value": "prod", "effect": "NoSchedule"},
            {"key": names.TAINT_VIRTUAL_NODE, "value": "true", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        ]
    ),
    max_size=4,
    unique_by=lambda t: (t["key"], t["effect"]),
)


@given(labels=st.dictionaries(keys, values), dropped=st.lists(keys), taints=taints, unschedulable=st.booleans())
def test_labels_and_taints_are_repaired_and_foreign_ones_kept(
    labels: dict[str, str], dropped: list[str], taints: list[dict[str, str]], *, unschedulable: bool
) -> None:
    """Issue 3 §4: cordon and taint do what they do on any node."""
    wanted = view()
    body = nodes.create(wanted, UNIX)
    body["metadata"]["labels"] = {k: v for k, v in (body["metadata"]["labels"] | labels).items() if k not in dropped}
    body["metadata"]["annotations"]["example.com/theirs"] = "a"
    body["spec"] |= {"taints": taints, "unschedulable": unschedulable}
    before = msgspec.convert(body, Node)
    after = patched(before, nodes.metadata_patch(before, wanted))
    assert nodes.metadata_patch(after, wanted) is None
    assert wanted.labels.items() <= after.metadata.labels.items()
    assert set(wanted.taints) <= set(after.spec.taints)
    theirs = {k: v for k, v in before.metadata.labels.items() if k not in wanted.labels}
    assert theirs.items() <= after.metadata.labels.items()
    assert after.metadata.annotations["example.com/theirs"] == "a"
    assert {t.key for t in after.spec.taints} >= {t["key"] for t in taints}
    assert after.spec.unschedulable is unschedulable
    assert len({(t.key, t.effect) for t in after.spec.taints}) == len(after.spec.taints)


def test_a_patch_of_metadata_has_its_precondition() -> None:
    found = with_metadata(made(view()), labels={}, resource_version="77")
    patch = nodes.metadata_patch(found, view())
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "77"
    assert "spec" not in patch, "taints that are right are not written"


def test_a_label_that_the_worker_no_longer_gives_goes() -> None:
    zone = {"topology.kubernetes.io/zone": "z1", "rack": "r"}
    before = made(view(spec=spec(nodeLabels=zone)))
    assert before.metadata.labels["rack"] == "r"
    wanted = view(spec=spec(nodeLabels={"rack": "r2"}))
    after = patched(before, nodes.metadata_patch(before, wanted))
    assert after.metadata.labels["rack"] == "r2"
    assert "topology.kubernetes.io/zone" not in after.metadata.labels
    assert nodes.metadata_patch(after, wanted) is None
    bare = patched(after, nodes.metadata_patch(after, view()))
    assert "rack" not in bare.metadata.labels
    assert nodes.metadata_patch(bare, view()) is None


def test_our_labels_win_over_the_workers() -> None:
    wanted = view(spec=spec(nodeLabels={names.LABEL_ENV: "fake", names.LABEL_COMPONENT: "x"}))
    assert (wanted.labels[names.LABEL_ENV], wanted.labels[names.LABEL_COMPONENT]) == ("prod", "vnode")


def test_a_changed_taint_effect_replaces_the_old_taint() -> None:
    before = made(view())
    wanted = view(taint_effect="NoSchedule")
    after = patched(before, nodes.metadata_patch(before, wanted))
    assert [(t.key, t.effect) for t in after.spec.taints] == [
        (names.TAINT_VIRTUAL_NODE, "NoSchedule"),
        (names.TAINT_ENV, "NoSchedule"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"health": nodes.unhealthy(WorkerReason.WORKER_UNREACHABLE, "worker w1 does not answer")},
        {"ip": "198.51.100.2"},
        {"ip": ""},
        {"endpoint": KubeletEndpoint("10.0.0.10", 20250)},
        {"endpoint": KubeletEndpoint("10.0.0.9", 20251)},
        {"endpoint": None},
        {"version": "2.10.0"},
        {"capacity": {"cpu": "1", "memory": "1", "pods": "1"}},
        {"allocatable": {"cpu": "1", "memory": "1", "pods": "1"}},
    ],
)
def test_what_changed_is_written_once(change: dict[str, Any]) -> None:
    before = made(view())
    wanted = view(**change)
    patch = nodes.status_patch(before, wanted, UNIX + 60)
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == before.metadata.resource_version
    after = patched(before, patch)
    assert nodes.status_patch(after, wanted, UNIX + 90) is None


def test_ready_follows_the_worker_with_the_time_of_the_change() -> None:
    """R004-049, C07: the node stays, Ready says why it cannot be used."""
    before = made(view())
    assert ready(before) == ("True", "WorkerReady", iso(UNIX))
    silent = view(health=nodes.unhealthy(WorkerReason.WORKER_UNREACHABLE, "worker w1 does not answer"))
    off = patched(before, nodes.status_patch(before, silent, UNIX + 60))
    assert ready(off) == ("False", "WorkerUnreachable", iso(UNIX + 60))
    other = view(health=nodes.unhealthy(WorkerReason.CREDENTIALS_INVALID, "m"))
    still = patched(off, nodes.status_patch(off, other, UNIX + 90))
    assert ready(still) == ("False", "CredentialsInvalid", iso(UNIX + 60))
    assert ready(patched(still, nodes.status_patch(still, view(), UNIX + 95)))[0] == "True"


@pytest.mark.parametrize("type_", ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"])
def test_unknown_by_the_stock_controller_is_written_again(type_: str) -> None:
    """Design §4: a renewed Lease does not undo it."""
    before = made(view())
    conditions = [
        msgspec.structs.replace(c, status="Unknown", reason="NodeStatusUnknown") if c.type == type_ else c
        for c in before.status.conditions
    ]
    lost = msgspec.structs.replace(before, status=msgspec.structs.replace(before.status, conditions=conditions))
    again = patched(lost, nodes.status_patch(lost, view(), UNIX + 60))
    assert nodes.status_patch(again, view(), UNIX + 90) is None
    assert {c.status for c in again.status.conditions} == {"True", "False"}


def test_conditions_and_resources_of_others_are_kept() -> None:
    body = nodes.create(view(), UNIX)
    body["status"]["conditions"].append(FOREIGN_CONDITION)
    body["status"]["capacity"] |= {"example.com/dongle": "4"}
    body["status"]["allocatable"] |= {"example.com/dongle": "4"}
    before = msgspec.convert(body, Node)
    assert nodes.status_patch(before, view(), UNIX) is None, "and they are no reason to write"
    after = patched(before, nodes.status_patch(before, view(ip="198.51.100.2"), UNIX + 60))
    assert any(c.type == "KernelDeadlock" and c.status == "False" for c in after.status.conditions)
    assert after.status.capacity["example.com/dongle"] == "4"


@pytest.mark.parametrize(
    ("fields", "address", "is_ip"),
    [
        ({}, "cml-1.example.com", False),
        ({"address": "198.51.100.7"}, "198.51.100.7", True),
        ({"url": "https://198.51.100.8:8443/path"}, "198.51.100.8", True),
        ({"url": "https://[2001:db8::1]:8443"}, "2001:db8::1", True),
        ({"url": "nonsense"}, "", False),
    ],
)
def test_what_learners_reach(fields: dict[str, Any], address: str, *, is_ip: bool) -> None:
    assert nodes.address_of(spec(**fields)) == address
    assert nodes.is_ip(address) is is_ip


def test_a_worker_that_awaits_approval_is_cordoned_until_then() -> None:
    waiting = view(cordoned=True)
    node = made(waiting)
    assert nodes.create(waiting, UNIX)["spec"]["unschedulable"] is True
    assert nodes.metadata_patch(node, waiting) is None
    patch = nodes.metadata_patch(node, view())
    assert patch is not None
    assert patch["spec"]["unschedulable"] is None
    assert patch["metadata"]["annotations"] == {names.ANNOTATION_CORDONED: None}


def test_a_node_that_an_admin_cordoned_stays_so() -> None:
    patch = nodes.metadata_patch(made(view()), view(taint_effect="NoSchedule"))
    assert patch is not None
    assert "unschedulable" not in patch["spec"]
    assert "unschedulable" not in nodes.create(view(), UNIX)["spec"]


@pytest.mark.parametrize(
    ("marked", "uuid", "mine"),
    [
        ("inst", "worker-uid", True),
        ("inst", "earlier-worker", True),
        (None, "worker-uid", True),
        (None, "a-machine", False),
        (None, "", False),
        ("others", "worker-uid", False),
    ],
)
def test_whose_a_node_is(marked: str | None, uuid: str, *, mine: bool) -> None:
    """It needs no provider id; what a mark says counts more than what is left without one."""
    meta = {"name": "vnode.w1", "annotations": {wellknown.ANNOTATION_INSTALLATION: marked} if marked else {}}
    node = msgspec.convert({"metadata": meta, "status": {"nodeInfo": {"systemUUID": uuid}}}, Node)
    assert nodes.ours(node, "inst", "worker-uid") is mine
    assert nodes.ours(node, "inst") is (marked == "inst")


def test_a_provider_id_is_added_and_never_taken_away() -> None:
    """The API server refuses any other change of it."""
    without, known = view(identified=False), view()
    assert made(without).spec.provider_id == ""
    patch = nodes.metadata_patch(made(without), known)
    assert patch is not None
    assert patch["spec"] == {"providerID": "vkprovider://w1"}
    assert nodes.metadata_patch(made(known), without) is None
    assert nodes.metadata_patch(made(known), known) is None
    assert nodes.metadata_patch(made(without), without) is None


def test_image_definitions_are_shown_and_removed_and_kept_while_unknown() -> None:
    assert "images" not in nodes.create(view(), UNIX)["status"]
    assert "images" not in nodes.create(view(images=None), UNIX)["status"]
    some = made(view(images=("cml/a", "cml/b")))
    assert [image.names for image in some.status.images] == [["cml/a"], ["cml/b"]]
    assert nodes.status_patch(some, view(images=("cml/a", "cml/b")), UNIX) is None
    assert nodes.status_patch(some, view(images=None), UNIX) is None, "could not list is not empty"
    sick = nodes.status_patch(some, view(images=None, health=nodes.unhealthy(WorkerReason.WORKER_ERROR, "m")), UNIX)
    assert patched(some, sick).status.images == some.status.images
    more = patched(some, nodes.status_patch(some, view(images=("cml/a", "cml/b", "cml/c")), UNIX))
    assert len(more.status.images) == 3
    gone = nodes.status_patch(some, view(), UNIX)
    assert gone is not None
    assert gone["status"]["images"] is None


def test_images_of_others_are_those_of_the_worker_again() -> None:
    forged = msgspec.convert(
        {"metadata": {"name": "vnode.w1"}, "status": {"images": [{"names": ["cml/a", "x"], "sizeBytes": 5}]}}, Node
    )
    patch = nodes.status_patch(forged, view(images=("cml/a",)), UNIX)
    assert patch is not None
    assert patch["status"]["images"] == [{"names": ["cml/a"]}]


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        ([], ()),
        (["b", "a", "b"], ("cml/a", "cml/b")),
        ([str(number) for number in range(1001)], None),
        (["x" * 251], None),
    ],
)
def test_a_node_shows_all_image_definitions_or_none(ids: list[str], shown: tuple[str, ...] | None) -> None:
    assert shown_images(ids) == shown


def test_as_many_as_a_node_can_show() -> None:
    """More than the 50 of a kubelet: a part of the list would tell of a worker that it lacks the rest."""
    assert len(shown_images([str(number) for number in range(1000)]) or ()) == 1000
