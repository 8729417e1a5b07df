"""A sandbox, as cluster tests use it: kubectl as a user would, the API for polling, one simulator per worker."""

import http.client
import json
import ssl
import subprocess
from typing import Any

from tests.support.simulator import Simulator
from tests.support.waiting import until
from vkpsandbox import Sandbox

PODS = "/api/v1/namespaces/{}/pods"
NAMESPACES = "/api/v1/namespaces"
KINDS = (
    *(f"/apis/apps/v1/namespaces/{{}}/{kind}" for kind in ("deployments", "daemonsets", "statefulsets", "replicasets")),
    "/apis/batch/v1/namespaces/{}/jobs",
    PODS,
)
"""Collections whose objects make Pods, and Pods."""


class Refused(Exception):  # noqa: N818 (reads well in `pytest.raises`)
    """The API server refused; `status` and `reason` are its own."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"{status} {answer.get('reason')}: {answer.get('message')}")
        self.status = status
        self.reason = str(answer.get("reason", ""))


class Cluster:
    """What tests do to the sandbox; `heal` undoes it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.workers = [Simulator(worker) for worker in sandbox.workers if worker.port]
        self.provider_url = sandbox.process("provider-1").url
        pki = sandbox.layout.pki
        self._context = ssl.create_default_context(cafile=str(pki / "server-ca.crt"))
        self._context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._server = sandbox.process("kube-apiserver").url.removeprefix("https://")
        self._created: list[tuple[str, ...]] = []

    # -------------------------------------------------------------------------------------- the API server
    @property
    def kubernetes(self) -> str:
        """The API server's version, such as `v1.36.3`."""
        return str(self.request("GET", "/version")["gitVersion"])

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 (as in subprocess.run)
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin; raises SandboxError with what kubectl said."""
        return self.sandbox.kubectl(*arguments, input=input, check=check)

    def apply(self, *objects: dict[str, Any], namespace: str = "default") -> None:
        """`kubectl apply` objects; those without a namespace go to this one."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        where = [] if namespace == "default" else [f"--namespace={namespace}"]  # it would refuse those of another one
        self.kubectl("apply", "-f", "-", *where, input=json.dumps(listed))

    def define(self, *definitions: dict[str, Any]) -> None:
        """Apply LabletDefinitions, wait for their RuntimeClasses, and delete them at the end of the test."""
        for item in definitions:  # an earlier test's may still be held by its last lablet
            path = f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{item['metadata']['name']}"
            until(lambda path=path: not is_leaving(self.get(path)), 45, f"{path} is being deleted")  # type: ignore[misc]
        self.apply(*definitions)
        for item in definitions:
            name = item["metadata"]["name"]
            self.delete_later("labletdefinition", name)
            until(lambda name=name: self.is_defined(name), 30, f"LabletDefinition {name} is ready")  # type: ignore[misc]

    def is_defined(self, name: str) -> bool:
        """Tell whether a LabletDefinition has a RuntimeClass, and whether that is of what was applied last."""
        found = self.get(f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{name}") or {}
        is_seen = found.get("status", {}).get("observedGeneration") == found.get("metadata", {}).get("generation")
        return is_seen and self.get(f"/apis/node.k8s.io/v1/runtimeclasses/{name}") is not None

    def delete_later(self, kind: str, name: str, *place: str) -> None:
        """`kubectl delete` this at the end of the test, when the namespace of the test is empty."""
        self._created.append((kind, name, *place))

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", *, user: str = ""
    ) -> Any:
        """Send one request, as admin or in the name of a user, and give the decoded answer.

        Raises:
            Refused: By the API server.
        """
        connection = http.client.HTTPSConnection(self._server, timeout=15, context=self._context)
        try:
            payload = None if body is None else json.dumps(body)
            headers = {"Content-Type": content_type, "Accept": "application/json"}
            connection.request(method, path, payload, headers | ({"Impersonate-User": user} if user else {}))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        decoded = json.loads(text) if text.startswith(b"{") else text.decode()
        if answer.status >= 400:
            raise Refused(answer.status, decoded if isinstance(decoded, dict) else {"message": decoded})
        return decoded

    def get(self, path: str) -> dict[str, Any] | None:
        """Read an object by its path, such as `/api/v1/nodes/vnode.worker-1`; None if there is none."""
        try:
            found: dict[str, Any] = self.request("GET", path)
        except Refused as error:
            if error.status != 404:
                raise
            return None
        return found

    def items(self, path: str) -> list[dict[str, Any]]:
        """List a collection, such as `/api/v1/nodes?labelSelector=…`."""
        items: list[dict[str, Any]] = self.request("GET", path)["items"]
        return items

    def patch(self, path: str, body: object) -> dict[str, Any]:
        """Merge-patch an object."""
        patched: dict[str, Any] = self.request("PATCH", path, body, "application/merge-patch+json")
        return patched

    def create_namespace(self, stem: str) -> str:
        """Create a namespace whose name begins with a stem; give its name when Pods can be made in it."""
        name = str(self.request("POST", NAMESPACES, {"metadata": {"generateName": f"{stem}-"}})["metadata"]["name"])
        account = f"{NAMESPACES}/{name}/serviceaccounts/default"
        until(lambda: self.get(account), 45, f"{name} has no ServiceAccount")
        return name

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and wait until its Pods are gone; its own controller waits 5 s before it deletes any."""
        self.empty(name)
        self.request("DELETE", f"{NAMESPACES}/{name}")

    def empty(self, namespace: str) -> None:
        """Delete what makes Pods, and Pods, and wait until none are left; no garbage collector is needed."""
        for path in KINDS:
            self.request("DELETE", path.format(namespace), {"propagationPolicy": "Background"})
        self.wait_gone(namespace)

    # -------------------------------------------------------------------------------------- objects of interest
    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """List the Pods of a namespace, those that are being deleted too."""
        query = f"?labelSelector={selector}" if selector else ""
        return self.items(PODS.format(namespace) + query)

    def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Read a Pod."""
        return self.get(f"{PODS.format(namespace)}/{name}")

    def node(self, worker: Simulator) -> dict[str, Any] | None:
        """Read the Node of a worker."""
        return self.get(f"/api/v1/nodes/{worker.node}")

    def cmlworker(self, worker: Simulator) -> dict[str, Any]:
        """Read the CMLWorker of a worker."""
        found = self.get(f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}")
        assert found
        return found

    def events(self, namespace: str, name: str, kind: str = "") -> list[dict[str, Any]]:
        """List the Events about an object; those of cluster-scoped objects are in `default`.

        Name the kind where an object of another kind may have the same name.
        """
        of = f"involvedObject.name={name}" + (f",involvedObject.kind={kind}" if kind else "")
        return self.items(f"/api/v1/namespaces/{namespace}/events?fieldSelector={of}")

    def wait_ready(self, namespace: str, count: int, selector: str = "", within_s: float = 90) -> list[dict[str, Any]]:
        """Wait until a namespace has exactly so many Pods and all are Ready; give them."""

        def ready() -> list[dict[str, Any]]:
            pods = self.pods(namespace, selector)
            states = {pod["metadata"]["name"]: summary(pod) for pod in pods}
            assert len(pods) == count, states
            assert all(is_ready(pod) for pod in pods), states
            return pods

        return until(ready, within_s) if count else []

    def wait_gone(self, namespace: str, selector: str = "", within_s: float = 90) -> None:
        """Wait until a namespace has no Pods."""
        until(lambda: not self.pods(namespace, selector), within_s, f"pods left in {namespace}")

    def simulator_of(self, pod: dict[str, Any]) -> Simulator:
        """Give the simulated worker that a Pod is bound to."""
        return next(worker for worker in self.workers if worker.node == pod["spec"]["nodeName"])

    def lab_of(self, pod: dict[str, Any]) -> dict[str, Any] | None:
        """Find a Pod's lab on its worker."""
        return self.simulator_of(pod).lab_of(pod["metadata"]["uid"])

    def health(self) -> dict[str, Any]:
        """Read the provider's /health."""
        host = self.provider_url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=5)
        try:
            connection.request("GET", "/health")
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer

    # -------------------------------------------------------------------------------------- the end of a test
    def heal(self) -> None:
        """End faults, start what is stopped, delete what the test created, wait for all nodes to be Ready."""
        for status in self.sandbox.processes():
            if status.state == "stopped":
                self.sandbox.start(status.name)
        for worker in self.workers:
            until(lambda worker=worker: listening(worker), 30, f"{worker.name} does not listen")  # type: ignore[misc]
            worker.clear_faults()
        created: dict[tuple[str, ...], list[str]] = {}
        for kind, name, *place in reversed(self._created):
            created.setdefault(tuple(place), []).append(f"{kind}/{name}")
        self._created.clear()
        for where, objects in created.items():
            self.kubectl("delete", *objects, *where, "--ignore-not-found", "--wait=false")
        for worker in self.workers:
            until(lambda worker=worker: is_ready(self.node(worker)), 90, f"{worker.node} is not Ready")  # type: ignore[misc]

    def describe(self) -> str:
        """Tell what a failed test left: objects, Events, the end of the provider's log."""
        parts = []
        for arguments in (
            ("get", "nodes,cmlw,ldef,runtimeclasses", "-o", "wide"),
            ("get", "pods", "-A", "-o", "wide"),
            ("get", "events", "-A", "--sort-by=.lastTimestamp"),
        ):
            result = self.kubectl(*arguments, check=False)
            parts.append(
                f"$ kubectl {' '.join(arguments)}\n" + "\n".join(result.stdout.splitlines()[-60:]) + result.stderr
            )
        log = self.sandbox.layout.log("provider-1").read_text(errors="replace").splitlines()[-40:]
        return "\n\n".join([*parts, "provider-1's log ends:", *log])


