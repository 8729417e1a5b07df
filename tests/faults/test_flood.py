"""A tenant floods the API server while lablets start and a replica dies: no node is lost, no replica fences itself."""

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import pytest

from tests.support.cluster import Cluster, condition
from tests.support.flood import Flood
from tests.support.replicas import Replicas, since_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, LABLETS = 10, 500
FLOOD_S, TAKEN_S = 60.0, 15.0
READY_S = 400.0
FENCED = "fenced: the replica's Lease could not be renewed"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two replicas and ten workers of the null backend, on a control plane as it is shipped."""
    directory = tmp_path_factory.mktemp("flood")
    with Sandbox.up("flood", directory=directory, workers=WORKERS, replicas=2, backend="null", tied=True) as made:
        yield made


@dataclass
class Watchman:
    """Looks at all nodes and at the flood twice a second, while the block runs.

    Attributes:
        turned: Since when each node has been Ready, or not; two entries if that changed.
        waited_max: The most requests that waited in the tenant's priority level.
    """

    cluster: Cluster
    flood: Flood
    turned: set[tuple[str, str, str]] = field(default_factory=set)
    waited_max: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, name="watchman")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            for node in self.cluster.items("/api/v1/nodes"):
                ready = condition(node, "Ready")
                self.turned.add((node["metadata"]["name"], ready["status"], ready["lastTransitionTime"]))
            self.waited_max = max(self.waited_max, self.flood.waiting())


def fences(replicas: Replicas) -> int:
    """Count in the logs how often a replica fenced itself."""
    names = [status.name for status in replicas.sandbox.processes() if status.name.startswith("provider-")]
    return sum(replicas.sandbox.layout.log(name).read_text(errors="replace").count(FENCED) for name in names)


def test_flood_of_a_tenant_costs_no_node_and_no_takeover(cluster: Cluster, replicas: Replicas, namespace: str) -> None:
    cluster.define(definition("flooded"))
    flood = Flood(cluster, namespace)
    with flood, Watchman(cluster, flood) as watchman:
        began = time.monotonic()
        until(flood.waiting, 60, "the tenant does not fill its priority level")
        cluster.apply(deployment("flooded", "flooded", LABLETS))
        cluster.delete_later("deployment", "flooded")
        pods = cluster.wait_ready("default", LABLETS, "app=flooded", within_s=READY_S)
        ready_s = time.monotonic() - began
        # A null worker, unlike CML, has no lab that a successor could find whose id is not stored yet.
        uids = {pod["metadata"]["uid"] for pod in pods}
        until(lambda: replicas.all_ready_in_claims(uids), 20, "the claims do not say that all lablets have converged")
        victim = replicas.identity("provider-1")
        killed = time.monotonic()
        cluster.sandbox.kill("provider-1")
        until(lambda: not replicas.nodes_of(victim), TAKEN_S, f"nodes of {victim} are not taken", every_s=0.2)
        taken_s = time.monotonic() - killed
        time.sleep(max(0.0, began + FLOOD_S - time.monotonic()))
    sys.stdout.write(
        f"{LABLETS} lablets Ready {ready_s:.0f} s after the flood began, nodes taken after {taken_s:.1f} s; answers to "
        f"the tenant by status: {dict(flood.answers)}, {watchman.waited_max} of its requests waited at most\n"
    )
    assert fences(replicas) == 0
    assert {status for _, status, _ in watchman.turned} == {"True"}
    assert len(watchman.turned) == WORKERS, "a node was not Ready for a while"
    after = cluster.pods("default", "app=flooded")
    assert since_ready(after) == since_ready(pods), "a lablet was not Ready for a while"
