"""What kubectl shows of workers and their Nodes (R004-006…015)."""

from tests.support.cluster import Cluster, condition
from tests.support.topologies import definition, pod
from tests.support.waiting import until


def table(cluster: Cluster, *arguments: str) -> list[dict[str, str]]:
    """Read a table of kubectl whose cells hold no two blanks in a row, as rows by column."""
    lines = cluster.kubectl("get", *arguments).stdout.splitlines()
    columns = [column for column in lines[0].split("  ") if column]
    starts = [lines[0].index(column.strip()) for column in columns]
    ends = [*starts[1:], None]
    return [
        {column.strip(): line[start:end].strip() for column, start, end in zip(columns, starts, ends, strict=True)}
        for line in lines[1:]
    ]


def test_wide_table_of_nodes_reads_well(cluster: Cluster) -> None:
    rows = {row["NAME"]: row for row in table(cluster, "nodes", "-o", "wide")}
    first, second, third = (rows[worker.node] for worker in cluster.workers)
    assert (first["STATUS"], first["ROLES"]) == ("Ready", "cml-worker")
    assert first["VERSION"].startswith("v1.")
    assert first["INTERNAL-IP"].count(".") == 3
    assert [row["EXTERNAL-IP"] for row in (first, second, third)] == ["198.51.100.1", "198.51.100.2", "198.51.100.3"]
    assert first["OS-IMAGE"] == "Cisco Modeling Labs 2.9.1"
    assert first["KERNEL-VERSION"] == "2.9.1+build.7"
    assert [row["CONTAINER-RUNTIME"] for row in (first, third)] == ["cml://2.9.1", "cml://2.8.1"]


def test_wide_table_of_workers_reads_well(cluster: Cluster) -> None:
    def calm() -> dict[str, str]:
        """The row once the counts are of now: they are written every ten seconds at most."""
        rows = {row["NAME"]: row for row in table(cluster, "cmlw", "-o", "wide")}
        row = rows[cluster.workers[2].name]
        assert (row["LABS"], row["FOREIGN"]) == ("0", "0"), "labs of earlier tests are still counted"
        return row

    row = until(calm, 90)
    assert (row["READY"], row["REASON"], row["VERSION"]) == ("True", "WorkerReady", "2.8.1+build.14")
    assert (row["ENV"], row["ADDRESS"]) == ("default", "198.51.100.3")
    assert row["URL"] == cluster.workers[2].worker.url
    assert row["OWNER"] == cluster.health()["instance_id"]
    assert row["MESSAGE"] == "CML 2.8.1+build.14 answers"


def test_node_says_what_schedulers_and_users_select_by(cluster: Cluster) -> None:
    """R004-006…012: name, labels, taints, addresses."""
    worker = cluster.workers[2]
    node = cluster.node(worker)
    assert node
    labels = node["metadata"]["labels"]
    assert (
        labels.items()
        >= {
            "vkprovider.io/component": "vnode",
            "vkprovider.io/stack": "cml",
            "vkprovider.io/env": "default",
            "vkprovider.io/worker": worker.name,
            "vkprovider.io/tunnel": "direct",
            "vkprovider.io/cml-version": "2.8.1",
            "type": "virtual-kubelet",
            "kubernetes.io/hostname": worker.node,
            "node.kubernetes.io/exclude-from-external-load-balancers": "true",
            "topology.kubernetes.io/zone": "zone-a",
        }.items()
    )
    assert "kubernetes.io/os" not in labels
    assert node["metadata"]["annotations"]["vkprovider.io/cml-build"] == "2.8.1+build.14"
    assert node["spec"]["providerID"] == f"vkprovider://{worker.name}"
    taints = {(taint["key"], taint["value"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert taints >= {
        ("vkprovider.io/virtual-node", "true", "NoExecute"),
        ("vkprovider.io/env", "default", "NoExecute"),
    }
    addresses = {entry["type"]: entry["address"] for entry in node["status"]["addresses"]}
    assert "Hostname" not in addresses, "an API server would dial it before the InternalIP"
    assert addresses["ExternalIP"] == "198.51.100.3"
    assert node["status"]["capacity"] == {
        "cpu": "64",
        "memory": "256Gi",
        "pods": "200",
        "vkprovider.io/lab-nodes": "400",
        "vkprovider.io/ports": "6k",
    }


def test_conditions_are_those_of_a_kubelet(cluster: Cluster) -> None:
    node = cluster.node(cluster.workers[0])
    expected = {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "NetworkUnavailable": "False",
    }
    assert {kind: condition(node, kind)["status"] for kind in expected} == expected
    assert condition(node, "Ready")["reason"] == "WorkerReady"


def test_address_that_is_a_name_is_resolved_and_kept(cluster: Cluster) -> None:
    worker = cluster.workers[1]
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}"

    def addresses() -> dict[str, str]:
        node = cluster.node(worker)
        assert node
        return {entry["type"]: entry["address"] for entry in node["status"]["addresses"]}

    cluster.patch(path, {"spec": {"address": "localhost"}})
    try:
        until(lambda: addresses().get("ExternalDNS") == "localhost")
        assert addresses()["ExternalIP"] in {"127.0.0.1", "::1"}
    finally:
        cluster.patch(path, {"spec": {"address": worker.worker.address}})
    until(lambda: addresses().get("ExternalIP") == worker.worker.address and "ExternalDNS" not in addresses())


def test_address_that_changes_is_that_of_its_lablets_too(cluster: Cluster, namespace: str) -> None:
    worker = cluster.workers[1]
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}"
    cluster.define(definition(f"moved-{namespace[-5:]}"))
    lablet = pod("moved", f"moved-{namespace[-5:]}", nodeSelector={"kubernetes.io/hostname": worker.node})
    cluster.apply(lablet, namespace=namespace)
    cluster.wait_ready(namespace, 1)

    def address() -> tuple[str, str]:
        found = cluster.pod(namespace, "moved")
        assert found
        return found["status"]["podIP"], found["status"]["hostIP"]

    assert address() == (worker.worker.address,) * 2
    cluster.patch(path, {"spec": {"address": "198.51.100.77"}})
    try:
        until(lambda: address() == ("198.51.100.77",) * 2)
    finally:
        cluster.patch(path, {"spec": {"address": worker.worker.address}})
    until(lambda: address() == (worker.worker.address,) * 2)


def test_calm_node_is_written_by_nobody(cluster: Cluster) -> None:
    """R004-026, R004-051: an idle node costs a Lease now and then, and no status."""
    from_start = [cluster.node(worker) for worker in cluster.workers]
    rounds = cluster.workers[0].last_request()
    until(lambda: cluster.workers[0].last_request() >= rounds + 4, 45, "the worker is not probed")
    assert [node and node["metadata"]["resourceVersion"] for node in from_start] == [
        node and node["metadata"]["resourceVersion"] for node in map(cluster.node, cluster.workers)
    ]


def test_node_shows_the_image_definitions_of_a_worker_that_is_to_be_asked(cluster: Cluster) -> None:
    worker = cluster.workers[1]

    def shown() -> list[str]:
        node = cluster.node(worker)
        assert node
        return [name for image in node["status"].get("images", ()) for name in image["names"]]

    def switch(to: str) -> None:
        body = f'{{"spec": {{"images": "{to}"}}}}'
        cluster.kubectl("patch", "cmlworker", worker.name, "--type=merge", "-p", body)

    assert shown() == []
    switch("On")
    try:
        names = until(shown, 60)
        assert "cml/alpine-sim" in names
        assert names == sorted(names)
    finally:
        switch("Off")
    until(lambda: not shown(), 60)
