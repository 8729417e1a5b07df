"""Settings of the control plane that benchmarks change from stock; they print them beside their figures."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from bench.figures import BUILD
from vkpsandbox.paths import layout_of

_SCHEDULER_QPS: Final = 5000
_SCHEDULER_BURST: Final = 10000

COMPONENT_ARGS: Final[Mapping[str, Sequence[str]]] = {
    "kube-apiserver": ("--max-requests-inflight=80", "--max-mutating-requests-inflight=40"),
    "kube-controller-manager": ("--kube-api-qps=300", "--kube-api-burst=100"),
    "kube-scheduler": (f"--kube-api-qps={_SCHEDULER_QPS}", f"--kube-api-burst={_SCHEDULER_BURST}"),
}
"""Limits that fit a few cores: at the stock 20 requests a second the controller-manager needs 50 s for 1000 pods, and
hundreds of requests served at once keep the API server's own watches waiting for a core."""

COMPONENT_ENV: Final[Mapping[str, str]] = {"GOGC": "300"}
"""Collect garbage a third as often."""

ETCD: Final = "  etcd: --unsafe-no-fsync, as in every sandbox"

_SCHEDULER_API: Final = "kubescheduler.config.k8s.io/v1"


def without_spreading(sandbox: str) -> Mapping[str, Sequence[str]]:
    """Return COMPONENT_ARGS with a scheduler that does not spread Deployments over the nodes by itself.

    By default it counts, for each Pod of a Deployment, the Deployment's Pods on every node. That grows with the square
    of the Pods, and no kubelet can change it.

    Args:
        sandbox: The name of the sandbox, whose scheduler is to read the configuration that is written here.
    """
    kubeconfig = str(layout_of(sandbox, None).component_kubeconfig("kube-scheduler"))
    arguments = {
        "apiVersion": _SCHEDULER_API,
        "kind": "PodTopologySpreadArgs",
        "defaultingType": "List",
        "defaultConstraints": [],
    }
    plugins = [{"name": "PodTopologySpread", "args": arguments}]
    configuration = {
        "apiVersion": _SCHEDULER_API,
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": _SCHEDULER_QPS, "burst": _SCHEDULER_BURST},
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": plugins}],
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "kube-scheduler-without-spreading.json"
    path.write_text(json.dumps(configuration))
    return {**COMPONENT_ARGS, "kube-scheduler": (f"--config={path}",)}


def changes(args: Mapping[str, Sequence[str]] = COMPONENT_ARGS) -> str:
    """Return the changed settings, one line for each component."""
    env = " ".join(f"{name}={value}" for name, value in COMPONENT_ENV.items())
    lines = [f"  {component}: {' '.join(changed)}" for component, changed in args.items()]
    return "\n".join(["control plane, other than stock:", f"  all: {env}", ETCD, *lines])
