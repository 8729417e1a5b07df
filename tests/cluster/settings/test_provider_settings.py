"""The lablet controller's environment variables, observed on a provider that is a process (R000-115…122)."""

import json
import socket
import ssl
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox import SandboxError

DEFINITIONS = "/apis/vkprovider.io/v1alpha1/labletdefinitions"
NAMESPACE = "vkprovider-system"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"
AUTHORITY = "server-ca.crt"


def log(cluster: Cluster) -> list[dict[str, Any]]:
    text = cluster.sandbox.layout.log("provider-1").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_instance_id_is_on_the_health_page_and_owns_the_worker(cluster: Cluster) -> None:
    assert cluster.health()["instance_id"] == "replica-under-test"
    for worker in cluster.workers:
        assert cluster.cmlworker(worker)["status"]["owner"] == "replica-under-test"
        lease = cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{worker.node}")
        assert lease
        assert lease["spec"]["holderIdentity"] == "replica-under-test"


def test_certificate_of_the_kubelet_api_is_requested_and_served_once_it_is_approved(cluster: Cluster) -> None:
    worker = cluster.workers[0]
    [request] = until(lambda: [one for one in cluster.items(REQUESTS) if one["spec"]["signerName"] == SIGNER], 60)
    cluster.kubectl("certificate", "approve", request["metadata"]["name"])
    node = cluster.node(worker)
    assert node
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    trusting = ssl.create_default_context(cafile=str(cluster.sandbox.layout.pki / AUTHORITY))
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT

    def verified() -> bool:
        try:
            raw = socket.create_connection(("127.0.0.1", port), 5)
            with trusting.wrap_socket(raw, server_hostname="127.0.0.1"):
                return True
        except ssl.SSLCertVerificationError:
            return False

    until(verified, 60)


def test_lease_ttl_is_how_long_the_membership_is_good_for(cluster: Cluster) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vkprovider-replica-replica-under-test"
    lease = cluster.get(path)
    assert lease
    assert lease["spec"]["leaseDurationSeconds"] == 9


def test_port_range_is_the_capacity_of_a_worker_without_one(cluster: Cluster) -> None:
    worker = cluster.workers[0]
    assert "portRange" not in cluster.cmlworker(worker)["spec"]
    node = cluster.node(worker)
    assert node
    assert node["status"]["capacity"]["vkprovider.io/ports"] == "100"


def test_a_definition_with_more_ports_than_a_lablet_may_have_says_so_and_admits_none(
    cluster: Cluster, namespace: str
) -> None:
    tags = [f"serial:{port}" for port in range(4000, 4006)]
    cluster.delete_later("labletdefinition", "greedy")
    cluster.apply(definition("greedy", topology({"r1": "iosv"}, {"r1": tags})))
    found = until(lambda: condition(cluster.get(f"{DEFINITIONS}/greedy"), "Ready"), 45)
    assert found["reason"] == "TooManyPorts"
    assert found["message"] == "needs 6 external ports; the limit is 5 per lablet (PORTS_PER_INSTANCE_MAX)"
    with pytest.raises(SandboxError, match='RuntimeClass "greedy" not found'):
        cluster.apply(pod("greedy", "greedy"), namespace=namespace)


def test_configurations_are_not_read_before_a_stop(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("forgotten", topology({"r1": "iosv"})))
    cluster.apply(pod("forgotten", "forgotten"), namespace=namespace)
    worker = cluster.simulator_of(*cluster.wait_ready(namespace, 1))
    since = worker.last_request()
    cluster.kubectl("delete", "pod", "forgotten", f"--namespace={namespace}")
    done = [entry["path"].rpartition("/")[2] for entry in worker.access_log(since)]
    assert {"stop", "wipe"} <= set(done)
    assert "extract_configuration" not in done
    assert worker.labs() == []


def test_a_lab_that_does_not_start_in_time_fails_with_a_reason(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("slow", topology({"r1": "csr1000v"})))
    cluster.apply(pod("slow", "slow", restartPolicy="Never"), namespace=namespace)

    def failed() -> bool:
        found = cluster.pod(namespace, "slow")
        assert found
        assert found["status"]["phase"] == "Failed", found["status"]
        assert found["status"]["reason"] == "LabStartTimeout"
        return True

    until(failed, 60)
    assert [worker.labs() for worker in cluster.workers] == [[], []]
    notes = [event["message"] for event in cluster.events(namespace, "slow") if event["reason"] == "LabStartTimeout"]
    assert any("not booted 2 s after the start: r1" in note for note in notes)


def test_reconcile_interval_is_how_often_a_missing_source_is_looked_for(cluster: Cluster, namespace: str) -> None:
    reader = ("--clusterrole=vkprovider-topology-reader", f"--serviceaccount={NAMESPACE}:vkprovider")
    cluster.kubectl("create", "rolebinding", "topologies", *reader, f"--namespace={namespace}")
    wanted = definition("late")
    wanted["spec"]["source"] = {"configMap": {"namespace": namespace, "name": "late", "key": "cml.yaml"}}
    cluster.apply(wanted)
    cluster.delete_later("labletdefinition", "late")

    def ready() -> dict[str, Any]:
        found = cluster.get("/apis/vkprovider.io/v1alpha1/labletdefinitions/late")
        conditions = (found or {}).get("status", {}).get("conditions", [{}])
        first: dict[str, Any] = conditions[0]
        return first

    until(lambda: ready().get("reason") == "SourceNotFound")
    source = f"--from-literal=cml.yaml={topology({'h0': 'alpine'})}"
    cluster.kubectl("create", "configmap", "late", source, f"--namespace={namespace}")
    until(lambda: ready().get("status") == "True", 15)  # with the default it would be looked for after 30 s


def test_settings_without_effect_are_named_in_the_log_once(cluster: Cluster) -> None:
    named = [line["setting"] for line in log(cluster) if line["event"] == "setting accepted and not used"]
    assert {"ETCD_HOST", "ETCD_PORT", "CONTROL_PLANE_API_URL"} <= set(named)
    assert len(named) == len(set(named))


def test_secrets_are_in_no_log(cluster: Cluster) -> None:
    assert log(cluster)
    for path in cluster.sandbox.layout.logs.iterdir():
        assert "nobody-may-read" not in path.read_text(encoding="utf-8", errors="replace"), path.name
