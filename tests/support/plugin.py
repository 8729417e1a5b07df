"""`kubectl lablet` as a user calls it: through the real kubectl, with the plugin found on PATH."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.cluster import Cluster
from vkprovider.platform.shipped import find_manifests


def lablet(
    cluster: Cluster, *arguments: str, kubeconfig: Path | None = None, directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `kubectl lablet`; nobody sits at its terminal."""
    environ = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(find_manifests().parent),
        "KUBECONFIG": str(kubeconfig or cluster.sandbox.kubeconfig),
        **({} if kubeconfig else {"VKPROVIDER_URL": cluster.provider_url}),
    }
    return subprocess.run(  # noqa: S603 (ours)
        [str(cluster.sandbox.programs / "kubectl"), "lablet", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environ,
        cwd=directory,
        timeout=120,
        check=False,
    )


def succeeded(cluster: Cluster, *arguments: str, directory: Path | None = None) -> str:
    """Run `kubectl lablet`, which must succeed; give what it printed."""
    result = lablet(cluster, *arguments, directory=directory)
    assert result.returncode == 0, f"kubectl lablet {' '.join(arguments)}: {result.stderr}"
    return result.stdout
