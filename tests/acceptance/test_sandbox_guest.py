"""The commands of `vkprovider sandbox`, on a cluster that is somebody else's: it is used, and left as it was."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.listening import listening
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.processes.strays import marked

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

OURS = "--selector=vkprovider.io/sandbox=guest"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A cluster without any of ours."""
    directory = tmp_path_factory.mktemp("host")
    with Sandbox.up("host", directory=directory, workers=0, provider=False, tied=True) as made:
        yield made


def sandbox(*arguments: str, directory: Path, code: int = 0) -> str:
    """Run a command of `vkprovider sandbox`; give what it printed."""
    where = ("--name=guest", f"--dir={directory}")
    done = subprocess.run(  # noqa: S603 (ourselves)
        [sys.executable, "-m", "vkprovider", "sandbox", arguments[0], *where, *arguments[1:]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def guest(host: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a sandbox with one worker and the provider on the host's cluster."""
    directory = tmp_path_factory.mktemp("guest")
    said = sandbox("up", f"--kubeconfig={host.kubeconfig}", "--workers=1", directory=directory)
    assert f"export KUBECONFIG={directory / 'kubeconfig'}" in said
    yield directory
    if directory.exists() and any(directory.iterdir()):
        sandbox("down", directory=directory)


def processes(guest: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads(sandbox("ps", "-o", "json", directory=guest))}


def count(host: Sandbox, *what: str) -> int:
    found = json.loads(host.kubectl("get", *what, "--ignore-not-found", "-o", "json").stdout or '{"items": []}')
    return len(found["items"])


def test_worker_is_a_node_of_the_host(host: Sandbox, guest: Path) -> None:
    host.kubectl("wait", "--for=condition=Ready", "node/vnode.worker-1", "--timeout=30s")
    assert set(processes(guest)) == {"cml-worker-1", "provider-1"}, "no control plane of its own"


def test_all_processes_listen_on_loopback_only(guest: Path) -> None:
    addresses = listening(entry["pid"] for entry in processes(guest).values())
    assert len(addresses) >= 2
    assert [address for address in addresses if not address.startswith("127.")] == []


def test_table_names_what_runs_and_where(guest: Path) -> None:
    table = sandbox("ps", directory=guest)
    worker = processes(guest)["cml-worker-1"]
    row = next(line for line in table.splitlines() if line.startswith("cml-worker-1"))
    assert row.split() == ["cml-worker-1", str(worker["pid"]), "running", "0", worker["url"], worker["log"]]
    assert re.fullmatch(r"https://127\.\d+\.0\.11:(8443|9443|10443)", worker["url"])


def test_log_of_a_process_is_printed(guest: Path) -> None:
    lines = sandbox("logs", "provider-1", directory=guest).splitlines()
    assert any("started" in line for line in lines)
    assert len(sandbox("logs", "provider-1", "--lines=1", directory=guest).splitlines()) == 1
    assert "has no process nobody" in sandbox("logs", "nobody", directory=guest, code=1)


def test_processes_stop_die_and_start_on_request(host: Sandbox, guest: Path) -> None:
    assert sandbox("stop", "cml-worker-1", directory=guest).startswith("cml-worker-1: stopped")
    host.kubectl("wait", "--for=condition=Ready=False", "node/vnode.worker-1", "--timeout=60s")
    assert sandbox("start", "cml-worker-1", directory=guest).startswith("cml-worker-1: running (pid ")
    host.kubectl("wait", "--for=condition=Ready", "node/vnode.worker-1", "--timeout=60s")
    sandbox("kill", "provider-1", directory=guest)
    assert processes(guest)["provider-1"]["state"] != "running"
    assert "there is no signal LOUD" in sandbox("kill", "provider-1", "--signal=LOUD", directory=guest, code=2)
    sandbox("start", "provider-1", directory=guest)
    until(lambda: processes(guest)["provider-1"]["state"] == "running", 30)


def test_down_takes_its_own_off_the_host_and_nothing_else(host: Sandbox, guest: Path) -> None:
    """The CRDs, the namespace and the roles stay, for others may use them by now."""
    assert count(host, "cmlworkers", OURS) == 1
    assert count(host, "secrets", "--all-namespaces", OURS) == 1
    said = sandbox("down", directory=guest)
    assert "sandbox guest is gone" in said
    assert count(host, "cmlworkers") == 0
    assert count(host, "secrets", "--all-namespaces", OURS) == 0
    assert count(host, "nodes") == 0, "the provider has removed it before it ended"
    assert marked(guest) == []
    assert not guest.exists() or not any(guest.iterdir())
    assert {status.state for status in host.processes()} == {"running"}
    host.kubectl("get", "crd/cmlworkers.vkprovider.io", "namespace/vkprovider-system")


def test_worker_of_somebody_else_is_refused(host: Sandbox, tmp_path: Path) -> None:
    spec = {"url": "https://cml.example.com", "credentialsSecretName": "theirs"}
    theirs = {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "CMLWorker",
        "metadata": {"name": "worker-1"},
        "spec": spec,
    }
    host.kubectl("apply", "-f", "-", input=json.dumps(theirs))
    said = sandbox(
        "up", f"--kubeconfig={host.kubeconfig}", "--workers=1", "--no-provider", directory=tmp_path / "g", code=1
    )
    assert "CMLWorker worker-1 exists and does not belong to sandbox guest: delete it, or use another cluster" in said
    found = json.loads(host.kubectl("get", "cmlworker/worker-1", "-o", "json").stdout)
    assert found["spec"]["url"] == spec["url"]
