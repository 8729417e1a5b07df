"""A sandbox without workers: it comes up, survives its own faults, and leaves nothing behind.

Its kubectl is the stock one without an option that Kubernetes 1.31 added to `kubectl wait`.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.listening import listening
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.build import ensure_programs
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.waiting import await_processes
from vkpsandbox.processes.process import MARK
from vkpsandbox.processes.strays import marked

# The first run on a machine builds the control plane.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

CONTROL_PLANE = {"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"}

NODE_AND_DEPLOYMENT = """
apiVersion: v1
kind: Node
metadata: {name: by-hand}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: three}
spec:
  replicas: 3
  selector: {matchLabels: {app: three}}
  template:
    metadata: {labels: {app: three}}
    spec: {containers: [{name: main, image: none}]}
"""

READY_STATUS = (
    '{"status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", '
    '"status": "True", "reason": "ByHand", "message": "", "lastHeartbeatTime": null, "lastTransitionTime": null}]}}'
)


KUBECTL_OF_1_30 = """#!/bin/sh
case " $* " in *" wait "*--for=create*)
  echo 'error: unrecognized condition: "create"' >&2
  exit 1
esac
exec {kubectl} "$@"
"""
"""As kubectl 1.30 refuses that option."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the programs of the control plane, and that kubectl."""
    directory = tmp_path_factory.mktemp("programs")
    for program in ensure_programs(print).iterdir():
        (directory / program.name).symlink_to(program)
    kubectl = directory / "kubectl"
    stock = kubectl.resolve()
    kubectl.unlink()
    kubectl.write_text(KUBECTL_OF_1_30.format(kubectl=stock))
    kubectl.chmod(0o755)
    return directory


