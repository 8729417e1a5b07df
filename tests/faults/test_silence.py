"""A worker that is silent for longer than any default patience, and comes back."""

import time

from tests.support.cluster import Cluster, condition, is_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until

SILENCE_S = 360
"""Longer than the 300 s after which a pod without our tolerations is evicted."""
LABLETS = 6


def test_silence_ends_nothing(cluster: Cluster) -> None:
    cluster.define(definition("silence"))
    cluster.apply(deployment("silence", "silence", LABLETS))
    cluster.delete_later("deployment", "silence")
    before = cluster.wait_ready("default", LABLETS)
    quiet = cluster.workers[0]
    on_it = {pod["metadata"]["uid"] for pod in before if pod["spec"]["nodeName"] == quiet.node}
    assert on_it, "no lablet runs on the worker that falls silent"
    labs = {uid: lab["id"] for uid in on_it if (lab := quiet.lab_of(uid))}
    assert set(labs) == on_it
    last = quiet.last_request()

    began = time.monotonic()
    quiet.silence(SILENCE_S)
    until(lambda: condition(cluster.node(quiet), "Ready").get("status") == "False", 180, "the node does not turn")
    assert condition(cluster.node(quiet), "Ready")["reason"] == "WorkerUnreachable"

    def lablets_not_ready() -> bool:
        pods = [pod for pod in cluster.pods("default") if pod["metadata"]["uid"] in on_it]
        return not any(is_ready(pod) for pod in pods)

    until(lablets_not_ready, 180, "lablets of a silent worker stay Ready")
    taints = {taint["key"] for taint in (cluster.node(quiet) or {})["spec"]["taints"]}
    until(
        lambda: "node.kubernetes.io/not-ready" in {t["key"] for t in (cluster.node(quiet) or {})["spec"]["taints"]},
        90,
        f"the stock controller does not taint the node: {taints}",
    )
    while time.monotonic() - began < SILENCE_S:
        uids = {pod["metadata"]["uid"] for pod in cluster.pods("default")}
        assert uids == {pod["metadata"]["uid"] for pod in before}, "a pod was evicted or replaced"
        time.sleep(5)

    until(lambda: is_ready(cluster.node(quiet)), 180, "the node does not come back")
    after = cluster.wait_ready("default", LABLETS, within_s=180)
    assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in before}
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in after)
    labs_after = {uid: lab["id"] for uid in on_it if (lab := quiet.lab_of(uid))}
    assert labs_after == labs
    writes = [entry for entry in quiet.access_log(last) if entry["method"] in {"PUT", "DELETE", "PATCH"}]
    imports = [entry for entry in quiet.access_log(last) if entry["path"].endswith("/import")]
    assert not [entry for entry in writes if "/labs/" in entry["path"]]
    assert not imports
