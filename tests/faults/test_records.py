"""The claims of a worker are deleted: under a living owner, while the provider is down, and during a takeover.

Afterwards the Pods' annotations, the claims, and the tags as Cisco's own client reads them name the same ports. No port
is anyone else's, no lab is imported a second time, and the labs of Pods that went meanwhile stay until a person removes
them.
R003-030, R003-039, R003-041, R003-044.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from virl2_client import ClientLibrary

from tests.support.cluster import Cluster, is_ready
from tests.support.replicas import Replicas
from tests.support.simulator import Simulator
from tests.support.topologies import definition, deployment, pod, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE

FIRST, LAST = 10000, 10119
LABLETS = 20
AGAIN_S = 5.0
"""How soon claims that someone deletes under a living owner are there again."""
PODS = "default"
SIX = topology(
    {"r1": "iosv", "pc": "desktop"},
    {"r1": ["serial:4001", "serial:4002:1", "pat:4003:22", "pat:udp:4004:53"], "pc": ["vnc:4005", "serial:4006"]},
)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two workers, one provider replica."""
    made = Sandbox.up(
        "records-faults",
        directory=tmp_path_factory.mktemp("sandbox"),
        workers=2,
        provider_env={"LEADER_LEASE_TTL": "6"},  # so that a successor has the nodes soon
        worker_args=[["--boot-seconds=0.2-1", f"--port-range={FIRST}-{LAST}"]],
        worker_spec={"portRange": {"start": FIRST, "end": LAST}},
        tied=True,
    )
    with made:
        yield made


@pytest.fixture(autouse=True)
def lablets(cluster: Cluster) -> Iterator[None]:
    """Twenty lablets with six ports each; nothing of them is left afterwards."""
    cluster.define(definition("ported", SIX, version="1.0"))
    cluster.apply(deployment("ported", "ported", LABLETS))
    until(lambda: running(cluster) == LABLETS, 120, "all lablets run")
    yield
    cluster.kubectl("delete", "deployment/ported", "--wait=false")
    cluster.kubectl("delete", "pod", "--all", "--wait=false")
    cluster.wait_gone(PODS, within_s=90)
    for worker in cluster.workers:
        until(lambda worker=worker: worker.labs() == [], 30)  # type: ignore[misc]
        until(lambda worker=worker: document(cluster, worker)["portClaims"] == [], 30)  # type: ignore[misc]


def running(cluster: Cluster) -> int:
    return sum(map(is_ready, cluster.pods(PODS)))


def path_of(worker: Simulator) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/configmaps/{worker.name}-port-allocations"


def document(cluster: Cluster, worker: Simulator) -> dict[str, Any]:
    """Read the claims of a worker."""
    found = cluster.get(path_of(worker))
    read: dict[str, Any] = json.loads(found["data"]["allocations.json"]) if found else {"lablets": [], "portClaims": []}
    return read


def lose_claims(cluster: Cluster) -> None:
    """Delete the claims of every worker."""
    for worker in cluster.workers:
        cluster.request("DELETE", path_of(worker))


def remove_left(cluster: Cluster, uids: set[str]) -> None:
    """Remove labs of Pods that are gone, as a person does, once each is reported."""
    for worker in cluster.workers:
        for lab in [lab for lab in worker.labs() if lab["lab_title"][-36:] in uids]:
            path = f"/labs/{lab['id']}"

            def reported(worker: Simulator = worker, lab_id: str = lab["id"]) -> bool:
                events = cluster.events("default", worker.name, "CMLWorker")
                return any(e["reason"] == "UnclaimedLab" and lab_id in e["message"] for e in events)

            until(reported, 60, "it is reported")
            worker.cml("PUT", f"{path}/stop")
            until(lambda path=path, worker=worker: worker.cml("GET", path)["state"] == "STOPPED", 30)  # type: ignore[misc]
            worker.cml("PUT", f"{path}/wipe")
            worker.cml("DELETE", path)


def ports_in_tags(worker: Simulator) -> dict[str, list[int]]:
    """Ask CML for the ports in the tags of every lab, by Pod UID."""
    return {uid: sorted(filter(None, map(number, tags))) for uid, tags in tags_of(worker).items()}


def number(tag: str) -> int:
    """Return the outside port in a tag, 0 if it has none."""
    return next((int(part) for part in tag.split(":") if part.isdigit() and int(part) >= FIRST), 0)


