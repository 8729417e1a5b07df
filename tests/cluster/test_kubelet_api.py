"""The kubelet API as kubectl uses it, through a stock API server: logs, rights, consoles, and what a Node declares."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.desks import PATIENCE_S, Desk
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")

DECLARED_FEATURES_SINCE = 36
"""The minor version of the first Kubernetes that keeps a Node's declaredFeatures by default."""


@pytest.fixture
def lablet(cluster: Cluster, namespace: str) -> str:
    """The arguments of kubectl that name a lablet that runs, and its container."""
    name = f"log-{namespace[-5:]}"
    cluster.define(definition(name))
    cluster.apply(pod("told", name), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    until(lambda: any(e["reason"] == "Ready" for e in cluster.events(namespace, "told")), 30)
    return f"--namespace={namespace}"


def test_every_option_of_logs(cluster: Cluster, lablet: str) -> None:
    def logs(*options: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return cluster.kubectl("logs", "told", lablet, *options, check=check)

    whole = logs().stdout
    lines = whole.splitlines()
    assert lines[0].endswith("Pod created")
    assert any("Normal Scheduled: " in line for line in lines), "of the scheduler"
    assert any("Normal Created: " in line for line in lines), "of the provider"
    assert logs("--tail=2").stdout.splitlines() == lines[-2:]
    assert logs("--tail=0").stdout == ""
    assert logs("--limit-bytes=12").stdout == whole[:12]
    assert logs("--since=1h").stdout == whole
    assert logs("--since-time=2999-01-01T00:00:00Z").stdout == ""
    assert STAMP.match(logs("--timestamps", "--tail=1").stdout)
    assert logs("--all-containers").stdout == whole
    assert (
        f"{lines[0]}\n"
        in cluster.kubectl("logs", f"--selector=app={_app(cluster, lablet)}", lablet, "--tail=-1").stdout
    )
    refused = logs("--previous", check=False)
    assert refused.returncode == 1
    assert "never started again" in refused.stderr
    assert logs("--insecure-skip-tls-verify-backend").stdout == whole


def _app(cluster: Cluster, lablet: str) -> str:
    [found] = cluster.pods(lablet.removeprefix("--namespace="))
    return str(found["metadata"]["labels"]["app"])


def test_who_may_get_pods_opens_no_console(cluster: Cluster, lablet: str) -> None:
    cluster.kubectl("create", "role", "looker", "--verb=get,list", "--resource=pods", lablet)
    cluster.kubectl("create", "rolebinding", "looker", "--role=looker", "--user=looker", lablet)
    may = ("auth", "can-i", "get", "pods", lablet, "--as=looker")
    until(lambda: cluster.kubectl(*may, check=False).stdout == "yes\n", what="the new rights are not known")
    assert cluster.kubectl("get", "pod", "told", lablet, "--as=looker", "-o", "name").stdout == "pod/told\n"
    for command, resource in (
        (("logs", "told"), "pods/log"),
        (("exec", "told", "--", "show version"), "pods/exec"),
        (("attach", "told"), "pods/attach"),
        (("port-forward", "told", ":22"), "pods/portforward"),
    ):
        verb, *words = command
        refused = cluster.kubectl(verb, lablet, "--as=looker", *words, check=False)
        assert refused.returncode == 1
        assert "forbidden" in refused.stderr.lower()
        assert f'cannot {"get" if verb == "logs" else "create"} resource "{resource}"' in refused.stderr


def test_the_node_declares_where_it_is_served(cluster: Cluster, lablet: str) -> None:
    [found] = cluster.pods(lablet.removeprefix("--namespace="))
    status = (cluster.get(f"/api/v1/nodes/{found['spec']['nodeName']}") or {})["status"]
    _, minor, _ = cluster.kubernetes.split(".", 2)
    kept = ["ExtendWebSocketsToKubelet"] if int(minor) >= DECLARED_FEATURES_SINCE else []
    assert status.get("declaredFeatures", []) == kept
    assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] > 0
    proxied = cluster.kubectl("get", "--raw", f"/api/v1/nodes/{found['spec']['nodeName']}/proxy/healthz", check=False)
    assert proxied.stdout == "ok" or "address not allowed" in proxied.stderr, (
        "the API server proxies no loopback address"
    )


def test_the_story_is_followed_until_the_pod_goes(cluster: Cluster, lablet: str) -> None:
    kubectl, config = cluster.sandbox.programs / "kubectl", f"--kubeconfig={cluster.sandbox.kubeconfig}"
    command = [str(kubectl), config, "logs", "-f", "told", lablet]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:  # noqa: S603 (kubectl)
        assert following.stdout is not None
        assert following.stdout.readline().endswith("Pod created\n")
        cluster.kubectl("delete", "pod", "told", lablet)
        rest = following.stdout.read()
        assert following.wait(30) == 0
    assert "Normal Killing: " in rest


def test_who_attaches_and_types_has_opened_the_lab(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    name, desk = f"open-{namespace[-5:]}", Desk(cluster, tmp_path, namespace)
    cluster.define(definition(name, topology({"h0": "alpine"})))
    cluster.apply(pod("opened", name, devices=["h0"], typed=True), namespace=namespace)
    cluster.wait_ready(namespace, 1)

    def active() -> str:
        found = cluster.pod(namespace, "opened") or {}
        return str(found["metadata"]["annotations"].get("vkprovider.io/last-activity", ""))

    with desk.terminal("attach", "-it", "opened", "-c", "h0") as terminal:
        terminal.shows("Escape character", PATIENCE_S)
        with desk.running("logs", "-f", "opened", "-c", "h0") as log:
            terminal.type("\x1d")  # leaves, and presses no key
            assert terminal.ends() == 0
            assert active() == ""
            log.process.terminate()
    with desk.terminal("attach", "-it", "opened", "-c", "h0") as terminal:
        terminal.shows("Escape character", PATIENCE_S)
        terminal.type("echo by hand\r")
        terminal.shows("\r\nby hand\r\n")
        first = until(active, PATIENCE_S)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first)
        terminal.type("echo again\r")
        terminal.shows("\r\nagain\r\n")
        terminal.type("\x1d")
        assert terminal.ends() == 0
    assert active() == first


@pytest.mark.tunnelled
def test_the_console_and_the_log_of_a_device(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    name, desk = f"used-{namespace[-5:]}", Desk(cluster, tmp_path, namespace)
    cluster.define(definition(name, topology({"h0": "alpine", "r1": "iol-xe"})))
    cluster.apply(pod("used", name, devices=["h0", "r1"], typed=True), namespace=namespace)

    def works() -> bool:
        ran = desk.run("exec", "used", "-c", "r1", "--", "show version")
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout.startswith("Cisco IOS Software")

    until(works, PATIENCE_S)
    with desk.terminal("attach", "-it", "used", "-c", "h0") as terminal:
        terminal.shows("Escape character", PATIENCE_S)
        terminal.type("echo by hand\r")
        terminal.shows("\r\nby hand\r\n")
        with desk.running("logs", "-f", "used", "-c", "h0") as log:
            log.shows("\nby hand\n")
            terminal.type("echo once more\r")
            log.shows("\nonce more\n")
        terminal.type("\x1d")
        assert terminal.ends() == 0
    written = cluster.sandbox.layout.log("provider-1")

    def audited() -> bool:
        lines = [json.loads(line) for line in written.read_text().splitlines() if f'"{namespace}/used"' in line]
        said = {line["event"] for line in lines if line["logger"] == "vkprovider.audit"}
        return said == {"a session begins", "a session ends"}

    until(audited, PATIENCE_S)
