"""An engineer who follows the pages: an empty cluster, two CMLs, and what is there before and after."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.cluster import condition
from tests.support.docs import Reader
from tests.support.extra import ACCOUNT, SYSTEM, Program
from tests.support.installation import Installation
from tests.support.sandboxes import started
from tests.support.simulator import Simulator
from tests.support.topologies import topology
from tests.support.waiting import until
from vkpsandbox import Sandbox, Worker

INSTALL, CONNECT, FIRST = "docs/install.md", "docs/connect-cml.md", "docs/first-lablet.md"
EXECUTED = {
    INSTALL: (
        "Install",
        "With Helm",
        "From kubectl to Helm",
        "Check",
        "End user labs before a move",
        "Move",
        "Uninstall",
        "Let go by hand",
    ),
    CONNECT: (
        "The account",
        "Change the password",
        "The certificate",
        "The worker",
        "Maintenance",
        "Put it back",
        "Remove a worker",
        "A worker that never comes back",
    ),
    FIRST: ("Define it", "Start one", "Start many", "End them"),
}
"""The sections with commands; tests execute all: those about Helm and a move apart, the others in this order."""


class Engineer:
    """An empty cluster, two CMLs with a lab of somebody else on each, and a reader of the pages."""

    def __init__(self, sandbox: Sandbox, directory: Path, programs: list[Program]) -> None:
        self.cluster = Installation(sandbox, directory)
        self.programs = programs  # those in it are closed at the end
        self.cmls = {f"cml-{number}": _cml(number, program.url) for number, program in enumerate(programs, 1)}
        for cml in self.cmls.values():
            cml.cml("POST", "/labs", {"title": "homework"})
        path = [str(sandbox.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        environ = {"PATH": os.pathsep.join(path), "KUBECONFIG": str(sandbox.kubeconfig), "HOME": str(directory)}
        home = directory / "checkout"
        home.mkdir()
        (home / "cml.yaml").write_text(topology({"h0": "alpine", "h1": "alpine"}))
        self.reader = Reader(home, environ, self.own())
        self.before = self.objects()

    def own(self) -> dict[str, str]:
        """What stands in the pages: what it is here."""
        hosts = {f"{name}.example.com": cml.worker.url.removeprefix("https://") for name, cml in self.cmls.items()}
        # Both run on this machine; learners reach two workers at two addresses, or at one with other ports.
        secrets = {name: f"credentialsSecretName: {name}" for name in self.cmls}
        addresses = {text: f"{text}\n  address: 127.0.0.{name[-1]}" for name, text in secrets.items()}
        return {
            **addresses,
            **{f"{name}:443": address for name, address in hosts.items()},
            **hosts,
            "=USER ": f"={ACCOUNT['username']} ",
            "=PASSWORD": f"={ACCOUNT['password']}",
        }

    def objects(self) -> dict[str, str]:
        """Every object of the cluster but Events, by kind, namespace and name: its JSON."""
        kinds = self.cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()
        listed = self.cluster.items(",".join(kind for kind in kinds if not kind.startswith("events")), "-A")
        return {
            "/".join([i["kind"], i["metadata"].get("namespace", ""), i["metadata"]["name"]]): json.dumps(i)
            for i in listed
        }

    def left(self) -> list[str]:
        """Name objects that are ours or speak of us, and what was not there before beside the control plane's own."""
        now = self.objects()
        new = [name for name in now.keys() - self.before.keys() if "/kube-system/" not in name]
        return sorted({*new, *(name for name, text in now.items() if "vkprovider" in text)})

    def labs(self, name: str) -> list[str]:
        """The labs on a CML, but the one of somebody else, which must be as it was."""
        labs = self.cmls[name].labs()
        [theirs] = [lab for lab in labs if lab["lab_title"] == "homework"]
        assert theirs["state"] == "DEFINED_ON_CORE"
        return [lab["id"] for lab in labs if lab is not theirs]

    def install(self) -> None:
        """Install, run the provider as its Deployment would, connect both CMLs."""
        self.reader.run(INSTALL, "Install")
        self.cluster.start()
        for name in self.cmls:
            for heading in ("The account", "The certificate", "The worker"):
                self.reader.run(CONNECT, heading, cml_1=name)

    def run(self, page: str, heading: str) -> str:
        """Follow a section; give what its commands printed."""
        assert heading in EXECUTED[page]
        return self.reader.run(page, heading)

    def start_lablets(self) -> None:
        """Have a Deployment of four lablets."""
        for heading in ("Define it", "Start many"):
            self.run(FIRST, heading)
        self.lablets()

    def delete_own(self) -> None:
        """Delete what is the reader's own, as a reader does after uninstalling."""
        self.cluster.kubectl("delete", "deployment/mylab", "rolebinding/lablets")

    def events(self, name: str) -> set[str]:
        """The reasons of the Events about an object of the cluster."""
        about = f"--field-selector=involvedObject.name={name}"
        return {item["reason"] for item in self.cluster.items("events", "--namespace=default", about)}

    def end_provider(self) -> None:
        """Do what a kubelet does when the Deployment's Pods are deleted."""
        until(lambda: not self.cluster.items("pods", f"--namespace={SYSTEM}"), 90, "the provider's Pods stay")
        codes = [replica.end() for replica in self.cluster.replicas]
        assert set(codes) <= {0}, self.cluster.logs()
        self.cluster.replicas.clear()

    def lablets(self) -> dict[str, str]:
        """The Pods of the Deployment by name, with their Nodes; all must be Ready."""
        pods = self.cluster.wait_lablets("default", 4)
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}

    def ready_of(self, kind: str, name: str) -> dict[str, Any]:
        """The condition Ready of an object."""
        return condition(self.cluster.get(kind, name), "Ready")


def _cml(number: int, url: str) -> Simulator:
    return Simulator(Worker(f"cml-{number}", url, "", ACCOUNT["username"], ACCOUNT["password"], 1, ""))


def _close(programs: list[Program]) -> None:
    for program in programs:
        program.close()


@contextmanager
def engineer(name: str, directory: Path) -> Iterator[Engineer]:
    """Make what an engineer begins with."""
    with ExitStack() as stack:
        programs: list[Program] = []
        stack.callback(_close, programs)
        programs.extend(Program("--boot-seconds=0.2") for _ in range(2))
        sandbox = stack.enter_context(started(name, directory / "sandbox", workers=0, provider=False))
        made = Engineer(sandbox, directory, programs)
        try:
            yield made
        finally:
            for replica in made.cluster.replicas:
                replica.end()
