"""Settings of the control plane that benchmarks change from stock; they print them beside their figures."""

from collections.abc import Mapping, Sequence
from typing import Final

COMPONENT_ARGS: Final[Mapping[str, Sequence[str]]] = {
    "kube-apiserver": ("--max-requests-inflight=80", "--max-mutating-requests-inflight=40"),
    "kube-controller-manager": ("--kube-api-qps=300", "--kube-api-burst=100"),
    "kube-scheduler": ("--kube-api-qps=5000", "--kube-api-burst=10000"),
}
"""Limits that fit a few cores: at the stock 20 requests a second the controller-manager needs 50 s for 1000 pods, and
hundreds of requests served at once keep the API server's own watches waiting for a core."""

COMPONENT_ENV: Final[Mapping[str, str]] = {"GOGC": "300"}
"""Collect garbage a third as often."""


ETCD: Final = "  etcd: --unsafe-no-fsync, as in every sandbox"


def changes() -> str:
    """Return the changed settings, one line for each component."""
    env = " ".join(f"{name}={value}" for name, value in COMPONENT_ENV.items())
    lines = [f"  {component}: {' '.join(args)}" for component, args in COMPONENT_ARGS.items()]
    return "\n".join(["control plane, other than stock:", f"  all: {env}", ETCD, *lines])
