"""A Pod that asks for its next turn at once, for ever, costs the provider's process next to nothing."""

import os

from tests.support.cluster import Cluster, is_ready
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
OVER = {"vkprovider.io/timeslot-end": "2020-01-01T00:00:00Z"}


def cpu_s(pid: int) -> float:
    """The CPU time of a process, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:  # noqa: PTH123 (not a file of a disk)
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def test_timeslot_that_is_over_without_a_user_hangs_nobody(cluster: Cluster, namespace: str) -> None:
    name = f"over-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine"})))
    cluster.apply(pod("pill", name), pod("well", name), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    notes = " ".join(f"{key}={value}" for key, value in OVER.items())
    cluster.kubectl("annotate", "pod", "pill", notes, f"--namespace={namespace}")
    pid = cluster.sandbox.process("provider-1").pid
    assert pid is not None
    before_s = cpu_s(pid)
    throughout(lambda: cluster.health()["status"] == "healthy", 8)
    assert cpu_s(pid) - before_s < 4, "half a core"
    cluster.kubectl("delete", "pod", "well", f"--namespace={namespace}", "--wait=false")
    until(lambda: cluster.pod(namespace, "well") is None, 45, "another lablet's Pod stays")
    assert is_ready(cluster.pod(namespace, "pill"))
