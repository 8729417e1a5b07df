"""`manifests/install.yaml` and the Helm chart: `python -m tools.render` writes them, `--check` compares them.

The first is what `kubectl kustomize manifests/overlays/default` prints, for readers without a checkout; the second is
made of that by `chart`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tools import stale
from tools.helm import chart
from vkpsandbox.controlplane.build import find_kubectl
from vkpsandbox.errors import SandboxError

ROOT: Final = Path(__file__).parents[1]
MANIFESTS: Final = ROOT / "manifests"
INSTALL: Final = MANIFESTS / "install.yaml"


def render(kubectl: Path) -> str:
    """Render the overlay `default`.

    Raises:
        subprocess.CalledProcessError: It is wrong; kubectl has said why.
    """
    command = [str(kubectl), "kustomize", str(MANIFESTS / "overlays" / "default")]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout  # noqa: S603 (ours)


def files() -> dict[Path, str]:
    """Render the files: path below the checkout to text.

    Without a kubectl the kustomization cannot be rendered, which does not make an existing file wrong: the cluster
    tests have one.
    """
    try:
        install = render(find_kubectl())
    except SandboxError as error:
        print(f"manifests/install.yaml is not looked at: {error}")
        install = INSTALL.read_text(encoding="utf-8")
    return {INSTALL.relative_to(ROOT): install, **chart.files(install)}


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` compare them; return the exit code."""
    return stale.run("tools.render", arguments, ROOT, files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
