"""A sandbox with an ordinary Node, on which everything runs as Pods, installed as docs/install.md says."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support import containers
from tests.support.containers import IMAGE, WORKBENCH, podman
from tests.support.extra import ACCOUNT, SYSTEM, Program, cmlworker, secret
from tests.support.installation import EVERYBODY, MANIFESTS, WORKER, Installation
from tests.support.sandboxes import started
from tests.support.waiting import until
from vkpsandbox.controlplane.relay import find_haproxy
from vkpsandbox.node import needs, room, runtime
from vkpsandbox.processes.record import OrdinaryNode

HAPROXY: Final = "docker.io/library/haproxy:2.8"
"""The image of the relay's HAProxy, as the manifests name it."""
PORTS: Final = {"start": 2000, "end": 7999}
"""Of a worker, as docs/connect-cml.md has it."""
CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400}
RELAY: Final = "vkprovider-relay"
"""The relay's namespace, and its DaemonSet."""
DEPLOYMENTS: Final = ("vkprovider", "vkprovider-mux", "vkprovider-portal")


@cache
def missing() -> str:
    """Return the reason why there can be no ordinary Node with the image of the checkout here; "" if there can."""
    return needs.missing() or containers.missing()


@cache
def archive(folder: Path) -> Path:
    """Build the images of the checkout and of an HAProxy; return an archive of both."""
    os.environ.setdefault("BUILDAH_ISOLATION", "chroot")  # a machine that is itself a guest has no other
    containers.build()
    context = folder / "haproxy"
    shutil.copytree(Path(find_haproxy()).parent, context / "bin")  # of the wheel: it has its libraries beside it
    lines = (f"FROM {containers.BASE}", "COPY bin /opt/haproxy", "ENV PATH=/opt/haproxy:$PATH")
    (context / "Containerfile").write_text("\n".join(lines))
    podman("build", "--quiet", f"--tag={HAPROXY}", str(context))
    made = folder / "images.tar"
    podman("save", "--quiet", "--multi-image-archive", f"--output={made}", IMAGE, HAPROXY)
    return made


def workbench_archive(folder: Path, kubectl: Path) -> Path:
    """Build the image of workbenches on that of the checkout, which is there; return an archive of it."""
    containers.build_workbench(kubectl)
    made = folder / "workbench.tar"
    podman("save", "--quiet", f"--output={made}", WORKBENCH, timeout_s=600)
    return made


class Ordinary(Installation):
    """An installation whose Pods run in containers, with a simulated worker on the host."""

    @property
    def node(self) -> OrdinaryNode:
        """The Node."""
        assert self.sandbox.node
        return self.sandbox.node

    def overlay(self, name: str = "complete", tag: str = "image") -> Path:
        """Write an overlay of one's own on top of a shipped one, which names the image; return its folder."""
        folder = self.directory / f"{name}-{tag}"
        folder.mkdir(exist_ok=True)
        image = {"name": "vkprovider", "newName": IMAGE.partition(":")[0], "newTag": tag}
        below = os.path.relpath(MANIFESTS / "overlays" / name, folder)
        (folder / "kustomization.yaml").write_text(json.dumps({"resources": [below], "images": [image]}))
        return folder

    def pods(self) -> list[dict[str, Any]]:
        """Return the Pods of all programs."""
        return [pod for namespace in (SYSTEM, RELAY) for pod in self.items("pods", f"--namespace={namespace}")]

    def rolled_out(self, within_s: float = 240) -> None:
        """Wait until all Pods of all programs are Ready by their own probes, and no others are left."""

        def ready() -> bool:
            counts = []
            for name in DEPLOYMENTS:
                found = self.get("deployment", name, f"--namespace={SYSTEM}")
                status, wanted = found["status"], found["spec"]["replicas"]
                assert status.get("observedGeneration") == found["metadata"]["generation"], name
                counts.append((name, wanted, *(status.get(f"{each}Replicas", 0) for each in ("updated", "ready"))))
            found = self.get("daemonset", RELAY, f"--namespace={RELAY}")["status"]
            relays = (found.get("updatedNumberScheduled", 0), found.get("numberReady", 0))
            counts.append((RELAY, found["desiredNumberScheduled"], *relays))
            assert all(wanted == updated == is_ready for _, wanted, updated, is_ready in counts), counts
            return bool(len(self.pods()) == sum(wanted for _, wanted, _, _ in counts))

        try:
            until(ready, within_s, every_s=1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(SYSTEM)}\n{self.story(RELAY)}") from error

    def story(self, namespace: str) -> str:
        """Return what Pods and Events of a namespace say, for a test that fails."""
        said = [self.kubectl("get", kind, f"--namespace={namespace}", "-o", "wide") for kind in ("pods", "events")]
        for pod in self.items("pods", f"--namespace={namespace}"):
            name = pod["metadata"]["name"]
            logs = ("logs", name, f"--namespace={namespace}", "--all-containers", "--tail=8")
            said.append(f"{name}: {self.sandbox.kubectl(*logs, check=False).stdout}")
        return "\n".join(said)

    def connect(self) -> None:
        """Describe the worker, and let everybody run lablets."""
        self.kubectl(*EVERYBODY)
        [(host, port)] = self.node.worker_endpoints(1)
        url = f"https://{host}:{port}"
        self.apply(
            secret(WORKER, ACCOUNT, url),
            cmlworker(WORKER, url, environment="default", portRange=PORTS, capacity=CAPACITY),
        )

    def kill_container(self, name: str) -> None:
        """Kill the first process of a container, as a lack of memory does."""
        there = ["nsenter", f"--target={room.pid_of(self.sandbox.layout)}", "--net", "--mount", "--pid"]
        ctr = ("ctr", f"--address={runtime.SOCKET}", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", name)
        subprocess.run([*there, *ctr], check=True, timeout=60)  # noqa: S603 (of the test)


@contextmanager
def ordinary(name: str, directory: Path, archives: Sequence[Path]) -> Iterator[Ordinary]:
    """Start an empty cluster with an ordinary Node that has the images of archives, and a worker on the host."""
    with started(name, directory / "sandbox", workers=0, provider=False, node=True) as sandbox:
        for each in archives:
            sandbox.load(each)
        made = Ordinary(sandbox, directory)
        [(host, port)] = made.node.worker_endpoints(1)
        worker = Program(f"--listen={host}:{port}", "--boot-seconds=0.2", "--patty")
        try:
            yield made
        finally:
            worker.close()


def install(made: Ordinary) -> None:
    """Install everything by kubectl, and wait until all Pods are Ready."""
    made.kubectl("label", "node", made.node.name, "relay.vkprovider.io/host=true", "--overwrite")
    made.kubectl("apply", "-k", str(made.overlay()))
    made.rolled_out()
