"""The demo of labs as Pods, step by step; each step checks what it shows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from vkprovider.platform.messages import count
from vkpsandbox import Sandbox
from vkpsandbox.demo import reach
from vkpsandbox.demo.labs import Labs
from vkpsandbox.demo.pods import differences, is_ready, names, uid_of, why_not_ready
from vkpsandbox.demo.stage import DemoError, Narrator, Play, display

DEFINITION: Final = "netlab.yaml"
DEPLOYMENT: Final = "affinity.yaml"
LEARNER: Final = "consoles.yaml"
"""A StatefulSet `ann`, with a container for each of its routers."""
CML_VERSION: Final = "vkprovider.io/cml-version"
"""The label of a Node that the Deployment's affinity asks for."""
OLDER: Final = "2.8.1+build.14"
"""The CML release of the last of three or more workers; the Deployment excludes it."""

WATCH: Final = "kubectl get pods -o wide --watch"
READY_S: Final = 60.0
GONE_S: Final = 60.0


def labs_as_pods(workers: int) -> Play:
    """Return the demo of a Deployment of lablets and of a learner's lab."""
    newest = ["--boot-seconds=1-2"]
    arguments = [newest] * (workers - 1) + [[*newest, f"--version={OLDER}"] if workers > 2 else newest]  # noqa: PLR2004 (two are needed for the Deployment)

    def perform(sandbox: Sandbox, examples: Path, narrator: Narrator) -> None:
        story = Story(sandbox, examples, narrator)
        story.show_nodes()
        story.deploy()
        story.compare_labs()
        story.reach()
        story.learn()
        story.delete()

    def again(_: Sandbox, examples: Path) -> str:
        return f"Deploy once more with\n\n  kubectl apply -f {display(examples / DEPLOYMENT)}; {WATCH}"

    title = f"Labs as Pods, on a real Kubernetes control plane with {workers} simulated CML workers."
    return Play(title, (DEFINITION, DEPLOYMENT, LEARNER), {"worker_args": arguments}, perform, again)


