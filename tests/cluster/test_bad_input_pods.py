"""Pods that are wrong, and labs that CML refuses: a clear reason, back-off, and nothing left behind."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.support.cluster import Cluster, container, is_ready, waiting_reason
from tests.support.doctor import diagnosed, healthy
from tests.support.extra import Extra, extra_worker
from tests.support.topologies import definition, deployment, pod, topology
from tests.support.waiting import throughout, until
from vkpsandbox import Sandbox


def message_of(pod: dict[str, Any] | None) -> str:
    return str(container(pod)["state"]["waiting"]["message"])


def refused(cluster: Cluster, namespace: str, name: str, reason: str) -> str:
    """Wait until a Pod is refused with a reason, that it stays Pending and said so once; give the message."""
    until(lambda: waiting_reason(cluster.pod(namespace, name)) == reason, 30, f"{name} is not refused with {reason}")
    found = cluster.pod(namespace, name)
    assert found
    assert found["status"]["phase"] == "Pending"
    events = until(lambda: [e for e in cluster.events(namespace, name) if e["type"] == "Warning"], 15)
    assert [(e["reason"], e["message"], e["count"]) for e in events] == [(reason, message_of(found), 1)]
    finding = diagnosed(cluster, f"Pod/{namespace}/{name}", reason)
    assert finding.message == message_of(found)
    return message_of(found)


# ------------------------------------------------------------------------------------------------ what it asks for


def test_unknown_version_lists_those_kept_and_runs_once_it_exists(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("versions", version="1.0.0"))
    cluster.apply(definition("versions", version="1.1.0"))
    cluster.apply(pod("a", "versions", version="2.0.0"), namespace=namespace)
    message = refused(cluster, namespace, "a", "UnknownVersion")
    assert message == "definition versions has no version '2.0.0'; it keeps 1.1.0, 1.0.0"
    cluster.apply(definition("versions", version="2.0.0"))
    cluster.wait_ready(namespace, 1)
    healthy(cluster, f"Pod/{namespace}")


def test_container_that_names_no_device_lists_the_devices(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("devices", topology({"h0": "alpine", "h1": "alpine"})))
    cluster.apply(pod("a", "devices", devices=["h0", "r9"]), namespace=namespace)
    message = refused(cluster, namespace, "a", "UnknownDevice")
    assert (
        message == "container 'r9' names no device of devices 1.0.0; call it 'lab' for the whole lab, or one of h0, h1"
    )


TOLERATIONS: dict[str, Any] = {
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"vkprovider.io/component": "vnode"},
}


def test_stray_pod_is_told_why_and_gives_its_room_back(cluster: Cluster, namespace: str) -> None:
    """As a kubelet ends a Pod that it does not admit: what it requests is free for lablets."""
    room = cluster.workers[0]
    squatter = pod("squatter", "nginx", tolerations=[{"operator": "Exists"}], nodeName=room.node)
    del squatter["spec"]["runtimeClassName"]
    squatter["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10000"}}
    cluster.apply(squatter, namespace=namespace)
    until(lambda: (cluster.pod(namespace, "squatter") or {})["status"]["phase"] == "Failed", 30)
    said = (cluster.pod(namespace, "squatter") or {})["status"]
    assert said["reason"] == "NotALablet"
    events = until(lambda: [e for e in cluster.events(namespace, "squatter") if e["type"] == "Warning"], 15)
    assert [e["reason"] for e in events] == ["NotALablet"]
    assert "this node runs lablets only, and the pod has no runtimeClassName" in events[0]["message"]
    cluster.define(definition("roomy"))
    cluster.apply(pod("lablet", "roomy", nodeSelector={"kubernetes.io/hostname": room.node}), namespace=namespace)
    until(lambda: is_ready(cluster.pod(namespace, "lablet")), 60, "the lablet finds no room")


def test_stray_pod_of_a_controller_stays_pending_and_is_told_why(cluster: Cluster, namespace: str) -> None:
    item = deployment("a", "nginx", 1)
    item["spec"]["template"]["spec"] |= TOLERATIONS
    del item["spec"]["template"]["spec"]["runtimeClassName"]
    cluster.apply(item, namespace=namespace)
    [name] = until(lambda: [p["metadata"]["name"] for p in cluster.pods(namespace)], 15)
    message = refused(cluster, namespace, name, "NotALablet")
    assert "this node runs lablets only, and the pod has no runtimeClassName" in message


def test_init_containers_are_refused(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("init"))
    cluster.apply(pod("a", "init", initContainers=[{"name": "i", "image": "busybox"}]), namespace=namespace)
    assert "remove them, or the injector that adds them" in refused(cluster, namespace, "a", "NotALablet")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (("other:1.0.0", "mixed"), "container 'lab' has image 'other:1.0.0', but runtimeClassName is 'mixed'"),
        (("mixed", "other"), "container 'h0' has image 'other', but runtimeClassName is 'mixed'"),
        (("mixed:1.0.0", "mixed:2"), "the containers name versions 1.0.0, 2; a lablet has one"),
    ],
)
def test_mixed_images_are_refused(cluster: Cluster, namespace: str, images: tuple[str, str], message: str) -> None:
    cluster.define(definition("mixed"))
    item = pod("a", "mixed", devices=["h0"])
    for entry, image in zip(item["spec"]["containers"], images, strict=True):
        entry["image"] = image
    cluster.apply(item, namespace=namespace)
    assert message in refused(cluster, namespace, "a", "DefinitionMismatch")


def test_provider_that_starts_again_repeats_no_warning(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("told"))
    cluster.delete_later("labletdefinition", "told-too")
    cluster.apply(definition("told-too", "lab: ["))
    cluster.apply(pod("a", "told", version="9"), namespace=namespace)
    refused(cluster, namespace, "a", "UnknownVersion")
    diagnosed(cluster, "LabletDefinition/told-too", "TopologyInvalid")
    owners = {worker.name: cluster.cmlworker(worker)["status"]["owner"] for worker in cluster.workers}
    cluster.sandbox.stop("provider-1")
    cluster.sandbox.start("provider-1")
    for worker in cluster.workers:
        until(lambda w=worker: cluster.cmlworker(w)["status"]["owner"] != owners[w.name], 90)  # type: ignore[misc]
    cluster.apply(pod("b", "told", version="9"), namespace=namespace)  # told after everything that was there before
    until(lambda: cluster.events(namespace, "b"), 45)
    assert len([e for e in cluster.events(namespace, "a") if e["type"] == "Warning"]) == 1
    assert len([e for e in cluster.events("default", "told-too") if e["reason"] == "TopologyInvalid"]) == 1


# ------------------------------------------------------------------------------------------------ the worker


@pytest.fixture(scope="module")
def extra(sandbox: Sandbox) -> Iterator[Extra]:
    """A worker of its own, with room for 16 cores."""
    with extra_worker(Cluster(sandbox), "bad-pods", "--boot-seconds=0.2") as made:
        made.wait_ready()
        yield made


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, namespace: str) -> Iterator[None]:
    """At the end of each test its Pods leave no lab and no row."""
    yield
    if "extra" not in request.fixturenames:
        return
    extra: Extra = request.getfixturevalue("extra")
    extra.simulator.clear_faults()
    extra.simulator.admin("POST", "/licence", {"registered": True})
    uids = [item["metadata"]["uid"] for item in extra.cluster.pods(namespace)]
    extra.cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--timeout=30s")
    until(lambda: not extra.left_behind(uids), 30, f"left behind: {extra.left_behind(uids)}")


def test_pod_of_another_environment_is_refused(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("elsewhere"))
    item = pod("a", "elsewhere", nodeName=f"vnode.{extra.name}", tolerations=[{"operator": "Exists"}])
    cluster.apply(item, namespace=namespace)
    message = refused(cluster, namespace, "a", "EnvironmentMismatch")
    assert message.startswith("definition elsewhere runs in environment default, this worker is in bad-pods; ")


def test_pod_bound_to_a_full_worker_runs_when_there_is_room(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("big", environment=extra.name, resources={"cpu": "10"}))
    bound: dict[str, Any] = {"nodeName": f"vnode.{extra.name}", "tolerations": [{"operator": "Exists"}]}
    cluster.apply(pod("first", "big", **bound), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    cluster.apply(pod("second", "big", **bound), namespace=namespace)
    message = refused(cluster, namespace, "second", "OutOfcpu")
    assert message == "the worker cannot hold one more lablet: cpu 20 > 16"
    cluster.kubectl("delete", "pod", "first", f"--namespace={namespace}")
    cluster.wait_ready(namespace, 1)


def test_successor_on_a_full_worker_waits_for_the_release_without_a_warning(
    cluster: Cluster, namespace: str, extra: Extra
) -> None:
    cluster.define(definition("full", environment=extra.name, resources={"cpu": "10"}))
    extra.simulator.fault("delay", "DELETE .*/labs/", delay_s=2.0, count=1)
    cluster.apply(pod("first", "full"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    bound: dict[str, Any] = {"nodeName": f"vnode.{extra.name}", "tolerations": [{"operator": "Exists"}]}
    cluster.kubectl("delete", "pod", "first", "--wait=false", f"--namespace={namespace}")
    cluster.apply(pod("second", "full", **bound), namespace=namespace)
    until(lambda: is_ready(cluster.pod(namespace, "second")), 45)
    assert [e["reason"] for e in cluster.events(namespace, "second") if e["type"] == "Warning"] == []


# ------------------------------------------------------------------------------------------------ CML refuses


def attempts(extra: Extra, since: int, method: str, end: str) -> list[float]:
    """Give when requests of a kind arrived."""
    log = extra.simulator.access_log(since)
    return [e["arrived_unix_s"] for e in log if e["method"] == method and e["path"].rstrip("/").endswith(end)]


def is_backing_off(times: list[float]) -> bool:
    """Tell whether the pauses between attempts grow, and not only by their jitter, which halves them at most."""
    pauses = [b - a for a, b in pairwise(times)]
    return len(pauses) >= 3 and pauses[-1] > 2.2 * pauses[0]


def test_import_that_cml_refuses_says_what_cml_said(cluster: Cluster, namespace: str, extra: Extra) -> None:
    link = {"id": "l0", "n1": "n0", "i1": "i9", "n2": "n1", "i2": "i9", "label": "x"}
    broken = topology({"h0": "alpine", "h1": "alpine"}).replace("links: []", f"links: [{link}]")
    cluster.define(definition("unimportable", broken, environment=extra.name))
    since = extra.simulator.last_request()
    cluster.apply(pod("a", "unimportable"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "a")) == "ImportRefused", 30)
    assert "POST /import: 400" in message_of(cluster.pod(namespace, "a"))
    diagnosed(cluster, f"Pod/{namespace}/a", "ImportRefused")
    until(lambda: is_backing_off(attempts(extra, since, "POST", "/import")), 60, "no growing pauses between imports")
    assert len([e for e in cluster.events(namespace, "a") if e["type"] == "Warning"]) == 1
    assert extra.simulator.labs() == []


def test_import_is_tried_again_until_cml_takes_it(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("reluctant", environment=extra.name))
    extra.simulator.fault("status", "POST .*/import", status=400, count=2)
    cluster.apply(pod("a", "reluctant"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "a")) == "ImportRefused", 30)
    [running] = cluster.wait_ready(namespace, 1)
    assert [lab["lab_title"][-36:] for lab in extra.simulator.labs()] == [running["metadata"]["uid"]]
    healthy(cluster, f"Pod/{namespace}")


def test_start_without_a_licence_waits_for_it(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("unlicensed", environment=extra.name))
    extra.simulator.admin("POST", "/licence", {"registered": False})
    since = extra.simulator.last_request()
    cluster.apply(pod("a", "unlicensed"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "a")) == "StartRefused", 30)
    assert "/start: 4" in message_of(cluster.pod(namespace, "a"))
    diagnosed(cluster, f"Pod/{namespace}/a", "StartRefused")
    until(lambda: is_backing_off(attempts(extra, since, "PUT", "/start")), 60, "no growing pauses between starts")
    extra.simulator.admin("POST", "/licence", {"registered": True})
    cluster.wait_ready(namespace, 1)
    assert len(extra.simulator.labs()) == 1


def test_other_lablets_do_not_hurry_one_that_is_held_back(cluster: Cluster, namespace: str, extra: Extra) -> None:
    """Every lablet that boots has the worker observed each second; that must not wake one that failed."""
    cluster.define(
        definition("stuck", topology({"x": "iosv"}), environment=extra.name),
        definition("lively", environment=extra.name),
    )
    extra.simulator.fault("status", "PUT .*/start", status=400, count=100)
    since = extra.simulator.last_request()
    cluster.apply(pod("stuck", "stuck"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "stuck")) == "StartRefused", 30)
    cluster.apply(*(pod(f"other-{n}", "lively") for n in range(3)), namespace=namespace)
    throughout(lambda: len(attempts(extra, since, "PUT", "/start")) < 4 * 6, 6)


def test_worker_that_fails_every_import_is_named(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("failing", environment=extra.name))
    extra.simulator.fault("status", "POST .*/import", status=500, seconds=4)
    cluster.apply(pod("a", "failing"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "a")) == "WorkerError", 30)
    assert "POST /import: 500" in message_of(cluster.pod(namespace, "a"))
    assert is_ready(extra.node), "the worker answers everything else"
    cluster.wait_ready(namespace, 1)
    assert len(extra.simulator.labs()) == 1


def test_refused_pod_can_be_deleted(cluster: Cluster, namespace: str, extra: Extra) -> None:
    cluster.define(definition("hopeless", environment=extra.name))
    extra.simulator.fault("status", "POST .*/import", status=400)
    cluster.apply(pod("a", "hopeless"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "a")) == "ImportRefused", 30)
    cluster.kubectl("delete", "pod", "a", f"--namespace={namespace}", "--timeout=10s")
    assert cluster.pods(namespace) == []
