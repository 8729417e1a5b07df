"""KWOK, the rival: built once from its Go module, configured as it is shipped, run as a process of a sandbox."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.build import find_go
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.paths import cache_home
from vkpsandbox.processes.process import ProcessSpec, Restart
from vkpsandbox.start import add_process

MODULE: Final = "sigs.k8s.io/kwok"
VERSION: Final = "v0.8.0"
NAME: Final = "kwok"
_NAMESPACE: Final = "kwok-system"
"""Not kube-system as shipped: the API server serves accounts of that namespace before others."""
_ACCOUNT: Final = "kwok-controller"
_SHIPPED: Final = (
    "kustomize/rbac/service_account.yaml",
    "kustomize/rbac/role.yaml",
    "kustomize/rbac/role_binding.yaml",
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
)
"""What its own manifests apply, but for its FlowSchema, which makes it exempt from priority and fairness."""

_OPTIONS: Final = {
    "cidr": "10.0.0.0/24",
    "nodeLeaseDurationSeconds": 40,
    "nodeLeaseParallelism": 4,
    "podPlayStageParallelism": 4,
    "nodePlayStageParallelism": 4,
    "manageAllNodes": False,
    "manageNodesWithAnnotationSelector": "kwok.x-k8s.io/node=fake",
    "enablePodsOnNodeSyncListPager": False,
    "enablePodsOnNodeSyncStreamWatch": True,
}
"""As kustomize/kwok/kwok.yaml has them; stages come from files instead of CRDs, and nothing listens."""

USER: Final = f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}"
_TAINT: Final = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
_LABELS: Final = {"type": NAME}

ON_ITS_NODES: Final[dict[str, Any]] = {
    "nodeSelector": _LABELS,
    "tolerations": [{"key": _TAINT["key"], "operator": "Exists", "effect": _TAINT["effect"]}],
}
"""Fields of a Pod's spec that place it on KWOK's nodes."""


def ensure() -> Path:
    """Return a directory with the program `kwok` and what it ships, and make it if it is not cached.

    Raises:
        SandboxError: If the build fails.
    """
    target = cache_home() / NAME / VERSION
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
            _build(Path(scratch) / "made")
            (Path(scratch) / "made").rename(target)
    return target


def _build(into: Path) -> None:
    go, module = find_go(), f"{MODULE}@{VERSION}"
    print(f"building KWOK {VERSION} with {go}: once, about 5 minutes on 2 cores", flush=True)
    into.mkdir()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(into), "GOFLAGS": "", "GOWORK": "off"}
    downloaded = _go([str(go), "mod", "download", "-json", module], environment)
    folder = Path(json.loads(downloaded)["Dir"])
    _go([str(go), "install", "-trimpath", "-ldflags=-s -w", f"{MODULE}/cmd/kwok@{VERSION}"], environment)
    for name in _SHIPPED:
        shutil.copyfile(folder / name, into / Path(name).name)


def _go(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")  # noqa: S603 (fixed arguments)
    if done.returncode:
        raise SandboxError(f"`{' '.join(command)}` failed with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def add(sandbox: Sandbox, nodes: int) -> None:
    """Give KWOK an account, rights and so many nodes in a sandbox, and start it there as the process `kwok`."""
    shipped = ensure()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    rights = [_read(shipped / Path(name).name) for name in _SHIPPED if "/rbac/" in name]
    for item in rights:
        for place in [item["metadata"], *item.get("subjects", ())]:
            if "namespace" in place:
                place["namespace"] = _NAMESPACE
    _apply(sandbox, [namespace, *rights, *_flow_schemas(), *map(_node, node_names(nodes))])
    token = sandbox.kubectl("create", "token", _ACCOUNT, f"--namespace={_NAMESPACE}", "--duration=720h").stdout.strip()
    kubeconfig = sandbox.layout.component_kubeconfig(NAME)
    write_kubeconfig(kubeconfig, name=NAME, cluster=read_cluster(sandbox.kubeconfig), user={"token": token})
    spec = ProcessSpec(
        name=NAME,
        argv=[
            str(shipped / "kwok"),
            f"--kubeconfig={kubeconfig}",
            f"--config={_configuration(sandbox)}",
            *(f"--config={shipped / Path(name).name}" for name in _SHIPPED if "/stage/" in name),
        ],
        restart=Restart.UNLESS_KILLED,
        grace_s=1.0,
    )
    add_process(sandbox.layout, spec)


def node_names(nodes: int) -> list[str]:
    """Return the names of its nodes."""
    return [f"{NAME}-{number}" for number in range(1, nodes + 1)]


def _configuration(sandbox: Sandbox) -> Path:
    document = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": _OPTIONS}
    path = sandbox.layout.workers / "kwok.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def _flow_schemas() -> list[dict[str, Any]]:
    """Return the provider's own FlowSchemas for KWOK's account, so that the API server treats both alike."""
    schemas = list(yaml.safe_load_all((find_manifests() / "base" / "flowschema.yaml").read_text()))
    for schema in schemas:
        schema["metadata"]["name"] = f"{NAME}-{schema['metadata']['name']}"
        for rule in schema["spec"]["rules"]:
            account = {"name": _ACCOUNT, "namespace": _NAMESPACE}
            rule["subjects"] = [{"kind": "ServiceAccount", "serviceAccount": account}]
    return schemas


def _node(name: str) -> dict[str, Any]:
    annotations = {"kwok.x-k8s.io/node": "fake"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**_LABELS, "kubernetes.io/hostname": name}, "annotations": annotations},
        "spec": {"taints": [_TAINT]},
    }


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def _apply(sandbox: Sandbox, items: list[dict[str, Any]]) -> None:
    everything = {"apiVersion": "v1", "kind": "List", "items": items}
    sandbox.kubectl("apply", "-f", "-", input=msgspec.json.encode(everything).decode())
