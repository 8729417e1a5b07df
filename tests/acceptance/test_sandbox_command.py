"""`vkprovider sandbox up` as a user types it: without workers, with the policies of an installation, listed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

POD = """
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"vkprovider.io/state": "READY"}},
 "spec": {"containers": [{"name": "c", "image": "c"}]}}
"""


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vkprovider", "sandbox", *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (ourselves)


def test_a_sandbox_without_workers(tmp_path: Path) -> None:
    try:
        up = run(tmp_path, "up", "--name=empty", "--workers=0")
        assert up.returncode == 0, up.stderr
        exports = up.stdout.splitlines()[-1]
        assert str(Path(sys.executable).parent) in exports, "kubectl finds the plugin"
        listed = run(tmp_path, "list").stdout.splitlines()
        assert [line.split()[0] for line in listed] == ["NAME", "empty"]
        script = f"{exports}; kubectl lablet list; kubectl create -f -"
        shell = ["/bin/sh", "-c", script]
        made = subprocess.run(shell, input=POD, capture_output=True, text=True, check=False)  # noqa: S603 (as printed)
        assert "No lablets found" in made.stderr
        assert "Only the provider writes vkprovider.io/state" in made.stderr
    finally:
        down = run(tmp_path, "down", "--name=empty")
    assert down.returncode == 0, down.stderr
    assert run(tmp_path, "list").stdout.split() == ["NAME", "RUNNING", "KUBECONFIG"]


def test_a_name_that_cannot_be_a_sandbox_s(tmp_path: Path) -> None:
    refused = run(tmp_path, "up", "--name=bad name")
    assert refused.returncode == 1
    assert "'bad name' cannot be a sandbox's name" in refused.stderr
    assert not list(tmp_path.rglob("*"))
