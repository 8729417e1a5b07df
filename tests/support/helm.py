"""The real Helm, which `make helm` builds, and what it renders of the chart."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tools.helm.program import find_helm
from tools.render import ROOT

CHART = ROOT / "manifests" / "helm" / "vkprovider"
HELM = find_helm()
MISSING = "needs Helm: run `make helm`"
SYSTEM = "vkprovider-system"


class Helm:
    """Helm with a home of its own."""

    def __init__(self, home: Path, kubeconfig: Path | None = None) -> None:
        self._environ = {"HOME": str(home), "KUBECONFIG": str(kubeconfig or home / "none"), "PATH": ""}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        assert HELM, MISSING
        command = [str(HELM), *arguments]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 (Helm)

    def __call__(self, *arguments: str) -> str:
        """Run a command that must succeed, and give what it printed."""
        result = self.run(*arguments)
        assert result.returncode == 0, f"helm {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def refused(self, *arguments: str) -> str:
        """Run a command that must fail, and give what it said; empty if it did not fail."""
        result = self.run(*arguments)
        return result.stderr if result.returncode else ""

    def template(self, *arguments: str, namespace: str = SYSTEM) -> dict[str, dict[str, Any]]:
        """Render the chart: `Kind namespace/name` to object."""
        return named(self("template", "vkprovider", str(CHART), f"--namespace={namespace}", *arguments))


def named(text: str) -> dict[str, dict[str, Any]]:
    """Read objects: `Kind namespace/name` to object."""
    found: dict[str, dict[str, Any]] = {}
    for each in yaml.safe_load_all(text):
        if each:
            meta = each["metadata"]
            name = f"{each['kind']} {meta.get('namespace', '')}/{meta['name']}"
            assert name not in found, name
            found[name] = each
    return found
