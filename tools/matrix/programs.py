"""`python -m tools.matrix.programs 1.30` builds that control plane once, and prints the directory of its programs.

Each folder beside this file pins one version of Kubernetes: the oldest that is supported, the one before the sandbox's,
and one between. To upgrade the patch, in its folder: replace the version of every `k8s.io` module in go.mod, then
`go get -tool k8s.io/kubernetes/cmd/kube-apiserver@VERSION` and `go get -tool go.etcd.io/etcd/server/v3@VERSION`, the
version of `go.etcd.io/etcd/client/v3` in go.mod.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from vkpsandbox.controlplane.build import GoModule, control_plane_of, ensure_built
from vkpsandbox.errors import SandboxError

_HERE: Final = Path(__file__).parent


def versions() -> list[str]:
    """Return the versions that there are, such as `1.30`, oldest first."""
    return sorted((path.parent.name for path in _HERE.glob("*/go.mod")), key=lambda name: int(name.partition(".")[2]))


def module(version: str) -> GoModule:
    """Return the Go module that a version is built from.

    Raises:
        SandboxError: Its go.mod requires no Kubernetes.
    """
    folder = _HERE / version
    return control_plane_of((folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes())


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix.programs", description=__doc__)
    parser.add_argument("version", choices=versions())
    version = parser.parse_args().version
    try:
        print(ensure_built(module(version), lambda line: print(line, file=sys.stderr)))
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
