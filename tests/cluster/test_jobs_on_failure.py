"""The Job controller adds up the restarts of all containers of a Pod, and deletes it at its backoffLimit."""

from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, container, is_ready
from tests.support.history import History
from tests.support.topologies import definition, pod_template, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled

ROUND = ("reboot", "reboot", "reboot", "reset")
"""After three starts without a wipe in a row a person must look; a reset begins again."""
DEVICES = tuple(f"h{number}" for number in range(5))


def start(cluster: Cluster, namespace: str, *, backoff_limit: int) -> dict[str, Any]:
    """Start a Job of one lablet with a container for each of five devices; return its Pod, which is Ready."""
    name = f"job-{namespace[-5:]}"
    cluster.define(definition(name, topology(dict.fromkeys(DEVICES, "alpine"))))
    template = pod_template(name, devices=DEVICES, restartPolicy="OnFailure")
    spec = {"backoffLimit": backoff_limit, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "exam"}, "spec": spec}
    cluster.apply(job, namespace=namespace)
    [pod] = cluster.wait_ready(namespace, 1)
    return pod


def has_failed(cluster: Cluster, namespace: str) -> bool:
    job = cluster.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/exam")
    return condition(job, "Failed").get("status") == "True"


def last_end(pod: dict[str, Any] | None, name: str = "lab") -> str:
    """Why a container last ended; empty if it never did."""
    return str(container(pod, name).get("lastState", {}).get("terminated", {}).get("message", ""))


@pytest.mark.timeout(300)  # the starts again have a back-off
def test_reboots_and_resets_do_not_use_up_a_job(cluster: Cluster, namespace: str) -> None:
    """Eight reboots of the worker and two resets: the Pod lives, and each is told with its number."""
    history = History(*cluster.workers)
    pod = start(cluster, namespace, backoff_limit=1)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    worker, lab = cluster.simulator_of(pod), cluster.lab_of(pod)
    assert lab
    for number, what in enumerate((*ROUND, *ROUND, "reboot", "reboot"), start=1):
        if what == "reboot":
            worker.reboot()
        else:
            cluster.kubectl(
                "annotate", "pod", name, f"vkprovider.io/reset=no-{number}", "--overwrite", f"--namespace={namespace}"
            )

        def is_back(number: int = number) -> dict[str, Any] | None:
            now = cluster.pod(namespace, name)
            return now if is_ready(now) and last_end(now).endswith(f"(number {number})") else None

        until(is_back, 90, f"not Ready after {what}, number {number}")
    now = cluster.pod(namespace, name)
    assert now
    assert now["metadata"]["uid"] == uid
    assert {status["name"]: status["restartCount"] for status in now["status"]["containerStatuses"]} == dict.fromkeys(
        ("lab", *DEVICES), 0
    )
    assert last_end(now, "h0").endswith("(number 10)")
    after = cluster.lab_of(now)
    assert after
    assert after["id"] != lab["id"], "each reset imports the lab again"
    once = [*["start"] * 3, "stop", "wipe", "DELETE", "import", "start"]
    assert history.of(uid) == ["import", "start", *once, *once, *["start"] * 2]
    assert not has_failed(cluster, namespace)
    told = [event["message"] for event in cluster.events(namespace, name)]
    assert any("without a wipe (number 10)" in message for message in told)
    assert any("on request (number 8)" in message for message in told)


def test_lab_that_fails_twice_fails_its_job(cluster: Cluster, namespace: str) -> None:
    """Its lab is deleted on the worker, and imported again once."""
    pod = start(cluster, namespace, backoff_limit=2)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    worker, lab = cluster.simulator_of(pod), cluster.lab_of(pod)
    assert lab
    remove(cluster, pod)

    def has_another_lab() -> dict[str, Any] | None:
        if (cluster.lab_of(cluster.pod(namespace, name) or {}) or lab)["id"] == lab["id"]:
            return None
        now = cluster.pod(namespace, name)  # a look before that may be older than the lab
        return now if is_ready(now) else None

    now = until(has_another_lab, 90, "no other lab is imported")
    assert now
    assert {status["name"]: status["restartCount"] for status in now["status"]["containerStatuses"]} == {
        "lab": 1
    } | dict.fromkeys(DEVICES, 0)
    assert not has_failed(cluster, namespace)
    remove(cluster, now)
    until(lambda: has_failed(cluster, namespace), 90, "the Job has not failed")
    until(lambda: cluster.pod(namespace, name) is None, 60, "its Pod stays")
    assert worker.lab_of(uid) is None


def remove(cluster: Cluster, pod: dict[str, Any]) -> None:
    """Delete the lab of a Pod on its worker, as another client of CML does."""
    worker, lab = cluster.simulator_of(pod), cluster.lab_of(pod)
    assert lab

    def gone() -> bool:
        """Begin again if CML refuses a step: the provider may have started the stopped lab again in between."""
        for how in ("PUT stop", "PUT wipe", "DELETE "):
            method, operation = how.split(" ")
            worker.cml(method, f"/labs/{lab['id']}/{operation}".rstrip("/"))
        return True

    until(gone)