class Story:
    """The steps on a sandbox that is up."""

    def __init__(self, sandbox: Sandbox, examples: Path, narrator: Narrator) -> None:
        self._sandbox = sandbox
        self._examples = examples
        self._tell = narrator
        self._deployment = ""
        self._selector = ""
        self._pods: list[dict[str, Any]] = []
        self._labs = Labs(sandbox.workers)

    def show_nodes(self) -> None:
        """Show the workers as nodes."""
        self._tell.head("2. Each worker is a node", "To kubectl, the scheduler and monitoring it is one more machine.")
        self._run("get", "nodes", "-L", CML_VERSION)

    def deploy(self) -> None:
        """Apply the definition and the Deployment; wait until every lablet is Ready, where it should be."""
        self._tell.head(
            "3. Deploy lablets: only on CML 2.9, and apart from each other (affinity.yaml)",
            "A lablet is a lab for one learner: a Pod. The stock scheduler finds a worker with room for each.",
        )
        files = [f"--filename={display(self._examples / file)}" for file in (DEFINITION, DEPLOYMENT)]
        self._run("apply", *files)
        deployment = json.loads(self._sandbox.kubectl("get", files[-1], "-o", "json").stdout)
        self._deployment = deployment["metadata"]["name"]
        spec = deployment["spec"]
        self._selector = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())
        wanted = int(spec["replicas"])
        took = self._tell.wait(lambda: self._not_ready(wanted), READY_S, f"{wanted} Ready lablets")
        self._tell.say(f"   {count(wanted, 'lablet')} Ready after {took:.1f} s")
        self._run("get", "pods", "-o", "wide")
        self._pods = self._listed_pods()
        versions = {
            node["metadata"]["name"]: node["metadata"]["labels"].get(CML_VERSION, "") for node in self._get("nodes")
        }
        used = {pod["spec"]["nodeName"] for pod in self._pods}
        for node in used:
            if not versions[node].startswith("2.9."):
                raise DemoError(
                    f"a lablet is on {node}, which runs CML {versions[node]}: the affinity was not honoured"
                )
        others = sorted(set(versions) - used)
        spared = "".join(f"; none on {node} (CML {versions[node]})" for node in others)
        self._tell.say(f"   the scheduler chose {', '.join(sorted(used))}{spared}")

    def compare_labs(self) -> None:
        """Compare the pods' UIDs with the titles that Cisco's client reads."""
        self._tell.head(
            "4. The labs, as Cisco's own client (virl2-client) lists them",
            "The workers are asked, not the provider: there is one started lab for each Pod, where its Pod is.",
        )
        labs = self._labs.read()
        pods = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self._pods}
        rows = [(pods.get(uid_of(lab.title), "?"), *lab) for lab in labs]
        self._tell.table([("POD", "WORKER", "TITLE", "STATE", "DEVICES"), *sorted(rows)])
        if wrong := differences(self._pods, labs):
            raise DemoError("pods and labs differ: " + "; ".join(wrong))
        self._tell.say(
            f"   {count(len(labs), 'pod')}, {count(len(labs), 'lab')}: each title ends with the UID of its pod, "
            "on the pod's worker"
        )

    def reach(self) -> None:
        """Type at a device's console through its lablet's port."""
        self._tell.head(
            "5. Every lablet has ports of its own; this is a device's console",
            "Many labs of one topology share a worker, because each gets other numbers for the ports in its tags.",
        )
        pod = self._pods[0]
        worker = next(w for w in self._sandbox.workers if w.node == pod["spec"]["nodeName"])
        host = reach.host_of(worker)
        if not host:
            self._tell.say(f"   left out: {worker.name} has no address of its own on this machine, and opens no ports")
            return
        self._tell.typed(f"kubectl lablet ports {pod['metadata']['name']}")
        argv = [sys.executable, "-P", "-m", "vkprovider.cli.lablet", "ports", pod["metadata"]["name"]]
        argv.append(f"--kubeconfig={self._sandbox.kubeconfig}")
        shown = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 (ourselves)
        if shown.returncode:
            raise DemoError(f"kubectl lablet ports: {shown.stderr.strip()}")
        self._tell.printed(shown.stdout.rstrip())
        for port in reach.consoles(pod).values():
            self._tell.typed(f"telnet {host} {port}")
            said = reach.answer_of(host, port)
            if not said:
                log = self._sandbox.layout.log(worker.process)
                raise DemoError(f"port {port} of {worker.name} does not answer; its log is {log}")
            self._tell.printed(said)

    def learn(self) -> None:
        """Work on a device of a learner's lab with kubectl alone."""
        self._tell.head(
            "6. A learner works on a device through kubectl",
            "That needs a right in the cluster, but no route to the worker and no CML account (docs/consoles.md).",
        )
        self._run("apply", f"--filename={display(self._examples / LEARNER)}")
        self._run("rollout", "status", "statefulset/ann", f"--timeout={READY_S:.0f}s")
        said = self._run("exec", "ann-0", "-c", "r1", "--", "show version")
        if "Cisco IOS" not in said:
            raise DemoError(f"the router r1 of ann-0 does not answer as one: {said!r}")
        self._run("logs", "ann-0", "-c", "r1", "--tail=3")

    def delete(self) -> None:
        """Delete the Deployment and the learner's lab; wait until no pod and no lab is left."""
        self._tell.head(
            "7. Delete the Deployment and the learner's lab", "A lab is stopped, wiped and deleted with its Pod."
        )
        self._run("delete", f"deployment/{self._deployment}", "statefulset/ann")
        took = self._tell.wait(lambda: names(self._get("pods")), GONE_S, "no pods")
        self._tell.say(f"   all pods gone after {took:.1f} s")
        self._tell.wait(self._labs.left, GONE_S, "no labs in CML")
        self._tell.say(f"   no lab on {', '.join(self._labs.workers)}: every CML is empty")

    def _run(self, *arguments: str) -> str:
        """Show a kubectl command and what it prints; return the latter."""
        shown = [argument.replace("--filename=", "-f ") for argument in arguments]
        self._tell.typed(f"kubectl {' '.join(shown)}")
        said = self._sandbox.kubectl(*arguments).stdout.rstrip()
        self._tell.printed(said)
        return said

    def _get(self, *what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self._sandbox.kubectl("get", *what, "-o", "json").stdout)["items"]
        return items

    def _listed_pods(self) -> list[dict[str, Any]]:
        return self._get("pods", f"--selector={self._selector}")

    def _not_ready(self, wanted: int) -> list[str]:
        """List the lablets that are missing or not Ready."""
        pods = self._listed_pods()
        waiting = [f"{pod['metadata']['name']} {why_not_ready(pod)}" for pod in pods if not is_ready(pod)]
        return waiting + ["a pod that does not exist yet"] * (wanted - len(pods))
