"""`manifests/install.yaml`: `python -m tools.render` writes it, `--check` compares it.

It is what `kubectl kustomize manifests/overlays/default` prints, for whoever has no checkout.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from vkpsandbox.controlplane.build import find_kubectl
from vkpsandbox.errors import SandboxError

MANIFESTS: Final = Path(__file__).parents[1] / "manifests"
INSTALL: Final = MANIFESTS / "install.yaml"


def render(kubectl: Path) -> str:
    """Render the overlay `default`.

    Raises:
        subprocess.CalledProcessError: It is wrong; kubectl has said why.
    """
    command = [str(kubectl), "kustomize", str(MANIFESTS / "overlays" / "default")]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout  # noqa: S603 (ours)


def main(arguments: list[str]) -> int:
    """Write the file, or with `--check` compare it; return the exit code.

    Without a kubectl nothing can be compared, which is no fault of the file: the cluster tests have one.
    """
    check = arguments == ["--check"]
    if arguments and not check:
        sys.stderr.write("usage: python -m tools.render [--check]\n")
        return 2
    try:
        text = render(find_kubectl())
    except SandboxError as error:
        print(f"manifests/install.yaml is not looked at: {error}")
        return 0 if check else 1
    if INSTALL.read_text(encoding="utf-8") == text:
        print("manifests/install.yaml is up to date")
        return 0
    if check:
        print("manifests/install.yaml is not as rendered: run `make generate`")
        return 1
    INSTALL.write_text(text, encoding="utf-8")
    print("wrote manifests/install.yaml")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
