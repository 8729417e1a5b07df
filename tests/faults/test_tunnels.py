"""Two replicas, two workers that only agents reach: whatever ends on the way costs no lablet anything.

Each by MQTT and by HTTP, but for what concerns a broker. Messages that are doubled, delayed or reordered are the
subject of `tests/unit/tunnels/test_protocol_model.py` and `test_tunnel_streams.py`, two hundred agents that come back
at once of `test_tunnels_crowd.py`.
"""

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, is_ready
from tests.support.replicas import COMMANDS, Replicas, restarts, since_ready
from tests.support.simulator import Simulator
from tests.support.topologies import definition, deployment, pod
from tests.support.tunnelled import ROUTES, Site, Slow, tunnelled
from tests.support.waiting import until
from tunnels.protocol import refusals
from vkpsandbox import Sandbox

WORKERS, REPLICAS, LABLETS, LATE = 2, 2, 12, 4
BROKER_AWAY_S, CUT_S = 30, 60
BACK_S = 15
"""Within which every status is correct after a fault."""
SLOW_S = 3.0
"""How long CML keeps an answer back, so that a fault finds requests under way."""
NAME, PODS = "tunnels", "default"


@pytest.fixture(scope="module", params=["mqtt", "http"])
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The sandbox, with a proxy on each way."""
    with tunnelled(tmp_path_factory.mktemp("tunnels"), request.param, workers=WORKERS, replicas=REPLICAS) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(site: Site) -> Sandbox:
    return site.sandbox


@pytest.fixture
def begun(cluster: Cluster, replicas: Replicas) -> Iterator[Slow]:
    """Lablets whose imports begin, slowly on the first worker; at the end CML has seen one import of each."""
    until(replicas.all_nodes_ready, 90)
    until(lambda: not any(map(kept_away, cluster.items("/api/v1/nodes"))), 30, "a Node is Ready and keeps its taint")
    cluster.define(definition(NAME))
    slow = Slow(cluster.workers[0], "import", SLOW_S)
    cluster.apply(deployment(NAME, NAME, LABLETS))
    cluster.delete_later("deployment", NAME)
    yield slow
    cluster.kubectl("delete", "deployment", NAME, "--ignore-not-found")
    cluster.wait_gone(PODS, within_s=180)
    assert [worker.labs() for worker in cluster.workers] == [[]] * WORKERS


def kept_away(node: dict[str, Any]) -> bool:
    """Tell whether Kubernetes keeps Pods away from a Node: it removes its taint a moment after the Node is Ready."""
    return any(taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints", ()))


def all_correct(cluster: Cluster, replicas: Replicas, what: str, *, lablets: int = LABLETS) -> None:
    """Wait, after the end of a fault, until all Nodes and Pods are Ready; it must not take longer than it may."""
    began = time.monotonic()
    until(replicas.all_nodes_ready, BACK_S)
    cluster.wait_ready(PODS, lablets, within_s=BACK_S)
    took_s = time.monotonic() - began
    uids = [pod["metadata"]["uid"] for pod in cluster.pods(PODS)]
    imports, starts = (max(seen[uid] for uid in uids) for seen in replicas.seen_by_cml())
    sys.stdout.write(
        f"{what}: all correct after {took_s:.1f} s; imports of a lablet {imports}, starts {starts} at most\n"
    )
    assert took_s <= BACK_S


def all_pods(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the Pods as soon as they are all there."""
    pods = cluster.pods(PODS)
    return pods if len(pods) == LABLETS else []


def caught(slow: Slow) -> int:
    """Wait for requests that CML has in hand, and count them."""
    return until(lambda: slow.arrived() - slow.done(), 90, "no request is under way")


@pytest.fixture(params=[False, True])
def persistent(site: Site, request: pytest.FixtureRequest) -> bool:
    """Whether the broker saves what it holds."""
    if site.tunnel != "mqtt":
        pytest.skip("there is a broker by MQTT only")
    site.keep(persistent=request.param)
    site.sandbox.stop("mosquitto")
    site.sandbox.start("mosquitto")
    return bool(request.param)


