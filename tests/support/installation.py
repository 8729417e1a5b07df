"""An installation by the shipped manifests: what its Deployment would run in containers runs as processes here."""

import base64
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.cluster import is_ready
from tests.support.extra import ACCOUNT, SYSTEM, Program, cmlworker, secret
from tests.support.sandboxes import started
from tests.support.waiting import until
from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.processes.ports import free_ports

MANIFESTS = find_manifests()
WORKER = "cml-1"
EVERYBODY = (
    "create",
    "clusterrolebinding",
    "lablets",
    "--clusterrole=vkprovider-lablet-user",
    "--group=system:serviceaccounts",
)
"""Lets every Pod run every definition, as docs/install.md has it."""
POD_IP = "192.0.2.2"
"""What a kubelet would have given: a documentation address."""


class Replica:
    """One Pod of the Deployment, as a process; its probes are asked as a kubelet would."""

    def __init__(self, installation: "Installation", pod: dict[str, Any]) -> None:
        self.pod = pod
        self.name = pod["metadata"]["name"]
        [self.container] = pod["spec"]["containers"]
        [self.port] = free_ports(1)
        home = installation.directory / self.name
        home.mkdir()
        account = pod["spec"]["serviceAccountName"]
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={self.name}")
        token = installation.kubectl(
            "create", "token", account, f"--namespace={installation.namespace}", *bound
        ).strip()
        # All replicas share this machine's ports.
        environ = {**installation.environment(pod, self.container), "VKPROVIDER_HTTP_PORT": str(self.port)}
        for volume in ("secrets", "tls"):
            installation.mount(pod, volume, home / volume)
        arguments, environ = self.command(installation, home, token, environ)
        self.log = home / "log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 (the Deployment's command)
                arguments, env=environ, stdout=output, stderr=output, cwd="/"
            )

    def command(
        self, installation: "Installation", home: Path, token: str, environ: dict[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Return command line and environment of the process.

        Args:
            installation: Where it runs.
            home: Its folder here; `secrets` and `tls` in it are the volumes of these names.
            token: Of its ServiceAccount.
            environ: What the Deployment gives to the container.
        """
        cluster = read_cluster(installation.sandbox.kubeconfig)
        write_kubeconfig(home / "kubeconfig", name="replica", cluster=cluster, user={"token": token})
        programs = str(Path(sys.executable).parent)
        program = shutil.which(self.container["command"][0], path=programs)
        assert program
        # A process has folders of its own where a container has mounts.
        places = {
            "PATH": programs,
            "VKPROVIDER_SECRETS_DIR": str(home / "secrets"),
            "VKPROVIDER_HTTP_TLS_CERT": str(home / "tls" / "tls.crt"),
            "VKPROVIDER_HTTP_TLS_KEY": str(home / "tls" / "tls.key"),
            "KUBECONFIG": str(home / "kubeconfig"),
        }
        return [program, *self.container["command"][1:]], environ | places

    def get(self, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
        """Ask its page; give status and body, status 0 if nothing listens."""
        unverified = ssl.create_default_context()  # as a kubelet's probe
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=unverified)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except OSError:
            return 0, {}
        finally:
            connection.close()

    def probe(self, kind: str) -> int:
        """Ask what a probe of the container asks: `startup`, `liveness`, `readiness`; give the status."""
        request = self.container[f"{kind}Probe"]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        assert ports[request["port"]] == 8082, "not the setting's default"
        assert request["scheme"] == "HTTPS"
        return self.get(request["path"])[0]

    def end(self) -> int:
        """End it as a kubelet does, and give its exit code."""
        self._process.terminate()
        return self._process.wait(timeout=30)


class Installation:
    """A control plane to which `manifests/overlays/default` was applied, with one simulated worker.

    Attributes:
        namespace: The provider's.
    """

    def __init__(self, sandbox: Sandbox, directory: Path, replica: type[Replica] = Replica) -> None:
        self.sandbox = sandbox
        self._replica = replica
        self.directory = directory
        self.replicas: list[Replica] = []
        self.namespace = SYSTEM

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 (as in subprocess.run)
        """Run kubectl as admin; raises SandboxError with what it said."""
        return self.sandbox.kubectl(*arguments, input=input).stdout

    def refused(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 (as in subprocess.run)
        """Run a kubectl that must fail, and give what it said; empty if it did not fail."""
        result = self.sandbox.kubectl(*arguments, input=input, check=False)
        return result.stderr if result.returncode else ""

    def get(self, *arguments: str) -> dict[str, Any]:
        """Run `kubectl get … -o json`; an object that does not exist is empty."""
        found = self.kubectl("get", *arguments, "-o", "json", "--ignore-not-found")
        decoded: dict[str, Any] = json.loads(found or "{}")
        return decoded

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """List objects."""
        items: list[dict[str, Any]] = self.get(*arguments).get("items", [])
        return items

    def apply(self, *objects: dict[str, Any], namespace: str = "") -> None:
        """`kubectl apply` objects."""
        where = [f"--namespace={namespace}"] if namespace else []
        self.kubectl(
            "apply", "-f", "-", *where, input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        )

    def environment(self, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, str]:
        """Resolve a container's environment, as a kubelet does."""
        fields = {f"metadata.{key}": pod["metadata"][key] for key in ("name", "namespace")} | {"status.podIP": POD_IP}
        found: dict[str, str] = {}
        for source in container["envFrom"]:
            if "configMapRef" in source:
                name = source["configMapRef"]["name"]
                found |= self.get("configmap", name, f"--namespace={self.namespace}").get("data", {})
        for entry in container["env"]:
            found[entry["name"]] = entry.get("value") or fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        return found

    def mount(self, pod: dict[str, Any], volume: str, folder: Path) -> Path:
        """Write the Secret of a volume into a folder, as a kubelet does; an optional one may be missing."""
        [name] = [each["secret"]["secretName"] for each in pod["spec"]["volumes"] if each["name"] == volume]
        folder.mkdir()
        for key, value in self.get("secret", name, f"--namespace={self.namespace}").get("data", {}).items():
            (folder / key).write_bytes(base64.b64decode(value))
        return folder

    def start(self, **settings: str) -> None:
        """Run every Pod of the Deployment as a process; `settings` go into the ConfigMap that it reads."""
        meta = {"name": "vkprovider-settings", "namespace": self.namespace}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": settings})
        self.run_deployment()

    def run_deployment(self) -> None:
        """Run every Pod of the Deployment as a process."""
        wanted = self.get("deployment", "vkprovider", f"--namespace={self.namespace}")["spec"]["replicas"]
        self.replicas = [self._replica(self, pod) for pod in until(lambda: self._pods(wanted), 45)]

    def _pods(self, count: int) -> list[dict[str, Any]]:
        pods = self.items("pods", f"--namespace={self.namespace}", "--selector=app.kubernetes.io/name=vkprovider")
        assert len(pods) == count, pods
        return pods

    def wait_node(self) -> None:
        """Wait until the worker's Node is Ready."""
        until(lambda: is_ready(self.get("node", f"vnode.{WORKER}")), 90, self.logs())

    def wait_lablets(self, namespace: str, count: int) -> list[dict[str, Any]]:
        """Wait until a namespace has so many Pods and all are Ready."""

        def ready() -> list[dict[str, Any]]:
            pods = self.items("pods", f"--namespace={namespace}")
            assert len(pods) == count, [pod["metadata"]["name"] for pod in pods]
            assert all(is_ready(pod) for pod in pods), [pod["status"] for pod in pods]
            return pods

        return until(ready, 90)

    def logs(self) -> str:
        """Give the end of every replica's log."""
        return "\n".join(line for replica in self.replicas for line in replica.log.read_text().splitlines()[-20:])


@contextmanager
def installed(name: str, directory: Path, replica: type[Replica] = Replica) -> Iterator[Installation]:
    """Make an empty cluster where everybody may run lablets, apply the overlay, connect a worker, run the provider."""
    with started(name, directory / "sandbox", workers=0, provider=False) as sandbox:
        made = Installation(sandbox, directory, replica)
        made.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "default"))
        made.kubectl(*EVERYBODY)
        program = Program("--boot-seconds=0.2")
        try:
            made.apply(secret(WORKER, ACCOUNT, program.url), cmlworker(WORKER, program.url, environment="default"))
            made.start(WORKER_PROBE_SECONDS="1", RECONCILE_INTERVAL="1")
            made.wait_node()
            yield made
        finally:
            codes = [replica.end() for replica in made.replicas]
            program.close()
        assert set(codes) == {os.EX_OK}, made.logs()
