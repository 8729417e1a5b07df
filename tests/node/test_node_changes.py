"""Everything as Pods while much changes: channels of real Pods, another image, an API server that hangs, a drain."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support import ordinary as support
from tests.support.containers import IMAGE, podman
from tests.support.extra import SYSTEM
from tests.support.ordinary import DEPLOYMENTS, Ordinary, install, ordinary
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox.node import needs, room

pytestmark = [pytest.mark.skipif(bool(why := support.missing()), reason=why), pytest.mark.timeout(1200)]

OTHER: Final = f"{IMAGE.rpartition(':')[0]}:other"
"""The same image by another tag."""
EDGE: Final = "edge"
PREFIX: Final = "svc-mux.nowake.ai"
ADDRESS: Final = "203.0.113.10"
"""Of the mux, as a cloud would give it; kube-proxy leads from it."""
HANGS_S: Final = 40
SERVER: Final = """
import os, signal, socketserver, threading
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(os.environ["VERSION"].encode())
class Server(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size = True, 128
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(10, os._exit, (0,)).start())
with Server(("0.0.0.0", 8080), Answer) as server:
    server.serve_forever()
"""
"""Answers with its version, and serves on for ten seconds after it was asked to end, as good servers do."""
CLIENT: Final = """
import collections, json, socket, sys, time
host, port, last = sys.argv[1], int(sys.argv[2]), sys.argv[3]
answers, failures, row, end = collections.Counter(), [], 0, time.monotonic() + 180
while row < 200 and time.monotonic() < end:
    try:
        with socket.create_connection((host, port), timeout=5) as to:
            answer = to.recv(16).decode()
    except OSError as error:
        failures.append(repr(error))
        answer = ""
    answers[answer] += 1
    row = row + 1 if answer == last else 0
    time.sleep(0.02)
print(json.dumps({"answers": answers, "failures": failures}))
"""
"""Connects until one version has answered 200 times in a row."""
ASK: Final = """
import json, ssl, sys, urllib.error, urllib.request
unverified = ssl._create_unverified_context()
def status(url):
    try:
        return urllib.request.urlopen(url, timeout=10, context=unverified).status
    except urllib.error.HTTPError as error:
        return error.code