def test_broker_that_is_restarted(
    cluster: Cluster,
    site: Site,
    replicas: Replicas,
    *,
    persistent: bool,
    begun: Slow,
) -> None:
    """One that keeps nothing is killed; one that saves what it holds ends in order."""
    caught(begun)
    if persistent:
        site.sandbox.stop("mosquitto")
    else:
        site.sandbox.kill("mosquitto")
    assert begun.arrived() > begun.done(), "the broker ended too late"
    cluster.workers[0].clear_faults()
    time.sleep(BROKER_AWAY_S)
    site.sandbox.start("mosquitto")
    all_correct(cluster, replicas, f"broker away for {BROKER_AWAY_S} s, {'' if persistent else 'not '}persistent")
    replicas.once_each()


def test_link_of_an_agent_that_is_cut_for_a_minute(
    cluster: Cluster, site: Site, replicas: Replicas, begun: Slow
) -> None:
    worker, other = cluster.workers
    caught(begun)
    cut = time.monotonic()
    site.links[worker.worker.agent].cut()
    worker.clear_faults()
    until(lambda: condition(cluster.node(worker), "Ready").get("reason") == "AgentAway", CUT_S)
    elsewhere = until(lambda: all_ready_on(cluster, other), 45)
    while time.monotonic() < cut + CUT_S:
        assert condition(cluster.node(worker), "Ready")["status"] == "False"
        assert all_ready_on(cluster, other) == elsewhere
        time.sleep(1)
    site.links[worker.worker.agent].heal()
    all_correct(cluster, replicas, f"link cut for {CUT_S} s")
    replicas.once_each()
    assert all_ready_on(cluster, other) == elsewhere


def all_ready_on(cluster: Cluster, worker: Simulator) -> dict[str, str]:
    """Tell since when each Pod of a worker is Ready; all are, and so is its Node."""
    pods = [pod for pod in cluster.pods(PODS) if pod["spec"].get("nodeName") == worker.node]
    assert is_ready(cluster.node(worker))
    assert all(map(is_ready, pods))
    return since_ready(pods)


@pytest.mark.parametrize("step", ROUTES)
def test_agent_that_is_killed_between_cmls_answer_and_its_own(
    cluster: Cluster, site: Site, replicas: Replicas, begun: Slow, step: str
) -> None:
    """It is paused first, so that it cannot read what CML answers; no command is given twice."""
    worker, slow = cluster.workers[0], begun
    if ending := step in {"stop", "wipe"}:
        worker.clear_faults()
        cluster.wait_ready(PODS, LABLETS)
    if step != "import":  # nothing of it has come yet: no import has ended, no Pod was deleted
        slow = Slow(worker, step, SLOW_S)
    uids = [pod["metadata"]["uid"] for pod in until(lambda: all_pods(cluster), 30)]
    if ending:
        cluster.kubectl("delete", "deployment", NAME, "--wait=false")
    caught(slow)
    site.sandbox.kill(worker.worker.agent, signal.SIGSTOP)
    arrived = slow.arrived()
    unread = arrived - slow.done()
    assert unread, "the agent was paused too late"
    until(lambda: slow.done() == arrived, 30)
    site.sandbox.kill(worker.worker.agent)
    worker.clear_faults()
    site.sandbox.start(worker.worker.agent)
    what = f"agent killed with {unread} answers ({step})"
    if ending:
        until(replicas.all_nodes_ready, BACK_S)
        cluster.wait_gone(PODS, within_s=60)
    else:
        all_correct(cluster, replicas, what)
        assert restarts(cluster.pods(PODS)) == {0}
    seen = {command: Counter(counts[uid] for uid in uids) for command, counts in replicas.commands_seen().items()}
    sys.stdout.write(f"{what}: lablets by how often CML did each command: {seen}\n")
    done = COMMANDS if ending else COMMANDS[:2]
    assert seen == {command: {1 if command in done else 0: LABLETS} for command in COMMANDS}


