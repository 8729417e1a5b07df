"""The programs of an ordinary Node that no package has in the right version, built once from Go modules, and kept.

Their modules below `go/` are apart from that of the control plane, which is not built again when one of them changes.
To upgrade: of `kubernetes`, replace the version of every `k8s.io` module, then, in the folder,
`go get -tool PACKAGE@VERSION`; of the others, which have a main.go with what a Node needs of them,
`go get MODULE@VERSION && go mod tidy`.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from vkpsandbox.controlplane.build import GoModule, ensure_built, linker_flags
from vkpsandbox.controlplane.kept import Progress
from vkpsandbox.controlplane.versions import kubernetes_version

KUBELET: Final = "kubelet"
KUBE_PROXY: Final = "kube-proxy"
KUBE_ROUTER: Final = "kube-router"
COREDNS: Final = "coredns"
KUBERNETES: Final = "kubernetes"
"""The module of the programs that are Kubernetes' own."""
MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    KUBERNETES: {
        KUBELET: "k8s.io/kubernetes/cmd/kubelet",
        KUBE_PROXY: "k8s.io/kubernetes/cmd/kube-proxy",
    },
    KUBE_ROUTER: {KUBE_ROUTER: "vkprovider.io/kube-router"},
    COREDNS: {COREDNS: "vkprovider.io/coredns"},
}
"""Folder below `go/`: each program of its module, and the Go package that it is built from."""
_ROOTS: Final[Mapping[str, str]] = {
    KUBE_ROUTER: "github.com/cloudnativelabs/kube-router/v2",
    COREDNS: "github.com/coredns/coredns",
}
"""The module of others that says the version of a program."""
_EFFORT: Final = "some 5 minutes on 2 cores"
_BUILT: Final = "1970-01-01T00:00:00Z"
"""The build date that they tell, which nobody asks for."""


def module_of(name: str) -> GoModule:
    """Return a Go module of `MODULES`."""
    folder = files("vkpsandbox.node") / "go" / name
    go_mod, go_sum = (folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes()
    if name == KUBERNETES:
        version = kubernetes_version(go_mod)
        flags, title = linker_flags(version, _BUILT), f"kubelet and kube-proxy {version}"
    else:
        found = re.search(rf"^\s*(?:require )?{re.escape(_ROOTS[name])} (v\S+)", go_mod.decode(), re.MULTILINE)
        flags, title = "-s -w", f"{name} {found[1] if found else 'of an unknown version'}"
    main = folder / "main.go"
    source = main.read_bytes() if main.is_file() else b""
    return GoModule(f"node-{name}", title, _EFFORT, go_mod, go_sum, MODULES[name], flags, source)


def ensure_node_programs(on_progress: Progress) -> dict[str, Path]:
    """Return all programs by name, building what is not cached.

    Raises:
        SandboxError: There is no Go, or a build fails.
    """
    built: dict[str, Path] = {}
    for name in MODULES:
        module = module_of(name)
        folder = ensure_built(module, on_progress)
        built |= {program: folder / program for program in module.programs}
    return built


def ensure_kube_proxy(on_progress: Progress) -> Path:
    """Return kube-proxy, building it with the kubelet if it is not cached.

    Raises:
        SandboxError: There is no Go, or the build fails.
    """
    return ensure_built(module_of(KUBERNETES), on_progress) / KUBE_PROXY