def listening(worker: Simulator) -> bool:
    """Tell whether a simulator answers."""
    try:
        worker.admin("GET", "/faults")
    except OSError:
        return False
    return True


def condition(item: dict[str, Any] | None, kind: str) -> dict[str, Any]:
    """Give a condition of a Pod, Node or custom resource; empty if there is none."""
    conditions = (item or {}).get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == kind), {})


def is_leaving(item: dict[str, Any] | None) -> bool:
    """Tell whether an object is being deleted."""
    return item is not None and "deletionTimestamp" in item["metadata"]


def is_ready(item: dict[str, Any] | None) -> bool:
    """Tell whether the condition Ready is True."""
    return condition(item, "Ready").get("status") == "True"


def container(pod: dict[str, Any] | None, name: str = "lab") -> dict[str, Any]:
    """Give the status of a container: `state`, `ready`, `restartCount`; empty if there is none."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
    return next((entry for entry in statuses if entry["name"] == name), {})


def waiting_reason(pod: dict[str, Any] | None, name: str = "lab") -> str:
    """Give the reason why a container waits; empty if it does not."""
    return str(container(pod, name).get("state", {}).get("waiting", {}).get("reason", ""))


def summary(pod: dict[str, Any]) -> str:
    """Tell in a few words how a Pod fares."""
    status = pod.get("status", {})
    states = [
        f"{entry['name']}={next(iter(entry.get('state', {})), '?')}" for entry in status.get("containerStatuses", [])
    ]
    words = [status.get("phase", "?"), *states, waiting_reason(pod), "Ready" if is_ready(pod) else "not Ready"]
    return " ".join(filter(None, words))