print(json.dumps({url: status(url) for url in json.load(sys.stdin)}))
"""
"""Asks pages, and prints their status; a page that does not answer ends it."""
Json = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordinary]:
    """An installation of everything, with a worker and two lablets, on a Node that has the image by two tags."""
    folder = tmp_path_factory.mktemp("node")
    archive, again = support.archive(folder), folder / "other.tar"
    podman("tag", IMAGE, OTHER)
    podman("save", "--quiet", f"--output={again}", OTHER)
    with ordinary("node-changes", folder, [archive, again]) as made:
        install(made)
        made.connect()
        made.wait_node()
        made.apply(definition("alpine"))
        until(lambda: made.get("runtimeclass", "alpine"), 30)
        made.apply(deployment("class", "alpine", 2), namespace="default")
        made.wait_lablets("default", 2)
        yield made


def lablets(made: Ordinary) -> set[str]:
    return {pod["metadata"]["uid"] for pod in made.wait_lablets("default", 2)}


def container(program: str, **more: Any) -> Json:
    return {"name": "it", "image": IMAGE, "command": ["python3", "-c", program], **more}


def channel(name: str, **spec: Any) -> Json:
    """Return a channel of the mux `labs` with a port that the mux chooses."""
    given = {
        "type": "LoadBalancer",
        "loadBalancerClass": f"{PREFIX}/labs.{EDGE}",
        "allocateLoadBalancerNodePorts": False,
    }
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    meta = {"name": name, "annotations": {f"{PREFIX}/external-ports": "http:auto"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {**given, "ports": ports, **spec}}


def outside_port(made: Ordinary, name: str) -> int:
    """Wait until a channel has its outside port and the address of the mux."""

    def told() -> int:
        found = made.get("service", name, f"--namespace={EDGE}")
        assert found["status"]["loadBalancer"]["ingress"][0]["ip"] == ADDRESS
        return int(found["metadata"]["annotations"][f"{PREFIX}/ports"].rpartition("->")[2])

    return until(told, 60)


def connecting(made: Ordinary, port: int, version: str) -> subprocess.Popen[str]:
    """Start a client in a Pod."""
    kubectl = [str(made.sandbox.programs / "kubectl"), f"--kubeconfig={made.sandbox.kubeconfig}"]
    words = ["exec", "client", f"--namespace={EDGE}", "--", "python3", "-c", CLIENT, ADDRESS, str(port), version]
    return subprocess.Popen([*kubectl, *words], stdout=subprocess.PIPE, text=True)  # noqa: S603 (of the test)


def answers(client: subprocess.Popen[str]) -> Json:
    said, _ = client.communicate(timeout=240)
    found: Json = json.loads(said)
    assert not found["failures"], found
    seen: Json = found["answers"]
    return seen


@pytest.fixture(scope="module")
def edge(made: Ordinary) -> Ordinary:
    """The installation, with a mux that has an address, a Deployment of servers behind a channel, and a client."""
    made.kubectl("create", "namespace", EDGE)
    account = f"--serviceaccount={SYSTEM}:vkprovider-mux"
    role = "vkprovider-mux-store"
    made.kubectl("create", "rolebinding", role, f"--clusterrole={role}", account, f"--namespace={EDGE}")
    notes = {f"{PREFIX}/multiplexer": "true", f"{PREFIX}/port-range": "20000-20099"}
    spec: Json = {
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False,
        "ports": [{"name": "none", "port": 101}],
    }
    mux = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "labs", "annotations": notes}, "spec": spec}
    status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}})
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    server = container(SERVER, env=[{"name": "VERSION", "value": "one"}], readinessProbe=probe)
    labels = {"app": "api"}
    servers = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [server]}},
    }
    api = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": servers}
    pod = {"containers": [container("import time; time.sleep(3600)")], "terminationGracePeriodSeconds": 1}
    client = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": pod}
    made.apply(mux, api, client, channel("api", selector=labels), namespace=EDGE)
    made.kubectl(
        "patch", "service", "labs", f"--namespace={EDGE}", "--subresource=status", "--type=merge", "-p", status
    )
    made.kubectl("rollout", "status", "deployment/api", f"--namespace={EDGE}", "--timeout=60s")
    made.kubectl("wait", "pod/client", "--for=condition=Ready", f"--namespace={EDGE}", "--timeout=60s")
    return made


def test_a_channel_of_real_pods_refuses_no_connection_through_a_rolling_update(edge: Ordinary) -> None:
    port = outside_port(edge, "api")
    until(lambda: answers(connecting(edge, port, "one")), 60)  # kube-proxy may need a moment for the first slice
    client = connecting(edge, port, "two")
    edge.kubectl("set", "env", "deployment/api", "VERSION=two", f"--namespace={EDGE}")
    edge.kubectl("rollout", "status", "deployment/api", f"--namespace={EDGE}", "--timeout=100s")
    found = answers(client)
    print(f"connections during a rolling update: {found}")  # noqa: T201 (shown by `make node`)
    assert found.keys() == {"one", "two"}


def test_endpoints_of_a_channel_without_selector_are_mirrored_and_served(edge: Ordinary) -> None:
    """R003-053: the stock controller makes slices of what was written as Endpoints."""
    pods = edge.items("pods", f"--namespace={EDGE}", "--selector=app=api")
    address = next(pod for pod in pods if not pod["metadata"].get("deletionTimestamp"))["status"]["podIP"]
    subsets = [{"addresses": [{"ip": address}], "ports": [{"name": "http", "port": 8080}]}]
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "fixed"}, "subsets": subsets}
    edge.apply(channel("fixed"), endpoints, namespace=EDGE)
    port = outside_port(edge, "fixed")
    [mirrored] = until(
        lambda: edge.items("endpointslice", f"--namespace={EDGE}", "--selector=kubernetes.io/service-name=fixed"), 30
    )
    manager = mirrored["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
    assert manager == "endpointslicemirroring-controller.k8s.io"
    assert until(lambda: answers(connecting(edge, port, "two")), 60).keys() == {"two"}


def test_another_image_replaces_all_pods_and_no_lablet(made: Ordinary) -> None:
    before = lablets(made)
    began = time.monotonic()
    for name in DEPLOYMENTS:
        made.kubectl("set", "image", f"deployment/{name}", f"{name}={OTHER}", f"--namespace={SYSTEM}")
    made.rolled_out()
    print(f"another image by `kubectl set image`: {time.monotonic() - began:.0f} s")  # noqa: T201 (figures)
    pods = made.items("pods", f"--namespace={SYSTEM}")
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {OTHER}
    made.kubectl("apply", "-k", str(made.overlay()))  # and back, as GitOps does
    made.rolled_out()
    pods = made.items("pods", f"--namespace={SYSTEM}")
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {IMAGE}
    assert lablets(made) == before


def asked(made: Ordinary, pods: list[Json], kind: str) -> dict[str, int]:
    """Ask what a probe of each Pod asks, from the Node, without the API server; return the statuses by Pod."""
    urls = {}
    for pod in pods:
        [it] = pod["spec"]["containers"]
        request = it[f"{kind}Probe"]["httpGet"]
        port = it["ports"][0]["containerPort"]
        urls[f"https://{pod['status']['podIP']}:{port}{request['path']}"] = pod["metadata"]["name"]
    there = [needs.find_program("nsenter"), f"--target={room.pid_of(made.sandbox.layout)}", "--net"]
    words = [*there, "python3", "-c", ASK]
    said = subprocess.run(words, input=json.dumps([*urls]), capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 (of the test)
    return {urls[url]: status for url, status in json.loads(said.stdout).items()}


def test_pods_outlive_an_api_server_that_hangs(made: Ordinary) -> None:
    before = lablets(made)
    pods = made.items("pods", f"--namespace={SYSTEM}")
    made.sandbox.kill("kube-apiserver", signal.SIGSTOP)
    try:
        time.sleep(HANGS_S)  # that it lasts is the point
        alive, ready = asked(made, pods, "liveness"), asked(made, pods, "readiness")
    finally:
        made.sandbox.kill("kube-apiserver", signal.SIGCONT)
    began = time.monotonic()
    assert set(alive.values()) == {200}, alive
    until(lambda: made.items("pods", f"--namespace={SYSTEM}"), 60)
    made.rolled_out()
    took_s = time.monotonic() - began
    print(f"{HANGS_S} s without API server: {ready}; all is Ready {took_s:.0f} s after it")  # noqa: T201 (figures)
    after = made.items("pods", f"--namespace={SYSTEM}")
    assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in pods}
    restarts = {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in after}
    assert set(restarts.values()) == {0}, restarts
    assert lablets(made) == before


def test_a_drain_leaves_one_replica_while_there_is_no_other_node(made: Ordinary) -> None:
    """A second Node does not stand here: what is evicted stays Pending, and the budget keeps the last replica."""
    before = lablets(made)
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    said = made.refused("drain", made.node.name, *flags)
    assert "disruption budget" in said, said

    def standing() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in DEPLOYMENTS}
        for pod in made.items("pods", f"--namespace={SYSTEM}"):
            assert not pod["metadata"].get("deletionTimestamp"), pod["metadata"]["name"]
            found[pod["spec"]["serviceAccountName"]].append(pod["status"]["phase"])
        return {name: sorted(phases) for name, phases in found.items()}

    phases = until(standing, 60)
    print(f"drained: {phases}")  # noqa: T201 (figures)
    assert phases["vkprovider"] == ["Pending", "Running"]
    assert lablets(made) == before
    made.kubectl("uncordon", made.node.name)
    made.rolled_out()
    assert lablets(made) == before
