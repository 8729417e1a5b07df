"""`kubectl lablet stop`, `start`, `reset`, `collect`, `configs`: what CML is told, and what the Pod shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_lablets_life import done, made, on
from tests.support.cluster import Cluster, container, is_ready, waiting_reason
from tests.support.plugin import lablet, succeeded
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox.controlplane.content import NAMESPACE

STATE = "vkprovider.io/state"


def start_one(cluster: Cluster, namespace: str, name: str, **metadata: Any) -> tuple[dict[str, Any], Simulator, int]:
    """Have one Ready lablet; gives its Pod, its worker and where the worker's log stands."""
    worker = cluster.workers[0]
    kind = f"two-{namespace[-5:]}"
    cluster.define(definition(kind, topology({"h0": "alpine", "R 1": "alpine"})))
    item = pod(name, kind, nodeSelector=on(worker))
    item["metadata"] |= metadata
    cluster.apply(item, namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    return ready, worker, worker.last_request()


def test_stopped_lab_starts_again_as_it_was(cluster: Cluster, namespace: str) -> None:
    """R000-019, C33: stopped on request and back, the same lab, imported once."""
    ready, worker, since = start_one(cluster, namespace, "pausing")
    lab = cluster.lab_of(ready)
    said = succeeded(cluster, "stop", "pod/pausing", "-n", namespace, "--wait")
    assert "go on with: kubectl lablet start pausing" in said
    until(lambda: done(worker, since) == ["extract", "stop"], 30)
    now = until(lambda: (p := made(cluster, namespace, "pausing")) and waiting_reason(p) == "LabStopped" and p, 30)
    assert now
    assert now["metadata"]["annotations"][STATE] == "STOPPED"
    assert (now["status"]["phase"], is_ready(now)) == ("Running", False)
    assert lab
    until(lambda: {device["state"] for device in worker.devices(lab["id"])} == {"STOPPED"}, 30)
    succeeded(cluster, "start", "pausing", "-n", namespace, "--wait")
    [again] = cluster.wait_ready(namespace, 1)
    assert again["metadata"]["uid"] == ready["metadata"]["uid"]
    assert again["metadata"]["annotations"][STATE] == "READY"
    assert (cluster.lab_of(again) or {})["id"] == lab["id"]
    assert done(worker, since) == ["extract", "stop", "start"]
    assert container(again)["restartCount"] == 0, "nothing failed"
    assert "was not stopped" in succeeded(cluster, "start", "pausing", "-n", namespace)


def test_reset_wipes_the_lab_and_starts_it_afresh(cluster: Cluster, namespace: str) -> None:
    """The learner stays; without a terminal nobody is asked, so that it must be said."""
    ready, worker, since = start_one(cluster, namespace, "spoilt", annotations={"vkprovider.io/username": "alice"})
    refused = lablet(cluster, "reset", "spoilt", "-n", namespace)
    assert refused.returncode != 0
    assert "add --yes" in refused.stderr
    assert done(worker, since) == []
    succeeded(cluster, "reset", "spoilt", "-n", namespace, "--yes", "--wait")
    [again] = cluster.wait_ready(namespace, 1)
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE", "import", "start"]
    assert again["metadata"]["uid"] == ready["metadata"]["uid"]
    assert again["metadata"]["annotations"]["vkprovider.io/username"] == "alice"
    assert container(again)["restartCount"] == 0, "a reset is no failure"
    ended = container(again)["lastState"]["terminated"]
    assert (ended["reason"], ended["message"][-10:]) == ("Reset", "(number 1)")


def test_collected_work_is_there_when_the_pod_is_gone(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """R000-017, R000-111: without a grader the lablet has succeeded; by name and by UID for a week."""
    ready, worker, since = start_one(cluster, namespace, "done", annotations={"vkprovider.io/username": "alice"})
    uid = ready["metadata"]["uid"]
    nothing = lablet(cluster, "configs", "done", "-n", namespace)
    assert nothing.returncode == 1
    assert "nothing is kept of pod" in nothing.stderr
    said = succeeded(cluster, "collect", "done", "--yes", "-n", namespace, "--wait")
    assert "pod/done Succeeded: collected, no grader is configured" in said
    assert worker.lab_of(uid) is None, "a terminal phase means that the lab is gone"
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]
    now = made(cluster, namespace, "done")
    assert container(now)["state"]["terminated"]["exitCode"] == 0
    over = lablet(cluster, "collect", "done", "--yes", "-n", namespace)
    assert (over.returncode, "has ended (Succeeded)" in over.stderr) == (1, True)
    cluster.kubectl("delete", "pod", "done", f"--namespace={namespace}")
    cluster.wait_gone(namespace)

    left = json.loads(succeeded(cluster, "configs", uid, "-n", namespace, "-o", "json"))
    assert left["configs"] == {"R 1": "hostname R 1", "h0": "hostname h0"}
    assert (left["pod"], left["podUid"], left["username"]) == ("done", uid, "alice")
    printed = succeeded(cluster, "configs", "done", "-n", namespace)
    assert printed == "==> R 1 <==\nhostname R 1\n==> h0 <==\nhostname h0\n"
    assert succeeded(cluster, "configs", "done", "-n", namespace, "--device=h0") == "hostname h0\n"
    files = succeeded(cluster, "configs", "done", "-n", namespace, "--dir", "work", directory=tmp_path)
    assert files.split() == ["work/R-1.cfg", "work/h0.cfg"]
    assert (tmp_path / "work" / "R-1.cfg").read_text() == "hostname R 1"
    format_ = lablet(cluster, "configs", "done", "-n", namespace, "-o", "xml", directory=tmp_path)
    assert (format_.returncode, [path.name for path in tmp_path.iterdir()]) == (2, ["work"])
    wrong = lablet(cluster, "configs", "done", "-n", namespace, "--device=h9")
    assert (wrong.returncode, "it kept those of R 1, h0" in wrong.stderr) == (1, True)


def test_newest_of_several_pods_of_a_name_is_shown(cluster: Cluster, namespace: str) -> None:
    first, _, _ = start_one(cluster, namespace, "again")
    succeeded(cluster, "collect", "again", "--yes", "-n", namespace, "--wait")
    cluster.kubectl("delete", "pod", "again", f"--namespace={namespace}")
    until(lambda: not cluster.pods(namespace), 30)
    second, _, _ = start_one(cluster, namespace, "again")
    result = lablet(cluster, "configs", "again", "-n", namespace)
    assert result.returncode == 0
    assert "pod/again has left nothing yet; an earlier pod of that name has" in result.stderr
    assert first["metadata"]["uid"] in result.stderr
    cluster.kubectl("delete", "pod", "again", f"--namespace={namespace}")
    until(lambda: second["metadata"]["uid"] in lablet(cluster, "configs", "again", "-n", namespace).stderr, 30)
    newest = lablet(cluster, "configs", "again", "-n", namespace).stderr
    assert f"this is the newest; others: {first['metadata']['uid']}" in newest


@pytest.mark.parametrize("command", [("ports",), ("stop",), ("start",), ("collect", "--yes"), ("reset", "--yes")])
def test_what_is_no_lablet_is_told(cluster: Cluster, namespace: str, command: tuple[str, ...]) -> None:
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}}
    cluster.apply({**other, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}, namespace=namespace)
    for name, says in (
        ("other", "is not a lablet"),
        ("nowhere", '"nowhere" not found'),
        ("svc/a", "does not name a pod"),
    ):
        result = lablet(cluster, *command, name, "-n", namespace)
        assert result.returncode != 0
        assert says in result.stderr
        assert "Traceback" not in result.stderr