@pytest.fixture(scope="module")
def sandbox(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("a-directory-whose-name-is-too-long-for-the-path-of-a-unix-domain-socket-" * 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VKPROVIDER_SANDBOX_BIN", str(programs))
        made = Sandbox.up("lifecycle", directory=directory, workers=0, provider=False, audit=True, tied=True)
    with made:
        yield made
    assert marked(directory) == []
    assert not directory.exists()


def eventually(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_control_plane_is_stock_and_says_its_version(sandbox: Sandbox) -> None:
    assert {status.name for status in sandbox.processes()} == CONTROL_PLANE
    program = [str(sandbox.programs / "kube-apiserver"), "--version"]
    said = subprocess.run(program, capture_output=True, text=True, check=True).stdout  # noqa: S603 (the sandbox's)
    version = said.removeprefix("Kubernetes ").strip()
    answer = sandbox.kubectl("version").stdout
    assert f"Client Version: {version}\n" in answer
    assert f"Server Version: {version}\n" in answer


def test_scheduler_and_controllers_work(sandbox: Sandbox) -> None:
    sandbox.kubectl("apply", "-f", "-", input=NODE_AND_DEPLOYMENT)
    sandbox.kubectl("patch", "node", "by-hand", "--subresource=status", "--type=merge", f"--patch={READY_STATUS}")
    bound = "--for=jsonpath={.spec.nodeName}=by-hand"
    eventually(lambda: len(sandbox.kubectl("get", "pods", "-o", "name").stdout.split()) == 3)
    sandbox.kubectl("wait", bound, "pod", "--selector=app=three", "--timeout=60s")


def test_wait_that_fails_says_what_kubectl_says(sandbox: Sandbox) -> None:
    kubectl = Kubectl(sandbox.programs / "kubectl", sandbox.layout)

    def answered() -> bool:
        return bool(kubectl("get", "lablets.example.com", "--output=name").stdout)

    with pytest.raises(SandboxError) as failed:
        await_processes(sandbox.layout, ["kube-scheduler"], answered, "the lablets", timeout_s=0)
    assert "the lablets: not ready after 0 s, although kube-scheduler is running: " in str(failed.value)
    assert 'the server doesn\'t have a resource type "lablets"' in str(failed.value)
    assert "busy machine" not in str(failed.value)


def test_strangers_have_no_rights(sandbox: Sandbox) -> None:
    refused = sandbox.kubectl("get", "pods", "--as=system:serviceaccount:default:default", check=False)
    assert refused.returncode != 0
    assert "Forbidden" in refused.stderr


def test_audit_log_has_a_line_per_complete_request(sandbox: Sandbox) -> None:
    sandbox.kubectl("get", "configmap", "a-name-to-look-for", check=False)
    log = sandbox.audit_log
    assert log is not None
    lines = [line for line in log.read_text().splitlines() if "/configmaps/a-name-to-look-for" in line]
    assert len(lines) == 1
    assert '"stage":"ResponseComplete"' in lines[0]
    assert '"level":"Metadata"' in lines[0]


def test_killed_control_plane_process_is_started_again(sandbox: Sandbox) -> None:
    before = sandbox.process("kube-scheduler")
    sandbox.kill("kube-scheduler")
    eventually(lambda: sandbox.process("kube-scheduler").state == "running")
    after = sandbox.process("kube-scheduler")
    assert after.pid != before.pid
    assert after.restarts == before.restarts + 1
    assert after.exit_code == -signal.SIGKILL


def test_stopped_process_stays_down_until_started(sandbox: Sandbox) -> None:
    stopped = sandbox.stop("etcd")
    assert (stopped.state, stopped.pid) == ("stopped", None)
    assert sandbox.kubectl("get", "--raw=/readyz", check=False).returncode != 0
    assert sandbox.process("etcd").state == "stopped"
    assert sandbox.start("etcd").state == "running"
    eventually(lambda: sandbox.kubectl("get", "--raw=/readyz", check=False).returncode == 0)
    assert sandbox.process("etcd").restarts == stopped.restarts


def test_paused_process_is_not_touched(sandbox: Sandbox) -> None:
    paused = sandbox.kill("kube-scheduler", signal.SIGSTOP)
    eventually(lambda: Path(f"/proc/{paused.pid}/stat").read_text().split()[2] == "T")  # not all threads at once
    assert sandbox.kill("kube-scheduler", signal.SIGCONT).pid == paused.pid


def test_unknown_process_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="there is no process nobody; there are etcd, "):
        sandbox.stop("nobody")


def test_second_up_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="runs already"):
        Sandbox.up("lifecycle", directory=sandbox.directory, workers=0, provider=False)


def test_all_listen_on_loopback_only(sandbox: Sandbox) -> None:
    addresses = listening(status.pid for status in sandbox.processes())
    assert len(addresses) >= 5
    assert set(addresses) == {"127.0.0.1"}


def test_nothing_survives_the_death_of_the_supervisor(tmp_path: Path) -> None:
    made = Sandbox.up("dead", directory=tmp_path / "dead", workers=0, provider=False, controllers=False)
    try:
        pids = [status.pid for status in made.processes()]
        [supervisor] = set(marked(made.directory)) - set(pids)
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: marked(made.directory) == [])
        assert {status.state for status in made.processes()} == {"lost"}
    finally:
        made.down()
    assert not made.directory.exists()


def test_interrupted_up_leaves_no_process(tmp_path: Path) -> None:
    directory = tmp_path / "interrupted"
    arguments = ["sandbox", "up", f"--dir={directory}", "--workers=0", "--no-provider"]
    command = subprocess.Popen(  # noqa: S603 (ourselves)
        [sys.executable, "-m", "vkprovider", *arguments], stderr=subprocess.DEVNULL
    )
    eventually(lambda: len(marked(directory)) >= 3)
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=30) != 0
    assert marked(directory) == []


def test_down_ends_strays_of_a_sandbox_whose_files_are_gone(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "600"], env={**os.environ, MARK: str(tmp_path)}) as stray:
        eventually(lambda: marked(tmp_path) == [stray.pid])
        Sandbox.remove(directory=tmp_path)
        assert stray.wait(timeout=5) == -signal.SIGKILL


def test_tied_sandbox_ends_with_its_owner(tmp_path: Path) -> None:
    directory = tmp_path / "tied"
    script = f"""
import os, pathlib, signal
from vkpsandbox import Sandbox
directory = pathlib.Path({str(directory)!r})
Sandbox.up("tied", directory=directory, workers=0, provider=False, controllers=False, tied=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = subprocess.run([sys.executable, "-c", script], check=False)  # noqa: S603 (the lines above)
    assert command.returncode == -signal.SIGKILL
    eventually(lambda: marked(directory) == [])
