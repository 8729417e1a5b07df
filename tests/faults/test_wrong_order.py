"""Uninstalled in the wrong order: nothing blocks for ever, and the way out that the page tells works."""

from pathlib import Path
from typing import Any

from tests.support.engineer import CONNECT, INSTALL, engineer
from tests.support.extra import SYSTEM
from tests.support.waiting import throughout, until

CRDS = ("crd", "cmlworkers.vkprovider.io", "labletdefinitions.vkprovider.io")
ROLE = "--clusterrole=vkprovider-lablet-user"
DRAIN = ("drain", "--selector=vkprovider.io/component=vnode", "--force", "--ignore-daemonsets", "--timeout=60s")


def test_definitions_deleted_first_wait_for_the_last_lablet(tmp_path: Path) -> None:
    with engineer("crds-first", tmp_path) as here:
        here.install()
        here.start_lablets()
        kubectl = here.cluster.kubectl
        kubectl("delete", *CRDS, "--wait=false")
        for kind, name in (("cmlw", "cml-1"), ("cmlw", "cml-2"), ("ldef", "mylab")):
            until(lambda kind=kind, name=name: here.ready_of(kind, name).get("reason") == "InUse", 60, name)  # type: ignore[misc]
        here.lablets()
        kubectl(*DRAIN)
        kubectl("wait", "--for=delete", *CRDS, "--timeout=60s")
        until(lambda: not here.cluster.items("nodes"), 60, "Nodes stay")
        here.run(INSTALL, "Let go by hand")
        here.end_provider()
        here.delete_own()
        until(lambda: not here.left(), 180, f"left: {here.left()}")
        assert [here.labs(name) for name in here.cmls] == [[], []]


def test_namespace_deleted_first_comes_back_by_installing_again(tmp_path: Path) -> None:
    with engineer("namespace-first", tmp_path) as here:
        here.install()
        here.start_lablets()
        labs = {name: set(here.labs(name)) for name in here.cmls}
        kubectl = here.cluster.kubectl
        kubectl("delete", "namespace", SYSTEM, "--wait=false")
        here.end_provider()
        kubectl("wait", "--for=delete", f"namespace/{SYSTEM}", "--timeout=60s")
        assert {name: set(here.labs(name)) for name in here.cmls} == labs
        pods = here.cluster.items("pods", "--namespace=default")
        deleted = next(pod for pod in pods if pod["spec"]["nodeName"] == "vnode.cml-1")
        orphan, its_lab = deleted["metadata"]["name"], lab_of(deleted)
        assert its_lab in labs["cml-1"]
        kubectl("delete", "pod", orphan, "--wait=false")
        throughout(lambda: here.cluster.get("pod", orphan), 3)

        here.reader.run(INSTALL, "Install")
        here.cluster.start()  # the logins of workers have a namespace of their own, and are still there
        until(lambda: not here.cluster.get("pod", orphan), 90, "its deletion is not confirmed")
        here.lablets()
        now = {name: set(here.labs(name)) for name in here.cmls}
        assert all(labs[name] - {its_lab} <= now[name] for name in labs), "labs of Pods that go on are gone"
        assert its_lab not in now["cml-1"]
        assert sum(map(len, now.values())) == sum(map(len, labs.values())), "more than the successor's was made"

        here.run(INSTALL, "Uninstall")
        here.end_provider()
        here.delete_own()
        until(lambda: not here.left(), 180, f"left: {here.left()}")
        assert [here.labs(name) for name in here.cmls] == [[], []]


def lab_of(pod: dict[str, Any]) -> str:
    """Return the id of a lablet's lab."""
    container: str = pod["status"]["containerStatuses"][0]["containerID"]
    return container.removeprefix("cml://").partition("/")[0]


def test_everything_can_be_let_go_by_hand(tmp_path: Path) -> None:
    """One CML never comes back and is abandoned; then all is deleted at once, lablets last."""
    with engineer("by-hand", tmp_path) as here:
        here.install()
        kubectl = here.cluster.kubectl
        kubectl("create", "namespace", "team-a")
        here.start_lablets()
        here.programs.pop(1).close()
        until(lambda: here.ready_of("cmlw", "cml-2").get("reason") == "WorkerUnreachable", 90)
        here.run(CONNECT, "A worker that never comes back")
        until(lambda: "Abandoned" in here.events("cml-2"), 30)
        assert here.cluster.get("node", "vnode.cml-2") == {}

        kubectl("create", "rolebinding", "lablets", "--namespace=team-a", ROLE, "--serviceaccount=team-a:default")
        until(lambda: kubectl("create", "--namespace=team-a", "-f", "-", input=POD), 30)  # authorization lags behind
        kubectl("wait", "--for=condition=Ready", "pod/theirs", "--namespace=team-a", "--timeout=60s")
        kubectl("delete", "namespace", SYSTEM, "--wait=false")
        here.end_provider()
        kubectl("wait", "--for=delete", f"namespace/{SYSTEM}", "--timeout=60s")
        kubectl("delete", *CRDS, "--wait=false")
        kubectl("delete", "namespace", "team-a", "--wait=false")
        throughout(lambda: here.cluster.get("pod", "theirs", "--namespace=team-a") and here.cluster.get(*CRDS[:2]), 3)

        here.run(INSTALL, "Let go by hand")
        kubectl("wait", "--for=delete", "namespace/team-a", "--timeout=90s")
        here.delete_own()
        until(lambda: not here.left(), 180, f"left: {here.left()}")
        mark = f"vkprovider installation={here.cluster.get('namespace', 'kube-system')['metadata']['uid']}"
        ours = [lab for lab in here.cmls["cml-1"].labs() if lab["lab_notes"].splitlines()[:1] == [mark]]
        assert len(ours) == len(here.labs("cml-1")) == 3


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: theirs}
spec:
  runtimeClassName: mylab
  containers:
  - {name: lab, image: mylab}
"""