def test_ports_are_those_that_cml_shows(cluster: Cluster, namespace: str) -> None:
    """R000-062, R000-063: device, way in, worker's address and port, as the tags of the lab's devices say."""
    worker, kind = cluster.workers[0], f"open-{namespace[-5:]}"
    tags = {"h 0": ["serial:4001", "pat:4003:22"], "h1": ["vnc:4005"]}
    cluster.define(definition(kind, topology({"h 0": "alpine", "h1": "alpine"}, tags)))
    cluster.apply(pod("open", kind, devices=("h-0",), nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    rows = json.loads(succeeded(cluster, "ports", "open", "-n", namespace, "-o", "json"))["items"]
    assert {row["address"] for row in rows} == {ready["status"]["podIP"]}
    assert {(row["device"], row["access"], row["container"]) for row in rows} == {
        ("h 0", "serial", "h-0"),
        ("h 0", "pat", "h-0"),
        ("h1", "vnc", ""),
    }
    port = {row["access"]: row["port"] for row in rows}
    shown = {device["label"]: sorted(device["tags"]) for device in worker.devices((cluster.lab_of(ready) or {})["id"])}
    assert shown == {"h 0": [f"pat:{port['pat']}:22", f"serial:{port['serial']}"], "h1": [f"vnc:{port['vnc']}"]}
    lines = succeeded(cluster, "ports", "open", "-n", namespace).splitlines()
    assert lines[0].split() == ["DEVICE", "ACCESS", "PROTOCOL", "ADDRESS", "PORT", "CONTAINER"]
    assert lines[-1].split() == ["h1", "vnc", "TCP", ready["status"]["podIP"], str(port["vnc"]), "<none>"]


def test_exposed_ports_show_what_the_mux_answers(cluster: Cluster, namespace: str) -> None:
    """Nobody serves the mux, so that it stays pending; the slice goes with the lablet."""
    worker, kind = cluster.workers[0], f"lent-{namespace[-5:]}"
    lent = definition(kind, topology({"h0": "alpine"}, {"h0": ["serial:4001"]}), expose={"mux": "labs.edge"})
    cluster.define(lent)
    cluster.apply(pod("lent", kind, nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    until(lambda: " pending " in succeeded(cluster, "ports", "lent", "-n", namespace), 30)
    lines = succeeded(cluster, "ports", "lent", "-n", namespace).splitlines()
    assert lines[0].split() == ["DEVICE", "ACCESS", "PROTOCOL", "ADDRESS", "PORT", "VIA", "CONTAINER"]
    uid = ready["metadata"]["uid"]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/lablet-{uid}"
    assert (cluster.get(path) or {})["endpoints"][0]["addresses"] == [ready["status"]["podIP"]]
    cluster.kubectl("delete", "pod", "lent", "-n", namespace)
    cluster.wait_gone(namespace)
    assert cluster.get(path) is None


def test_lablet_without_ports(cluster: Cluster, namespace: str) -> None:
    start_one(cluster, namespace, "shut")
    result = lablet(cluster, "ports", "shut", "-n", namespace)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith("pod/shut has no ports")


def test_login_is_a_right_of_its_own(cluster: Cluster, namespace: str) -> None:
    """Asked of vkprovider itself, with a token; without an LDS there is nothing to log in to."""
    ready, _, _ = start_one(cluster, namespace, "mine")
    tokens = {}
    for name, role in (("reader", "view"), ("portal", "vkprovider-login")):
        cluster.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
        account = f"--serviceaccount={namespace}:{name}"
        cluster.kubectl("create", "rolebinding", name, f"--clusterrole={role}", account, f"--namespace={namespace}")
        token = ("create", "token", name, "--audience=vkprovider.io", f"--namespace={namespace}")
        tokens[name] = cluster.kubectl(*token).stdout.strip()

    def said(*arguments: str, url: str = cluster.provider_url) -> str:
        result = lablet(cluster, "login", *arguments, "-n", namespace, f"--url={url}")
        assert (result.stdout, result.returncode != 0) == ("", True)
        assert "Traceback" not in result.stderr
        assert not any(token in result.stderr for token in tokens.values())
        return result.stderr

    assert "may not get lablets.vkprovider.io/login of the Pod that has this lab" in said(
        "mine", f"--token={tokens['reader']}"
    )
    for name in ("mine", ready["metadata"]["uid"]):
        assert f"Pod {namespace}/mine has no session to log in to" in said(name, f"--token={tokens['portal']}")
    assert "does not know the token" in said("mine", "--token=made-up")
    assert f"Pod {namespace}/mine has no session to log in to" in said("mine"), "with the kubeconfig's own token"
    assert "would send the token in plain text" in said("mine", "--token=x", url="http://192.0.2.1:8082")
    assert "cannot be asked" in said("mine", "--token=x", url="http://127.0.0.1:9")
