"""Everything as Pods, installed by kubectl: tokens, roots, NetworkPolicies, and the memory that a class takes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from tests.support import ordinary as support
from tests.support.containers import IMAGE
from tests.support.extra import SYSTEM
from tests.support.ordinary import DEPLOYMENTS, RELAY, Ordinary, install, ordinary
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkprovider.lablet import names
from vkprovider.platform.wellknown import GROUP
from vkpsandbox.node import needs, room

pytestmark = [pytest.mark.skipif(bool(why := support.missing()), reason=why), pytest.mark.timeout(900)]

CLASS: Final = 24
"""Lablets of a class."""
SHARE: Final = 0.8
"""The largest part of its memory limit that a container may use."""
PROBE: Final = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

def opens(target):
    try:
        with socket.create_connection(target, timeout=2):
            return True
    except OSError:
        return False

asked = json.load(sys.stdin).items()
targets = [(host, port) for host, ports in asked for first, last in ports for port in range(first, last)]
with ThreadPoolExecutor(64) as pool:
    found = [target for target, opened in zip(targets, pool.map(opens, targets)) if opened]
print(json.dumps(found))
"""
"""Tries to connect to every port of some ranges of some hosts, and prints those that accept."""
LISTENER: Final = """
import socket, sys, time
held = [socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[1:]]
time.sleep(3600)
"""
STARTED: Final = """\
subprocess.Popen([sys.executable, "-c", {program!r}, "9999"], **dict.fromkeys(("stdin", "stdout", "stderr"), -3))"""
EXTRA: Final = 9999
"""A port that no program serves, until the test does."""
LISTENING: Final = """
import json
rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
listening = [row[1].split(":") for row in rows if row[3] == "0A"]
print(json.dumps(sorted({int(port, 16) for address, port in listening if not address.endswith("00007F")})))
"""
FACTS: Final = """
import base64, json, os
account = "/var/run/secrets/kubernetes.io/serviceaccount/token"
claims = open(account).read().split(".")[1]
try:
    open("/probe", "w")
    written = True
except OSError:
    written = False
status = dict(line.split(":", 1) for line in open("/proc/1/status"))
subject = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
print(json.dumps({
    "account": subject["sub"],
    "pod": subject["kubernetes.io"]["pod"]["name"],
    "written": written,
    "uid": os.getuid(),
    "capabilities": int(status["CapEff"], 16),
    "seccomp": int(status["Seccomp"]),
    "largest_bytes": int(status["VmHWM"].split()[0]) * 1024,
}))
"""
"""What a container is, as its first process sees it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordinary]:
    """An installation of everything, with a worker."""
    folder = tmp_path_factory.mktemp("node")
    with ordinary("node-installed", folder, [support.archive(folder)]) as made:
        install(made)
        made.connect()
        made.wait_node()
        yield made


def facts(made: Ordinary, pod: dict[str, Any], container: str) -> dict[str, Any]:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    words = (name, f"--namespace={namespace}", f"--container={container}", "--", "python3", "-c", FACTS)
    found: dict[str, Any] = json.loads(made.kubectl("exec", *words))
    return found


def python_containers(made: Ordinary) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each container of our image with its Pod."""
    return [
        (pod, container)
        for pod in made.pods()
        for container in pod["spec"]["containers"]
        if container["image"].startswith(IMAGE.partition(":")[0])
    ]


