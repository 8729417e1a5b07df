"""Several replicas of the provider, as a test sees them: who has which node, and what reached CML."""

import http.client
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.cluster import Cluster, condition, is_ready
from tests.support.waiting import until
from vkpsandbox import start
from vkpsandbox.controlplane import programs

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MEMBERS = "/apis/coordination.k8s.io/v1/namespaces/vkprovider-system/leases?labelSelector=vkprovider.io/replica"
NOTHING: Mapping[str, str] = MappingProxyType({})
COMMANDS = "import", "start", "stop", "wipe"
SKEW = "vkprovider_clock_skew_seconds"
CLAIMS = "/api/v1/namespaces/vkprovider-system/configmaps?labelSelector=vkprovider.io/component=claims"


class Replicas:
    """The provider processes of a sandbox."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.sandbox = cluster.sandbox

    @property
    def processes(self) -> list[str]:
        """Names of the processes that run, such as `provider-1`."""
        found = [p.name for p in self.sandbox.processes() if p.name.startswith("provider-") and p.state == "running"]
        return sorted(found)

    def identity(self, process: str) -> str:
        """Ask a process for the name under which it owns nodes.

        Raises:
            OSError: It does not answer.
        """
        return str(json.loads(self.page(process, "/health"))["instance_id"])

    def missing(self, process: str) -> list[str]:
        """Name what a process lacks to be ready."""
        found: list[str] = json.loads(self.page(process, "/ready"))["missing"]
        return found

    def metric(self, process: str, name: str) -> float:
        """Read a metric without labels from a process."""
        lines = self.page(process, "/metrics").decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def page(self, process: str, path: str) -> bytes:
        """Read a path of a process's HTTP page.

        Raises:
            OSError: It does not answer.
        """
        host = self.sandbox.process(process).url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def add(self, number: int, env: Mapping[str, str] = NOTHING, *, kubeconfig: Path | None = None) -> str:
        """Start one more process with settings of its own; give its name."""
        way = kubeconfig or self.sandbox.provider_kubeconfig
        start.add_process(self.sandbox.layout, programs.provider_process(way, number, env))
        return f"provider-{number}"

    def leases(self) -> dict[str, dict[str, Any]]:
        """The specs of all node Leases, by node."""
        return {item["metadata"]["name"]: item["spec"] for item in self.cluster.items(LEASES)}

    def owners(self) -> dict[str, str]:
        """Who has which node: node → replica; "" while nobody has."""
        return {node: spec.get("holderIdentity") or "" for node, spec in self.leases().items()}

    def epochs(self) -> dict[str, tuple[str, int]]:
        """Who has which node in which epoch: node → (replica, epoch)."""
        return {
            node: (spec.get("holderIdentity") or "", spec["leaseTransitions"]) for node, spec in self.leases().items()
        }

    def nodes_of(self, replica: str) -> set[str]:
        """Name the nodes of a replica."""
        return {node for node, owner in self.owners().items() if owner == replica}

    def members(self) -> set[str]:
        """Name the replicas that have a membership."""
        return {item["spec"]["holderIdentity"] for item in self.cluster.items(MEMBERS)}

    def is_balanced(self) -> bool:
        """Tell whether every replica that runs has its share, within one, and nobody else has any."""
        count = Counter(self.owners().values())
        try:
            living = {self.identity(process) for process in self.processes}
        except OSError:  # one has only just been started
            return False
        loads = [count[replica] for replica in living]
        return set(count) <= living and max(loads) - min(loads) <= 1 and len(count) == len(living)

    def all_nodes_ready(self) -> bool:
        """Tell whether every node is Ready; who is not has a reason worth reading."""
        nodes = self.cluster.items("/api/v1/nodes")
        late = {n["metadata"]["name"]: condition(n, "Ready").get("reason") for n in nodes if not is_ready(n)}
        assert not late, f"not Ready: {late}"
        return True

    def nodes_turned(self) -> dict[str, str]:
        """Tell since when every node has been Ready, or not."""
        nodes = self.cluster.items("/api/v1/nodes")
        return {n["metadata"]["name"]: condition(n, "Ready")["lastTransitionTime"] for n in nodes}

    def kill(self, process: str, taken_s: float) -> float:
        """Kill a replica, see its nodes taken in time and no node turn NotReady, and start it; give the seconds."""
        victim, turned = self.identity(process), self.nodes_turned()
        assert self.nodes_of(victim), "there is nothing to take over"
        began = time.monotonic()
        self.sandbox.kill(process)
        until(lambda: not self.nodes_of(victim), taken_s, f"nodes of {victim} are not taken", every_s=0.2)
        took_s = time.monotonic() - began
        sys.stdout.write(f"{process} ({victim}): taken over after {took_s:.1f} s\n")
        assert self.nodes_turned() == turned
        self.sandbox.start(process)
        return took_s

    def commands_seen(self) -> dict[str, Counter[str]]:
        """Count what workers have done for every Pod UID, by command: import, start, stop, wipe."""
        seen: dict[str, Counter[str]] = {command: Counter() for command in COMMANDS}
        for worker in self.cluster.workers:
            pods: dict[str, str] = {}
            for entry in worker.access_log():
                command = entry["path"].rpartition("/")[2]
                if entry.get("lab"):
                    pods[entry["lab"]] = entry["title"][-36:]
                    seen["import"][pods[entry["lab"]]] += 1
                elif entry["method"] == "PUT" and command in seen and entry["status"] < 300:
                    lab = entry["path"].split("/")[-2]
                    seen[command][pods.get(lab, lab)] += 1
        return seen

    def seen_by_cml(self) -> tuple[Counter[str], Counter[str]]:
        """Count what reached the workers for every Pod UID: imports, and starts."""
        seen = self.commands_seen()
        return seen["import"], seen["start"]

    def all_ready_in_claims(self, pod_uids: set[str]) -> bool:
        """Tell whether the claims say of all these lablets that they have converged; they say so a little later."""
        maps = self.cluster.items(CLAIMS)
        rows = [row for found in maps for row in json.loads(found["data"]["allocations.json"])["lablets"]]
        return pod_uids <= {row["podUID"] for row in rows if row.get("readyAt")}

    def once_each(self, namespace: str = "default") -> None:
        """Assert that CML saw one import and one start of every lablet, and no container was started again."""
        pods = self.cluster.pods(namespace)
        imports, starts = self.seen_by_cml()
        uids = [pod["metadata"]["uid"] for pod in pods]
        assert {uid: (imports[uid], starts[uid]) for uid in uids} == dict.fromkeys(uids, (1, 1))
        assert restarts(pods) == {0}


def since_ready(pods: list[dict[str, Any]]) -> dict[str, str]:
    """Tell since when each Pod has been Ready, by UID."""
    return {pod["metadata"]["uid"]: str(condition(pod, "Ready").get("lastTransitionTime")) for pod in pods}


def restarts(pods: list[dict[str, Any]]) -> set[int]:
    """Give the restart counts of all containers."""
    return {status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]}
