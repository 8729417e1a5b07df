"""The Helm that packages and tests the chart: `python -m tools.helm.program` builds it once, and prints its path.

go.mod and go.sum beside this file pin it. To upgrade: `go get -tool helm.sh/helm/v4/cmd/helm@VERSION && go mod tidy`.
"""

import os
import re
import sys
from pathlib import Path
from typing import Final

from vkpsandbox.controlplane.build import GoModule, ensure_built
from vkpsandbox.controlplane.kept import Progress
from vkpsandbox.errors import SandboxError

VARIABLE: Final = "VKPROVIDER_HELM"
"""Environment variable that names another Helm."""

_HERE: Final = Path(__file__).parent


def module() -> GoModule:
    """Return the Go module that Helm is built from."""
    go_mod, go_sum = (_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()
    found = re.search(rb"^\s*helm\.sh/helm/v4 (v\S+)", go_mod, re.MULTILINE)
    version = found[1].decode() if found else "of an unknown version"
    flags = f"-s -w -X helm.sh/helm/v4/internal/version.version={version}"
    title = f"Helm {version}"
    programs = {"helm": "helm.sh/helm/v4/cmd/helm"}
    return GoModule("helm", title, "3 minutes on 2 cores that do nothing else", go_mod, go_sum, programs, flags)


def find_helm() -> Path | None:
    """Return a Helm without building it: the one that is named, or in the cache; None if there is none."""
    named = os.environ.get(VARIABLE)
    helm = Path(named) if named else module().target / "helm"
    return helm if os.access(helm, os.X_OK) else None


def ensure_helm(on_progress: Progress) -> Path:
    """Return a Helm: the one that is named, else built from the module.

    Raises:
        SandboxError: The named one cannot be executed, or the build failed.
    """
    found = find_helm()
    if not found and VARIABLE in os.environ:
        raise SandboxError(f"{VARIABLE}={os.environ[VARIABLE]} is not a program: name a Helm, or unset it")
    return found or ensure_built(module(), on_progress) / "helm"


def main() -> int:
    """Return the exit code."""
    try:
        print(ensure_helm(lambda line: print(line, file=sys.stderr)))
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