def test_each_pod_has_its_own_token_and_nothing_more_than_it_needs(made: Ordinary) -> None:
    found = python_containers(made)
    assert len(found) == 2 * len(DEPLOYMENTS) + 1
    for pod, container in found:
        seen = facts(made, pod, container["name"])
        meta = pod["metadata"]
        account = container["name"] if meta["namespace"] == SYSTEM else RELAY
        assert seen["account"] == f"system:serviceaccount:{meta['namespace']}:{account}"
        assert seen["pod"] == meta["name"], "its own token, bound to the Pod"
        assert not seen["written"], "the root is read-only"
        assert (seen["uid"], seen["capabilities"], seen["seccomp"]) == (65532, 0, 2)
    assert made.get("namespace", SYSTEM)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def intruder(made: Ordinary) -> dict[str, Any]:
    """Start a Pod in a namespace of its own, which listens to two ports, one of which policies let Pods connect to."""
    made.kubectl("create", "namespace", "intruder")
    spec = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "it", "image": IMAGE, "command": ["python3", "-c", LISTENER, "8443", "9998"]}],
    }
    made.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "intruder"}, "spec": spec}, namespace="intruder"
    )

    def running() -> dict[str, Any]:
        pod = made.get("pod", "intruder", "--namespace=intruder")
        assert pod["status"].get("phase") == "Running", pod["status"]
        return pod

    return until(running, 60)