def tags_of(worker: Simulator) -> dict[str, list[str]]:
    """Ask CML, with its own client, for the tags of every lab, by Pod UID."""
    client = ClientLibrary(worker.worker.url, worker.worker.username, worker.password, ssl_verify=False)
    try:
        return {lab.title[-36:]: [t for node in lab.nodes() for t in node.tags()] for lab in client.all_labs(True)}  # noqa: FBT003 (positional in virl2-client)
    finally:
        client._session.close()


def told(one: dict[str, Any]) -> list[int]:
    """Return the ports that a Pod shows."""
    mappings = json.loads(one["metadata"]["annotations"]["vkprovider.io/port-mappings"])
    return sorted(info["allocated_port"] for info in mappings.values())


def agree(cluster: Cluster) -> dict[str, list[int]]:
    """Compare Pods, claims and labs; return the ports of each Pod, by UID."""

    def settled() -> bool:
        """Nothing is under way."""
        rows = sum(len(document(cluster, worker)["lablets"]) for worker in cluster.workers)
        labs = sum(len(worker.labs()) for worker in cluster.workers)
        return rows == labs == len(cluster.pods(PODS)) == running(cluster)

    until(settled, 60, "claims and labs are as many as lablets")
    found: dict[str, list[int]] = {}
    for worker in cluster.workers:
        mine = {p["metadata"]["uid"]: p for p in cluster.pods(PODS) if p["spec"].get("nodeName") == worker.node}
        rows, tags = document(cluster, worker), ports_in_tags(worker)
        assert set(tags) == set(mine) == {row["podUID"] for row in rows["lablets"]}
        assert max(Counter((row["protocol"], row["port"]) for row in rows["portClaims"]).values()) == 1
        for uid, one in mine.items():
            claimed = sorted(row["port"] for row in rows["portClaims"] if uid.startswith(row["podUID"]))
            assert told(one) == claimed == tags[uid], uid
            assert len(claimed) == 6
        found |= tags
    return found


def imports(cluster: Cluster) -> int:
    return sum("title" in entry for worker in cluster.workers for entry in worker.access_log())


def test_claims_deleted_under_a_living_owner_are_written_again_by_themselves(cluster: Cluster) -> None:
    before, imported = agree(cluster), imports(cluster)
    lose_claims(cluster)
    until(lambda: all(cluster.get(path_of(worker)) for worker in cluster.workers), AGAIN_S, "they are there again")
    assert agree(cluster) == before
    assert imports(cluster) == imported


def test_claims_deleted_while_the_provider_is_down_are_rebuilt_from_the_labs(cluster: Cluster) -> None:
    """Pods go and come meanwhile: the labs of those are left for a person, and these get ports that no lab has."""
    before, imported = agree(cluster), imports(cluster)
    cluster.sandbox.kill("provider-1")
    lose_claims(cluster)
    gone = {one["metadata"]["name"]: one["metadata"]["uid"] for one in cluster.pods(PODS)[:3]}
    cluster.kubectl("delete", "pod", *gone, "--grace-period=0", "--force", "--wait=false")
    cluster.sandbox.start("provider-1")
    until(lambda: running(cluster) == LABLETS, 120, "all lablets run again")
    opened = {uid: ports for worker in cluster.workers for uid, ports in ports_in_tags(worker).items()}
    assert opened.keys() == before.keys() | {one["metadata"]["uid"] for one in cluster.pods(PODS)}
    assert {uid: opened[uid] for uid in gone.values()} == {uid: before[uid] for uid in gone.values()}
    for worker in cluster.workers:
        ports = Counter(
            (":udp:" in tag, number(tag)) for tags in tags_of(worker).values() for tag in tags if number(tag)
        )
        assert max(ports.values()) == 1, "a port was given twice"
    remove_left(cluster, set(gone.values()))
    after = agree(cluster)
    kept = before.keys() & after.keys()
    assert len(kept) == LABLETS - len(gone)
    assert {uid: after[uid] for uid in kept} == {uid: before[uid] for uid in kept}
    assert imports(cluster) == imported + len(gone)


def test_claims_deleted_during_a_takeover_are_rebuilt_by_the_taker(cluster: Cluster) -> None:
    replicas = Replicas(cluster)
    replicas.add(2, {"LEADER_LEASE_TTL": "6"})
    until(replicas.is_balanced, 90, "each replica has its share")
    before, imported = agree(cluster), imports(cluster)
    cluster.sandbox.kill("provider-1")
    lose_claims(cluster)  # of its worker before the other one takes over, and of the other's under its hands
    cluster.apply(pod("late", "ported"))
    until(lambda: running(cluster) == LABLETS + 1, 120, "all lablets run, and one more")
    after = agree(cluster)
    assert {uid: ports for uid, ports in after.items() if uid in before} == before
    assert imports(cluster) == imported + 1
