"""The demo of labs as Pods: lablets of a Deployment, and a learner's lab."""

import json
from typing import Any, Final

from vkprovider.platform.messages import count
from vkpsandbox.demo import consoles
from vkpsandbox.demo.labs import differences, is_ready, uid_of, why_not_ready
from vkpsandbox.demo.stage import BOOTS, SOON_S, Part, Play, Stage, display
from vkpsandbox.demo.terminal import DemoError

DEFINITION: Final = "netlab.yaml"
DEPLOYMENT: Final = "affinity.yaml"
LEARNER: Final = "consoles.yaml"
"""A StatefulSet `ann`, with a container for each of its routers."""
CML_VERSION: Final = "vkprovider.io/cml-version"
"""The label of a Node that the Deployment's affinity asks for."""
OLDER: Final = "2.8.1+build.14"
"""The CML release of the last of three or more workers; the Deployment excludes it."""


def labs_as_pods(workers: int) -> Play:
    """Return the demo of a Deployment of lablets and of a learner's lab."""
    last = [*BOOTS, f"--version={OLDER}"] if workers > 2 else BOOTS  # noqa: PLR2004 (two are needed for the Deployment)
    return Play(
        f"Labs as Pods, on a real Kubernetes control plane with {workers} simulated CML workers.",
        {"worker_args": [BOOTS] * (workers - 1) + [last]},
        lambda stage: Deployed(stage).parts(),
        lambda stage: (
            "Deploy once more with\n\n"
            f"  kubectl apply -f {display(stage.examples / DEPLOYMENT)}; kubectl get pods -o wide --watch"
        ),
    )


class Deployed:
    """Lablets of a Deployment, from nothing to nothing."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._deployment = ""
        self._pods: list[dict[str, Any]] = []

    def parts(self) -> list[Part]:
        """Return what is shown."""
        return Part.of(self.show_nodes, self.deploy, self.compare_labs, self.reach, self.learn, self.delete)

    def show_nodes(self) -> None:
        """Each worker is a node.

        To kubectl, the scheduler and monitoring it is one more machine.
        """
        self._stage.run(f"kubectl get nodes -L {CML_VERSION}")

    def deploy(self) -> None:
        """Deploy lablets: only on CML 2.9, and apart from each other (affinity.yaml).

        A lablet is a lab for one learner: a Pod. The stock scheduler finds a worker with room for each.
        """
        stage = self._stage
        files = [display(stage.examples / file) for file in (DEFINITION, DEPLOYMENT)]
        stage.run(f"kubectl apply -f {files[0]} -f {files[1]}")
        found = json.loads(stage.admin.run(f"kubectl get -f {files[1]} -o json"))
        self._deployment, spec = found["metadata"]["name"], found["spec"]
        selector = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())
        wanted = int(spec["replicas"])

        def not_ready() -> list[str]:
            self._pods = stage.get("pods", f"--selector={selector}")
            waiting = [f"{pod['metadata']['name']} {why_not_ready(pod)}" for pod in self._pods if not is_ready(pod)]
            return waiting + ["a pod that does not exist yet"] * (wanted - len(self._pods))

        took_s = stage.wait(not_ready, f"{wanted} Ready lablets")
        stage.say(f"   {count(wanted, 'lablet')} Ready after {took_s:.1f} s")
        stage.run("kubectl get pods -o wide")
        versions = {
            node["metadata"]["name"]: node["metadata"]["labels"].get(CML_VERSION, "") for node in stage.get("nodes")
        }
        used = {pod["spec"]["nodeName"] for pod in self._pods}
        for node in used:
            if not versions[node].startswith("2.9."):
                raise DemoError(
                    f"a lablet is on {node}, which runs CML {versions[node]}: the affinity was not honoured"
                )
        others = sorted(set(versions) - used)
        spared = "".join(f"; none on {node} (CML {versions[node]})" for node in others)
        stage.say(f"   the scheduler chose {', '.join(sorted(used))}{spared}")

    def compare_labs(self) -> None:
        """The labs, as Cisco's own client (virl2-client) lists them.

        The workers are asked, not the provider: there is one started lab for each Pod, where its Pod is.
        """
        labs = self._stage.labs.read()
        pods = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self._pods}
        rows = [(pods.get(uid_of(lab.title), "?"), *lab) for lab in labs]
        self._stage.table([("POD", "WORKER", "TITLE", "STATE", "DEVICES"), *sorted(rows)])
        if wrong := differences(self._pods, labs):
            raise DemoError("pods and labs differ: " + "; ".join(wrong))
        self._stage.say(
            f"   {count(len(labs), 'pod')}, {count(len(labs), 'lab')}: each title ends with the UID of its pod, "
            "on the pod's worker"
        )

    def reach(self) -> None:
        """Every lablet has ports of its own; this is a device's console.

        Many labs of one topology share a worker, because each gets other numbers for the ports in its tags.
        """
        stage, pod = self._stage, self._pods[0]
        worker = next(each for each in stage.sandbox.workers if each.node == pod["spec"]["nodeName"])
        host = consoles.host_of(worker)
        if not host:
            stage.say(f"   left out: {worker.name} has no address of its own on this machine, and opens no ports")
            return
        stage.run(f"kubectl lablet ports {pod['metadata']['name']}")
        for port in consoles.ports(pod).values():
            stage.typed(f"telnet {host} {port}")
            said = consoles.answer_of(host, port)
            if not said:
                log = stage.sandbox.layout.log(worker.process)
                raise DemoError(f"port {port} of {worker.name} does not answer; its log is {log}")
            stage.printed(said)

    def learn(self) -> None:
        """A learner works on a device through kubectl.

        That needs a right in the cluster, but no route to the worker and no CML account (docs/consoles.md).
        """
        stage = self._stage
        stage.run(f"kubectl apply -f {display(stage.examples / LEARNER)}")
        stage.run(f"kubectl rollout status statefulset/ann --timeout={SOON_S:.0f}s")
        said = stage.run("kubectl exec ann-0 -c r1 -- show version")
        if "Cisco IOS" not in said:
            raise DemoError(f"the router r1 of ann-0 does not answer as one: {said!r}")
        stage.run("kubectl logs ann-0 -c r1 --tail=3")

    def delete(self) -> None:
        """Delete the Deployment and the learner's lab.

        A lab is stopped, wiped and deleted with its Pod.
        """
        stage = self._stage
        stage.run(f"kubectl delete deployment/{self._deployment} statefulset/ann")
        took_s = stage.wait(lambda: stage.names("pods"), "no pods")
        stage.say(f"   all pods gone after {took_s:.1f} s")
        stage.wait(stage.labs.left, "no labs in CML")
        stage.say(f"   no lab on {', '.join(stage.labs.workers)}: every CML is empty")