def opened(made: Ordinary, pod: dict[str, Any], targets: dict[str, list[tuple[int, int]]]) -> set[tuple[str, int]]:
    """Return the ports of targets that accept connections of a Pod."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    words = ("exec", "--stdin", name, f"--namespace={namespace}", "--", "python3", "-c", PROBE)
    return {(host, port) for host, port in json.loads(made.kubectl(*words, input=json.dumps(targets)))}


def from_the_node(made: Ordinary, targets: dict[str, list[tuple[int, int]]]) -> set[tuple[str, int]]:
    """Return the ports of targets that accept connections of the Node itself, which no policy limits."""
    pid = room.pid_of(made.sandbox.layout)
    words = [needs.find_program("nsenter"), f"--target={pid}", "--net", "python3", "-c", PROBE]
    said = subprocess.run(words, input=json.dumps(targets), capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 (of the test)
    return {(host, port) for host, port in json.loads(said.stdout)}


def with_all_probes(made: Ordinary, pods: dict[str, dict[str, Any]]) -> set[tuple[str, int]]:
    """Return the ports on which Pods listen beyond loopback, with the extra one of each."""
    found = set()
    for address, pod in pods.items():
        words = ("exec", pod["metadata"]["name"], f"--namespace={SYSTEM}", "--", "python3", "-c", LISTENING)
        found |= {(address, port) for port in json.loads(made.kubectl(*words))}
    assert {(address, EXTRA) for address in pods} <= found
    return found


def test_policies_let_through_what_is_used_and_nothing_else(made: Ordinary) -> None:
    stranger = intruder(made)
    pods = {pod["status"]["podIP"]: pod for pod in made.pods() if pod["metadata"]["namespace"] == SYSTEM}
    ports = {pod["spec"]["containers"][0]["ports"][0]["containerPort"] for pod in pods.values()}
    assert ports == {8082, 8083}
    for pod in pods.values():  # a port that nobody serves would prove nothing
        background = f"import subprocess, sys; {STARTED.format(program=LISTENER)}"
        made.kubectl("exec", pod["metadata"]["name"], f"--namespace={SYSTEM}", "--", "python3", "-c", background)
    there = until(lambda: with_all_probes(made, pods), 30)
    served = {(address, port) for address, port in there if port != EXTRA}
    targets = {address: [(port, port + 1) for at, port in sorted(there) if at == address] for address in pods}
    assert from_the_node(made, targets) == there
    let_through = opened(made, stranger, targets)
    figures = f"{len(served)} ports are served, and let through: {sorted(port for _, port in let_through)}"
    print(figures)  # noqa: T201 (shown by `make node`)
    expected = {(address, pod["spec"]["containers"][0]["ports"][0]["containerPort"]) for address, pod in pods.items()}
    kubelet = {(address, port) for address, port in served if 20250 <= port < 24250}
    assert {pods[address]["spec"]["serviceAccountName"] for address, _ in kubelet} == {"vkprovider"}
    assert let_through == served == expected | kubelet


def test_policies_let_pods_connect_to_what_they_use_and_nothing_else(made: Ordinary) -> None:
    stranger = made.get("pod", "intruder", "--namespace=intruder")["status"]["podIP"]
    assert from_the_node(made, {stranger: [(8443, 8444), (9998, 9999)]}) == {(stranger, 8443), (stranger, 9998)}
    for pod in made.pods():
        if pod["metadata"]["namespace"] == SYSTEM:
            assert opened(made, pod, {stranger: [(8443, 8444), (9998, 9999)]}) == {(stranger, 8443)}


def checked(made: Ordinary) -> list[dict[str, Any]]:
    """Return the lablets of the class once the ports of each have been checked."""
    pods = made.items("pods", "--namespace=class")
    words = [{each["type"] for each in pod["status"]["conditions"]} for pod in pods]
    assert all(f"{GROUP}/PortsOpen" in each for each in words), words
    return pods


def test_a_class_fits_into_the_memory_of_each_container(made: Ordinary) -> None:
    made.apply(definition("netlab", topology({"h0": "alpine"}, {"h0": ["serial:4567"]})))
    until(lambda: made.get("runtimeclass", "netlab"), 30)
    made.kubectl("create", "namespace", "class")
    made.apply(deployment("class", "netlab", CLASS), namespace="class")
    made.wait_lablets("class", CLASS)
    for pod in until(lambda: checked(made), 90):
        conditions = {each["type"]: each for each in pod["status"]["conditions"]}
        assert conditions[f"{GROUP}/PortsOpen"]["status"] == "True", conditions
    for pod, container in python_containers(made):
        limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 2**20
        largest = facts(made, pod, container["name"])["largest_bytes"]
        print(f"{pod['metadata']['name']}: {largest / 2**20:.0f} of {limit / 2**20:.0f} MiB")  # noqa: T201 (figures of `make node`)
        assert largest <= SHARE * limit


def scheduled(made: Ordinary, *words: str) -> str:
    """Run `kubectl lablet schedule` on the host, as an administrator, in the namespace of the class at nine."""
    program = "from vkprovider.cli.lablet import main; main()"
    command = [
        sys.executable,
        "-c",
        program,
        "schedule",
        *words,
        "--namespace=nine",
        f"--kubeconfig={made.sandbox.kubeconfig}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout  # noqa: S603 (of the test)


def test_a_pool_is_full_by_the_stock_controller_and_a_job_on_the_node(made: Ordinary) -> None:
    """The Pod of the Job is admitted at the level restricted, runs our image, and may set that one size."""
    made.kubectl("create", "namespace", "nine")
    made.kubectl("label", "namespace", "nine", "pod-security.kubernetes.io/enforce=restricted")
    pool = deployment("warm", "nothing", 0)
    for labels in (pool["spec"]["selector"]["matchLabels"], pool["spec"]["template"]["metadata"]["labels"]):
        labels[names.LABEL_POOL] = "warm"
    made.apply(pool, namespace="nine")
    zone = "Etc/GMT-12" if datetime.now(UTC).hour in {22, 23, 0} else "UTC"
    at = datetime.now(ZoneInfo(zone)) + timedelta(minutes=3)  # the boots begin in one to two minutes
    until_ = at + timedelta(minutes=1)
    times = (f"--at={at:%H:%M}", f"--until={until_:%H:%M}", "--days=daily", f"--tz={zone}")
    said = scheduled(made, "deployment/warm", *times, "--ready=3", "--boots=1m", f"--image={IMAGE}")
    assert said.count(" created\n") == 5

    def sized(replicas: int) -> bool:
        found = made.get("deployment", "warm", "--namespace=nine")["spec"]["replicas"]
        assert found == replicas, made.story("nine")
        return True

    until(lambda: sized(3), 240, every_s=2)
    until(lambda: sized(0), 240, every_s=2)
    jobs = made.items("jobs", "--namespace=nine")
    assert sorted(job["metadata"]["ownerReferences"][0]["name"] for job in jobs) == ["warm-begin", "warm-end"]
    pods = [pod for pod in made.items("pods", "--namespace=nine") if "job-name" in pod["metadata"]["labels"]]
    assert {pod["spec"]["nodeName"] for pod in pods} == {made.node.name}
    assert "warm" in scheduled(made, "--list")