def test_agent_that_is_restarted_in_the_middle_of_an_import(
    cluster: Cluster, site: Site, replicas: Replicas, begun: Slow
) -> None:
    """It ends when CML has answered."""
    worker = cluster.workers[0]
    unread = caught(begun)
    site.sandbox.stop(worker.worker.agent, grace_s=30)
    assert begun.arrived() == begun.done()
    worker.clear_faults()
    site.sandbox.start(worker.worker.agent)
    all_correct(cluster, replicas, f"agent restarted during {unread} imports")
    replicas.once_each()


@pytest.mark.usefixtures("begun")
def test_what_a_former_owner_has_sent_is_refused(cluster: Cluster, site: Site, replicas: Replicas) -> None:
    """Its frames wait in a proxy while another replica takes its nodes over, and reach the agent afterwards.

    Unless the agent has given up the WebSocket by then, because no ping is answered on it: they are lost in this case.
    """
    process = "provider-2"
    sleeper, link = replicas.identity(process), site.links[process]
    cluster.workers[0].clear_faults()
    cluster.wait_ready(PODS, LABLETS)
    [node] = replicas.nodes_of(sleeper)
    [worker] = [worker for worker in cluster.workers if worker.node == node]
    sent = frames_sent(site, replicas, process)
    link.cut()
    names = [f"late-{number}" for number in range(LATE)]
    cluster.apply(*(pod(name, NAME, nodeSelector={"kubernetes.io/hostname": node}) for name in names))
    for name in names:
        cluster.delete_later("pod", name)
    until(lambda: frames_sent(site, replicas, process) >= sent + LATE, 30, "it sends nothing")
    stopped, mark = time.time(), worker.last_request()
    site.sandbox.kill(process, signal.SIGSTOP)
    until(lambda: not replicas.nodes_of(sleeper), 45, "its nodes are not taken")
    heir = replicas.identity("provider-1")
    until(lambda: [e for e in worker.access_log(mark) if heir in e.get("agent", "")], 30, "the heir asks for nothing")
    link.heal()
    until(lambda: what_became(site, worker), 30, "nothing of the former owner arrived")
    sys.stdout.write(f"{site.tunnel}: what the former owner had sent: {what_became(site, worker)}\n")
    site.sandbox.kill(process, signal.SIGCONT)
    all_correct(cluster, replicas, "former owner awake", lablets=LABLETS + LATE)
    until(replicas.is_balanced, 90)
    entries = worker.access_log()
    assert any(sleeper in entry.get("agent", "") for entry in entries if entry["number"] <= mark)
    lease = replicas.leases()[node]
    again = datetime.fromisoformat(lease["acquireTime"]).timestamp() if lease["holderIdentity"] == sleeper else 1e12
    late = [
        f"{entry['method']} {entry['path']} {entry['arrived_unix_s'] - stopped:.1f} s"
        for entry in entries
        if entry["number"] > mark and sleeper in entry.get("agent", "") and entry["arrived_unix_s"] < again
    ]
    assert not late
    replicas.once_each()
    cluster.kubectl("delete", "pods", *names, "--wait=false")


def what_became(site: Site, worker: Simulator) -> str:
    """Return what became of the frames of a former owner; empty while nothing is known."""
    log = site.log_of(worker.worker.agent)
    if f"is refused ({refusals.STALE})" in log:
        return "refused"
    return "lost" if site.tunnel == "http" and "no answer within" in log else ""


def frames_sent(site: Site, replicas: Replicas, process: str) -> float:
    """Read how many frames a replica has handed to its connections."""
    return replicas.metric(process, f'vkprovider_tunnel_frames_total{{tunnel="{site.tunnel}",what="sent"}}')
