"""The shortest story of all: the stock controllers make labs of a Deployment, and take the labs with it."""

from tests.support.cluster import Cluster
from tests.support.topologies import definition, deployment
from tests.support.waiting import until


def test_deployment_becomes_labs_and_leaves_none(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("smoke"))
    cluster.apply(deployment("smoke", "smoke", 3), namespace=namespace)
    pods = cluster.wait_ready(namespace, 3)
    for pod in pods:
        lab = cluster.lab_of(pod)
        assert lab
        assert lab["state"] == "STARTED"
        assert lab["lab_title"].startswith("smoke-")
    cluster.kubectl("delete", "deployment", "smoke", f"--namespace={namespace}")
    cluster.wait_gone(namespace)
    until(lambda: not any(worker.labs() for worker in cluster.workers))
