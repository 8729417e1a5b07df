"""What stock controllers must leave as it is for a minute, all in the same minute; a worker that fails heals."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.doctor import examine
from tests.support.extra import Extra, extra_worker
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkprovider.doctor.findings import Finding, Level
from vkpsandbox import Sandbox

MINUTE_S = 60.0
REPLICAS = 3
NAMESPACE = "refused"
REFUSED = {
    "no-lablet": "NotALablet",
    "mixed": "DefinitionMismatch",
    "no-version": "UnknownVersion",
    "no-device": "UnknownDevice",
}
"""Deployment: the reason why its Pods wait."""


def deployments() -> list[dict[str, Any]]:
    """Make Deployments of which no Pod can run."""
    made = {name: deployment(name, "minute", REPLICAS) for name in REFUSED}
    template = {name: item["spec"]["template"]["spec"] for name, item in made.items()}
    del template["no-lablet"]["runtimeClassName"]
    template["no-lablet"] |= {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"vkprovider.io/component": "vnode"},
    }
    template["mixed"]["containers"][0]["image"] = "other"
    template["no-version"]["containers"][0]["image"] = "minute:9.9.9"
    template["no-device"]["containers"].append({**template["no-device"]["containers"][0], "name": "r9"})
    return list(made.values())


class Minute(NamedTuple):
    """What was seen at its beginning, in its middle and at its end."""

    pods: dict[str, list[dict[str, Any]]]
    then: dict[str, list[dict[str, Any]]]
    warnings: dict[str, list[dict[str, Any]]]
    findings: list[Finding]
    ill: list[Finding]
    ill_worker: dict[str, Any]
    ill_pods: dict[str, dict[str, Any]]
    ready_before: dict[str, dict[str, Any]]
    ready_after: dict[str, dict[str, Any]]
    labs: list[dict[str, Any]]
    probes: int


def by_name(pods: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in pods}


def wait_refused(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """Wait until all Pods are refused; give them by Deployment."""

    def pods() -> dict[str, list[dict[str, Any]]]:
        found = {name: cluster.pods(NAMESPACE, f"app={name}") for name in REFUSED}
        reasons = {name: [waiting_reason(item) for item in items] for name, items in found.items()}
        assert reasons == {name: [reason] * REPLICAS for name, reason in REFUSED.items()}
        return found

    return until(pods, 60)


@pytest.fixture(scope="module")
def minute(sandbox: Sandbox) -> Iterator[Minute]:
    """Create refused Deployments, let a worker with lablets answer 500, and look for a minute."""
    cluster = Cluster(sandbox)
    with extra_worker(cluster, "ill", "--boot-seconds=0.2") as extra:
        extra.wait_ready()
        cluster.define(definition("minute"), definition("on-ill", environment="ill"))
        cluster.kubectl("create", "namespace", NAMESPACE)
        try:
            cluster.apply(*deployments(), namespace=NAMESPACE)
            pods = wait_refused(cluster)
            began = time.monotonic()
            cluster.apply(deployment("on-ill", "on-ill", 2), namespace=NAMESPACE)
            before = by_name(cluster.wait_ready(NAMESPACE, 2, "app=on-ill"))
            yield watch(cluster, extra, began, pods, before)
        finally:
            cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
            cluster.wait_gone(NAMESPACE)
            cluster.kubectl("delete", "labletdefinition", "minute", "on-ill", "--timeout=30s")


def watch(
    cluster: Cluster,
    extra: Extra,
    began: float,
    pods: dict[str, list[dict[str, Any]]],
    before: dict[str, dict[str, Any]],
) -> Minute:
    since = extra.simulator.last_request()
    extra.simulator.fault("status", " /api/", status=500, seconds=MINUTE_S)
    until(lambda: condition(cluster.get(extra.path), "Ready").get("status") == "False", 45)
    until(lambda: not any(is_ready(item) for item in cluster.pods(NAMESPACE, "app=on-ill")), 30)
    cluster.kubectl("scale", "deployment", "on-ill", "--replicas=3", f"--namespace={NAMESPACE}")
    ill_pods = by_name(cluster.pods(NAMESPACE, "app=on-ill"))
    ill_worker = cluster.get(extra.path) or {}
    ill = list(examine(cluster).findings)
    time.sleep(max(0.0, began + MINUTE_S - time.monotonic()))  # the minute that is to be watched
    then = {name: cluster.pods(NAMESPACE, f"app={name}") for name in REFUSED}
    events = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/events")
    findings = list(examine(cluster).findings)
    probes = len(extra.simulator.access_log(since))
    after = by_name(cluster.wait_ready(NAMESPACE, 3, "app=on-ill", within_s=120))
    return Minute(
        pods=pods,
        then=then,
        warnings={
            item["metadata"]["name"]: [
                e
                for e in events
                if e["involvedObject"].get("uid") == item["metadata"]["uid"] and e["type"] == "Warning"
            ]
            for items in then.values()
            for item in items
        },
        findings=findings,
        ill=ill,
        ill_worker=ill_worker,
        ill_pods=ill_pods,
        ready_before=before,
        ready_after=after,
        labs=extra.simulator.labs(),
        probes=probes,
    )


@pytest.mark.parametrize("name", REFUSED)
def test_refused_deployment_has_as_many_pods_as_replicas(minute: Minute, name: str) -> None:
    before, after = minute.pods[name], minute.then[name]
    assert sorted(item["metadata"]["uid"] for item in after) == sorted(item["metadata"]["uid"] for item in before)
    for item in after:
        assert item["status"]["phase"] == "Pending"
        waiting = container(item)["state"]["waiting"]
        assert waiting["reason"] == REFUSED[name]
        said = minute.warnings[item["metadata"]["name"]]
        assert [(e["reason"], e["message"], e["count"]) for e in said] == [(REFUSED[name], waiting["message"], 1)]


@pytest.mark.parametrize("name", REFUSED)
def test_doctor_tells_a_refused_deployment_in_one_line(minute: Minute, name: str) -> None:
    [finding] = [f for f in minute.findings if f.object.startswith(f"Pod/{NAMESPACE}/{name}-")]
    assert finding.reason == REFUSED[name]
    assert finding.message.endswith(f"(and {REPLICAS - 1} more like it)")
    assert finding.remedy


def test_worker_that_answers_500_is_named_with_what_it_said(minute: Minute) -> None:
    ready = condition(minute.ill_worker, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "WorkerUnreachable")
    assert "500" in ready["message"]
    [finding] = [f for f in minute.ill if f.object == "CMLWorker/ill" and f.level is Level.FAULT]
    assert finding.reason == "WorkerUnreachable"
    for name in minute.ready_before:
        said = condition(minute.ill_pods[name], "Ready")
        assert (said["status"], said["reason"]) == ("False", "WorkerUnreachable")


def test_lablets_of_a_failing_worker_are_as_before_when_it_answers(minute: Minute) -> None:
    old = {name: minute.ready_after[name] for name in minute.ready_before}
    assert [lab_of(item) for item in old.values()] == [lab_of(item) for item in minute.ready_before.values()]
    assert {container(item)["restartCount"] for item in old.values()} == {0}
    assert len(minute.labs) == len(minute.ready_after) == 3


def lab_of(pod: dict[str, Any]) -> str:
    return str(container(pod)["containerID"])


def test_failing_worker_was_not_flooded(minute: Minute) -> None:
    """Two requests for each probe of one second, the doctor's and a login now and then."""
    assert minute.probes < 4 * MINUTE_S
