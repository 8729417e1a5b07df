"""An installation moved by the page's commands: lablets and labs stay, but those of users, which end."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.engineer import INSTALL, Engineer, engineer
from tests.support.extra import SYSTEM
from tests.support.installation import Installation
from tests.support.waiting import until
from vkprovider.portal.pure.portalnames import LABEL_PORTAL

PORTS = "vkprovider.io/port-mappings"
USER = "nublado-alice"
"""The namespace of a user lab, as a portal of the old namespace has made it."""


@pytest.mark.timeout(600)
def test_lablets_outlive_a_move(tmp_path: Path) -> None:
    with engineer("moving", tmp_path) as here:
        here.install()
        here.start_lablets()
        before = lablets(here.cluster.items("pods", "--namespace=default"))
        labs = {name: sorted(here.labs(name)) for name in here.cmls}
        start_user_lab(here)
        here.run(INSTALL, "End user labs before a move")
        assert not here.cluster.get("namespace", USER)
        assert {name: sorted(here.labs(name)) for name in here.cmls} == labs, "the lab of the user has ended"
        codes = [replica.end() for replica in here.cluster.replicas]  # as a kubelet does, whose Pods are deleted
        assert set(codes) == {0}, here.cluster.logs()
        here.run(INSTALL, "Move")
        here.cluster.namespace = "labs"
        here.cluster.run_deployment()
        names = {f"vnode.{name}" for name in here.cmls}
        until(lambda: homes(here.cluster, names) == dict.fromkeys(names, "labs"), 90, here.cluster.logs())
        here.lablets()
        assert lablets(here.cluster.items("pods", "--namespace=default")) == before
        assert {name: sorted(here.labs(name)) for name in here.cmls} == labs
        assert not here.cluster.get("namespace", SYSTEM)
        [subject] = here.cluster.get("clusterrolebinding", "vkprovider")["subjects"]
        assert subject["namespace"] == "labs"


def start_user_lab(here: Engineer) -> None:
    """Have the lab of a user, as the portal marks it; the program itself does not run here."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": USER, "labels": {LABEL_PORTAL: SYSTEM}}}
    lab = {"name": "lab", "image": "mylab:1.0.0", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "nb-alice", "namespace": USER},
        "spec": {"runtimeClassName": "mylab", "containers": [lab]},
    }
    here.cluster.apply(namespace)
    may = ("--clusterrole=vkprovider-lablet-user", f"--serviceaccount={USER}:default")
    here.cluster.kubectl("create", "rolebinding", "lablets", f"--namespace={USER}", *may)
    until(lambda: here.cluster.get("serviceaccount", "default", f"--namespace={USER}"), 30, "no ServiceAccount")
    here.cluster.apply(pod)
    here.cluster.wait_lablets(USER, 1)


def homes(cluster: Installation, names: set[str]) -> dict[str, str]:
    """The namespaces of the replicas that act for Nodes, by Node."""
    leases = {lease["metadata"]["name"]: lease for lease in cluster.items("leases", "--namespace=kube-node-lease")}
    held = {name: leases[name] for name in names if leases[name]["spec"].get("holderIdentity")}
    return {name: lease["metadata"]["labels"]["vkprovider.io/installed-in"] for name, lease in held.items()}


def lablets(pods: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """The labs and ports of lablets, by UID."""
    notes = {pod["metadata"]["uid"]: pod["metadata"]["annotations"] for pod in pods}
    return {uid: (found["vkprovider.io/lab-id"], found.get(PORTS, "")) for uid, found in notes.items()}
