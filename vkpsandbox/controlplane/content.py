"""What a sandbox applies to its cluster: manifests, a Secret and a CMLWorker per worker; and tokens of programs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout
from vkpsandbox.processes.record import Worker

NAMESPACE: Final = "vkprovider-system"

LOGINS: Final = f"{NAMESPACE}-logins"
"""The namespace of the logins of workers."""

SERVICE_ACCOUNT: Final = "vkprovider"

LABEL: Final = "vkprovider.io/sandbox"
"""Label of the objects that a sandbox creates besides the manifests; its value is the sandbox's name."""

CAPACITY: Final[Mapping[str, str | int]] = {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400}

PORT_RANGE: Final = {"start": 2000, "end": 7999}
"""The range that CML opens for `patty` tags unless told otherwise."""


def apply_manifests(kubectl: Kubectl, manifests: Path) -> None:
    """Apply the custom resource definitions and the base (namespace, RBAC …), and wait for the definitions.

    Server-side, because a definition may be larger than the annotation of a client-side apply.
    """
    server_side = ("--server-side", "--force-conflicts", "--field-manager=vkprovider-sandbox")
    kubectl("apply", *server_side, "-k", str(manifests / "crds"))
    names = kubectl("kustomize", str(manifests / "crds")).stdout
    definitions = [f"crd/{document['metadata']['name']}" for document in yaml.safe_load_all(names) if document]
    kubectl("wait", "--for=condition=Established", "--timeout=30s", *definitions)
    kubectl("apply", *server_side, "-k", str(manifests / "base"))


def apply_policies(kubectl: Kubectl, manifests: Path) -> None:
    """Apply the admission policies that an installation has."""
    kubectl("apply", "--server-side", "--force-conflicts", "-k", str(manifests / "policies"))


def apply_components(kubectl: Callable[..., object], manifests: Path, files: Iterable[str]) -> None:
    """Apply files of components.

    Args:
        kubectl: Runs kubectl with these arguments.
        manifests: The folder of all manifests.
        files: Paths below its `components`, such as `mux/rbac.yaml`.
    """
    for path in files:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(manifests / "components" / path))


def worker_objects(worker: Worker, number: int, sandbox: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the Secret and the CMLWorker of a worker; one behind a tunnel has no Secret, its agent logs in.

    Args:
        worker: The worker.
        number: Counted from 1; odd ones are in `zone-a`, even ones in `zone-b`.
        sandbox: The sandbox's name.
        spec: Fields of the CMLWorker's spec that replace the defaults.
    """
    direct = {"url": worker.url, "credentialsSecretName": worker.process, "tls": {"insecureSkipVerify": True}}
    is_direct = spec.get("tunnel", "direct") == "direct"
    fields = {
        **(direct if is_direct else {}),
        "address": worker.address,
        "capacity": dict(CAPACITY),
        "portRange": dict(PORT_RANGE),
        "nodeLabels": {"topology.kubernetes.io/zone": "zone-a" if number % 2 else "zone-b"},
        **spec,
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": worker.process,
            "namespace": LOGINS,
            "labels": {"vkprovider.io/used-for": "worker", LABEL: sandbox},
            "annotations": {"vkprovider.io/host": str(fields.get("url"))},
        },
        "stringData": {"username": worker.username, "password": worker.password},
    }
    custom = {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "CMLWorker",
        "metadata": {"name": worker.name, "labels": {LABEL: sandbox}},
        "spec": fields,
    }
    return [secret, custom] if is_direct else [custom]


def apply_workers(kubectl: Kubectl, workers: Sequence[Worker], sandbox: str, spec: Mapping[str, Any]) -> None:
    """Create the Secrets and CMLWorkers of all workers.

    Raises:
        SandboxError: If a CMLWorker of that name exists and is not this sandbox's.
    """
    if not workers:
        return
    names = {worker.name for worker in workers}
    listed = json.loads(kubectl("get", "cmlworkers.vkprovider.io", "-o", "json").stdout)["items"]
    for item in listed:
        if item["metadata"]["name"] in names and item["metadata"].get("labels", {}).get(LABEL) != sandbox:
            raise SandboxError(
                f"CMLWorker {item['metadata']['name']} exists and does not belong to sandbox {sandbox}: delete it, "
                "or use another cluster"
            )
    items = [item for n, worker in enumerate(workers, 1) for item in worker_objects(worker, n, sandbox, spec)]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def delete_workers(kubectl: Kubectl, workers: Sequence[Worker], sandbox: str) -> None:
    """Delete what `apply_workers` created; wait until the provider has removed finalizers and Nodes."""
    selector = f"--selector={LABEL}={sandbox}"
    kubectl("delete", "cmlworkers.vkprovider.io", selector, "--timeout=60s")
    kubectl("wait", "--for=delete", *(f"node/{worker.node}" for worker in workers), "--timeout=60s")
    kubectl("delete", "secrets", f"--namespace={LOGINS}", selector, "--timeout=60s")


def write_provider_kubeconfig(kubectl: Kubectl, layout: Layout, name: str) -> None:
    """Write a kubeconfig with a token of the provider's ServiceAccount, for the cluster of the admin's kubeconfig."""
    write_account_kubeconfig(kubectl, layout, layout.provider_kubeconfig, f"{name}-provider", SERVICE_ACCOUNT)


def write_account_kubeconfig(
    kubectl: Kubectl, layout: Layout, path: Path, name: str, account: str, namespace: str = NAMESPACE
) -> None:
    """Write a kubeconfig with a token of a ServiceAccount, for the cluster of the admin's kubeconfig."""
    token = kubectl("create", "token", account, f"--namespace={namespace}", "--duration=720h").stdout.strip()
    write_kubeconfig(path, name=name, cluster=read_cluster(layout.kubeconfig), user={"token": token})
