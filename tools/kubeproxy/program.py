"""The kube-proxy of a fault test, of the same release as the sandbox's control plane, built once and kept.

The sandbox needs none, hence a module of its own. To upgrade: replace the version of every `k8s.io` module in go.mod
beside this file, then `go get -tool k8s.io/kubernetes/cmd/kube-proxy@VERSION && go mod tidy`.
"""

from pathlib import Path
from typing import Final

from vkpsandbox.controlplane.build import GoModule, ensure_built, linker_flags
from vkpsandbox.controlplane.kept import Progress
from vkpsandbox.controlplane.versions import kubernetes_version

PACKAGE: Final = "k8s.io/kubernetes/cmd/kube-proxy"
_HERE: Final = Path(__file__).parent
_BUILT: Final = "1970-01-01T00:00:00Z"
"""The build date that it tells, which nobody asks for."""


def module() -> GoModule:
    """Return the Go module that kube-proxy is built from."""
    go_mod, go_sum = (_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()
    version = kubernetes_version(go_mod)
    flags, programs = linker_flags(version, _BUILT), {"kube-proxy": PACKAGE}
    return GoModule("kubeproxy", f"kube-proxy {version}", "4 minutes on 2 cores", go_mod, go_sum, programs, flags)


def ensure_kube_proxy(on_progress: Progress) -> Path:
    """Return kube-proxy, building it if it is not cached.

    Raises:
        SandboxError: There is no Go, or the build fails.
    """
    return ensure_built(module(), on_progress) / "kube-proxy"
