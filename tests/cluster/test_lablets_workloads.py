"""Stock controllers make, replace and remove lablets: the shipped examples, applied by a user (R004-002, -043…048)."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cluster import Cluster, condition, container, is_ready
from tests.support.waiting import until
from vkpsandbox import Sandbox

pytestmark = pytest.mark.tunnelled

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"


def image_of(pod: dict[str, Any]) -> str:
    """What runs, as the provider reports it."""
    return str(container(pod).get("image", ""))


@pytest.fixture(scope="module")
def netlab(sandbox: Sandbox) -> Iterator[dict[str, Any]]:
    """The definition of all examples."""
    cluster = Cluster(sandbox)
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "netlab.yaml").read_text())
    cluster.define(found)
    yield found
    cluster.heal()


def example(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.kubectl("apply", "-f", str(EXAMPLES / f"{name}.yaml"), f"--namespace={namespace}")


def labs(cluster: Cluster) -> list[str]:
    return [lab["lab_title"] for worker in cluster.workers for lab in worker.labs()]


@pytest.mark.usefixtures("netlab")
def test_deployment_goes_up_and_down(cluster: Cluster, namespace: str) -> None:
    """R004-043…046, R004-048."""
    example(cluster, namespace, "deployment")
    pods = cluster.wait_ready(namespace, 4)
    uids = sorted(p["metadata"]["uid"] for p in pods)
    assert sorted(title[-36:] for title in labs(cluster)) == uids
    assert {p["spec"]["nodeName"] for p in pods} == {worker.node for worker in cluster.workers}
    for pod in pods:
        assert pod["status"]["podIP"] == cluster.simulator_of(pod).worker.address  # R004-014
        lab = cluster.lab_of(pod)
        assert lab
        assert pod["metadata"]["annotations"]["vkprovider.io/lab-id"] == lab["id"]
        assert f"pod: {namespace}/{pod['metadata']['name']}" in lab["lab_notes"]
    cluster.kubectl("scale", "deployment", "netlab", "--replicas=1", f"--namespace={namespace}")
    [left] = cluster.wait_ready(namespace, 1)
    until(lambda: [title[-36:] for title in labs(cluster)] == [left["metadata"]["uid"]], 30)
    cluster.kubectl("scale", "deployment", "netlab", "--replicas=0", f"--namespace={namespace}")
    cluster.wait_gone(namespace)
    until(lambda: not labs(cluster), 15)


def test_changed_tag_is_a_rollout_to_another_version(cluster: Cluster, namespace: str, netlab: dict[str, Any]) -> None:
    """R000-082: a new version reaches new pods only; the old one can still be named."""
    example(cluster, namespace, "deployment")
    before = cluster.wait_ready(namespace, 4)
    newer = copy.deepcopy(netlab)
    newer["spec"]["version"] = "1.1.0"
    newer["spec"]["source"]["inline"] = newer["spec"]["source"]["inline"].replace("two hosts", "two better hosts")
    cluster.apply(newer)
    path = "/apis/vkprovider.io/v1alpha1/labletdefinitions/netlab"
    until(lambda: (cluster.get(path) or {})["status"]["version"] == "1.1.0", 30)
    versions = (cluster.get(path) or {})["status"]["versions"]
    assert [entry["version"] for entry in versions] == ["1.1.0", "1.0.0"]
    assert len({entry["digest"] for entry in versions}) == 2
    untouched = cluster.wait_ready(namespace, 4)
    assert {p["metadata"]["uid"] for p in untouched} == {p["metadata"]["uid"] for p in before}

    cluster.kubectl("scale", "deployment", "netlab", "--replicas=5", f"--namespace={namespace}")
    assert {image_of(p) for p in cluster.wait_ready(namespace, 5)} == {"netlab:1.0.0"}
    cluster.kubectl("set", "image", "deployment/netlab", "lab=netlab:1.1.0", f"--namespace={namespace}")
    cluster.kubectl("rollout", "status", "deployment/netlab", "--timeout=60s", f"--namespace={namespace}")
    after = cluster.wait_ready(namespace, 5)
    assert {image_of(p) for p in after} == {"netlab:1.1.0"}
    for pod in after:
        lab = cluster.lab_of(pod)
        assert lab
        assert pod["metadata"]["annotations"]["vkprovider.io/content"].startswith("1.1.0@sha256:")
    cluster.kubectl("rollout", "undo", "deployment/netlab", f"--namespace={namespace}")
    cluster.kubectl("rollout", "status", "deployment/netlab", "--timeout=60s", f"--namespace={namespace}")
    assert {image_of(p) for p in cluster.wait_ready(namespace, 5)} == {"netlab:1.0.0"}
    cluster.apply(netlab)
    until(
        lambda: (cluster.get(path) or {})["status"]["version"] == "1.0.0", 30, "an older version is not current again"
    )


def test_replicas_differ_by_their_parameters(cluster: Cluster, namespace: str) -> None:
    """The shipped example, applied as it is; its RoleBinding is what lets the provider read the Secret."""
    documents = yaml.safe_load_all((EXAMPLES / "parameters.yaml").read_text())
    cluster.define(*(each for each in documents if each["kind"] == "LabletDefinition"))
    example(cluster, namespace, "parameters")
    for pod in cluster.wait_ready(namespace, 2):
        name, lab = pod["metadata"]["name"], cluster.lab_of(pod)
        assert lab
        imported = cluster.simulator_of(pod).cml("GET", f"/labs/{lab['id']}/topology")
        text = str(imported["nodes"][0]["configuration"])
        for line in (f"hostname {name}", "enable secret change-me", f"ip address 10.0.{name[-1]}.1 255.255.255.0"):
            assert line in text
        assert "ntp server 192.0.2.123" in text
        assert "change-me" not in yaml.safe_dump([pod, *cluster.events(namespace, name)])
    cluster.kubectl("delete", "statefulset", "seat", f"--namespace={namespace}")
    cluster.wait_gone(namespace)


@pytest.mark.usefixtures("netlab")
def test_job_is_complete_when_its_labs_ended(cluster: Cluster, namespace: str) -> None:
    example(cluster, namespace, "job")
    pods = cluster.wait_ready(namespace, 2)
    first, second = (p["metadata"]["name"] for p in pods)
    cluster.kubectl("annotate", "pod", first, "vkprovider.io/desired-state=TERMINATED", f"--namespace={namespace}")
    done = until(lambda: (p := cluster.pod(namespace, first)) and p["status"]["phase"] == "Succeeded" and p, 45)
    assert done
    state = container(done)["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (0, "Completed")
    assert cluster.lab_of(done) is None, "the end is told when the lab is gone"
    assert is_ready(cluster.pod(namespace, second))
    job = f"/apis/batch/v1/namespaces/{namespace}/jobs/exam"
    until(lambda: (cluster.get(job) or {})["status"].get("succeeded") == 1, 30)
    cluster.kubectl("annotate", "pod", second, "vkprovider.io/desired-state=TERMINATED", f"--namespace={namespace}")
    until(lambda: condition(cluster.get(job), "Complete").get("status") == "True", 45)
    assert labs(cluster) == []
    assert {p["status"]["phase"] for p in cluster.pods(namespace)} == {"Succeeded"}


@pytest.mark.usefixtures("netlab")
def test_job_whose_deadline_passes_fails(cluster: Cluster, namespace: str) -> None:
    """C59: activeDeadlineSeconds of the Pod."""
    job = yaml.safe_load((EXAMPLES / "job.yaml").read_text())
    job["spec"] |= {"completions": 1, "parallelism": 1}
    job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 3
    cluster.apply(job, namespace=namespace)
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/exam"
    until(lambda: condition(cluster.get(path), "Failed").get("status") == "True", 60)
    [pod] = cluster.pods(namespace)
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert labs(cluster) == []
    told = {e["reason"]: e["message"] for e in cluster.events(namespace, pod["metadata"]["name"])}
    assert "activeDeadlineSeconds of 3" in told["DeadlineExceeded"]


@pytest.mark.usefixtures("netlab")
def test_statefulset_makes_a_name_again_when_its_lab_is_gone(cluster: Cluster, namespace: str) -> None:
    example(cluster, namespace, "statefulset")
    pods = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, 2)}
    assert sorted(pods) == ["lab-0", "lab-1"]
    old = pods["lab-0"]
    until(lambda: old["metadata"]["creationTimestamp"] <= pods["lab-1"]["metadata"]["creationTimestamp"], 3)
    cluster.kubectl("delete", "pod", "lab-0", f"--namespace={namespace}")
    assert cluster.lab_of(old) is None
    again = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, 2)}
    assert again["lab-0"]["metadata"]["uid"] != old["metadata"]["uid"]
    assert again["lab-1"]["metadata"]["uid"] == pods["lab-1"]["metadata"]["uid"]
    cluster.kubectl("scale", "statefulset", "lab", "--replicas=0", f"--namespace={namespace}")
    cluster.wait_gone(namespace)
    until(lambda: not labs(cluster), 15)


@pytest.mark.usefixtures("netlab")
def test_daemonset_puts_one_lablet_on_each_worker(cluster: Cluster, namespace: str) -> None:
    example(cluster, namespace, "daemonset")
    pods = cluster.wait_ready(namespace, 3)
    assert {p["spec"]["nodeName"] for p in pods} == {worker.node for worker in cluster.workers}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/probe"
    until(lambda: (cluster.get(path) or {})["status"].get("numberAvailable") == 3, 15)
    cluster.kubectl("delete", "daemonset", "probe", f"--namespace={namespace}")
    cluster.wait_gone(namespace)


def test_daemonset_of_others_is_updated_past_the_workers(cluster: Cluster, namespace: str) -> None:
    """Its Pods tolerate everything, as those of networks do; an update of one at a time reaches every node."""
    labels = {"app": "network"}
    spec = {"containers": [{"name": "main", "image": "cni:1"}], "tolerations": [{"operator": "Exists"}]}
    everywhere = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "network"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    cluster.apply(everywhere, namespace=namespace)
    rollout = ("rollout", "status", "daemonset/network", f"--namespace={namespace}", "--timeout=60s")
    cluster.kubectl(*rollout)
    cluster.kubectl("set", "image", "daemonset/network", "main=cni:2", f"--namespace={namespace}")
    cluster.kubectl(*rollout)
    shown = cluster.kubectl("get", "pods", f"--namespace={namespace}", "--no-headers").stdout.splitlines()
    assert [line.split()[1:3] for line in shown] == [["0/1", "NotALablet"]] * len(cluster.workers)
    assert not labs(cluster)
    cluster.kubectl("delete", "daemonset", "network", f"--namespace={namespace}")
    cluster.wait_gone(namespace)


@pytest.mark.usefixtures("netlab")
def test_quota_counts_what_labs_are_charged(cluster: Cluster) -> None:
    cluster.delete_later("namespace", "team-a")
    path, shipped = "/api/v1/namespaces/team-a/resourcequotas/labs", EXAMPLES / "quota.yaml"
    # The quota counts from when its controller has seen it: it comes before the lablets, and then all is as shipped.
    cluster.apply(*(each for each in yaml.safe_load_all(shipped.read_text()) if each["kind"] != "Deployment"))
    until(lambda: (cluster.get(path) or {}).get("status", {}).get("hard"), 30)
    cluster.kubectl("apply", "-f", str(shipped))
    cluster.wait_ready("team-a", 3)
    quota = cluster.get(path)
    assert quota
    assert quota["status"]["used"] == {
        "requests.cpu": "6003m",
        "limits.cpu": "6030m",
        "requests.memory": "3075Mi",
        "requests.vkprovider.io/lab-nodes": "6",
    }
    cluster.kubectl("scale", "deployment", "netlab", "--replicas=4", "--namespace=team-a")
    selector = "involvedObject.kind=ReplicaSet,reason=FailedCreate"

    def refused() -> list[str]:
        events = cluster.items(f"/api/v1/namespaces/team-a/events?fieldSelector={selector}")
        return [event["message"] for event in events if "exceeded quota: labs" in event["message"]]

    assert "requests.vkprovider.io/lab-nodes" in until(refused, 30)[0]
    assert len(cluster.wait_ready("team-a", 3)) == 3
    cluster.kubectl("delete", "deployment", "netlab", "--namespace=team-a")
    cluster.wait_gone("team-a")


@pytest.mark.usefixtures("netlab")
def test_service_has_the_workers_addresses_of_ready_lablets(cluster: Cluster, namespace: str) -> None:
    """R004-013, R004-014: an EndpointSlice names the workers, and loses an address with its lablet's Ready."""
    example(cluster, namespace, "daemonset")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "probes"},
        "spec": {"selector": {"app": "probe"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    cluster.apply(service, namespace=namespace)
    pods = cluster.wait_ready(namespace, 3)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    path = f"{slices}?labelSelector=kubernetes.io/service-name=probes"

    def ready() -> set[str]:
        endpoints = [endpoint for piece in cluster.items(path) for endpoint in piece["endpoints"] or []]
        return {address for e in endpoints if e["conditions"]["ready"] for address in e["addresses"]}

    everybody = {worker.worker.address for worker in cluster.workers}
    until(lambda: ready() == everybody, 30)
    victim = next(p for p in pods if p["spec"]["nodeName"] == cluster.workers[0].node)
    lab = cluster.lab_of(victim)
    assert lab
    cluster.workers[0].fault("status", "/start$", status=503)  # so that it stays down for a while
    cluster.workers[0].crash(lab["id"], "h1")
    until(lambda: ready() == everybody - {cluster.workers[0].worker.address}, 30)
    cluster.workers[0].clear_faults()
    until(lambda: ready() == everybody, 120)
