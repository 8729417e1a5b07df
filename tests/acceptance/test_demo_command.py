"""The demo as a newcomer runs it."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.releases import Releases
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.build import BIN_VARIABLE, ensure_programs
from vkpsandbox.controlplane.download import MIRROR_VARIABLE, SUMS_VARIABLE
from vkpsandbox.processes.strays import marked

pytestmark = pytest.mark.timeout(400)
"""On a busy machine the start alone may last as long as the demo waits for it: four minutes."""

COMMAND = (sys.executable, "-P", "-u", "-m", "vkprovider")


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "demo", *arguments], capture_output=True, text=True, check=False, timeout=350)  # noqa: S603 (ourselves)


def test_kept_demo_tells_the_whole_story_and_can_be_used(home: Path) -> None:
    result = demo("--keep", "--name=kept")
    assert result.returncode == 0, result.stdout + result.stderr
    story = result.stdout
    assert len(re.findall(r"^   vnode\.worker-\d +Ready +cml-worker ", story, re.MULTILINE)) == 3
    pods = dict(re.findall(r"^   (netlab-\S+) +1/1 +Running .* vnode\.(worker-\d) ", story, re.MULTILINE))
    assert len(pods) == 4
    assert set(pods.values()) == {"worker-1", "worker-2"}
    labs = re.findall(
        r"^   (netlab-\S+) +(worker-\d) +netlab-[0-9a-f]{8}-[0-9a-f-]{36} +STARTED +h0 BOOTED, h1 BOOTED, nat BOOTED$",
        story,
        re.MULTILINE,
    )
    assert dict(labs) == pods
    assert "4 pods, 4 labs" in story
    assert re.search(r"^   \$ telnet 127\.\d+\.0\.\d+ [2-7]\d{3}\n   .*h0", story, re.MULTILINE), "a console answers"
    assert re.search(r"^   \$ kubectl exec ann-0 -c r1 -- show version\n   Cisco IOS Software", story, re.MULTILINE)
    assert re.search(r"^   \$ kubectl logs ann-0 -c r1 .*\n(   .*\n)*   r1[>#]show version$", story, re.MULTILINE)
    assert "no lab on worker-1, worker-2, worker-3: every CML is empty" in story

    sandbox = Sandbox.attach("kept")
    assert f"export KUBECONFIG={sandbox.kubeconfig}" in story
    assert sandbox.directory.is_relative_to(home)
    assert sandbox.kubectl("get", "pods", "-o", "name").stdout == ""
    assert len(sandbox.kubectl("get", "nodes", "-o", "name").stdout.split()) == 3

    again = demo("--name=kept")
    assert again.returncode == 1
    assert "a sandbox kept runs already, and stays as it is; start another one beside it" in again.stderr
    sandbox.down()
    assert marked(sandbox.directory) == []


@pytest.mark.parametrize(("number", "step"), [(signal.SIGINT, "3. Deploy"), (signal.SIGTERM, "2. Each")])
def test_interrupted_demo_leaves_nothing(home: Path, number: signal.Signals, step: str) -> None:
    with subprocess.Popen([*COMMAND, "demo", "--workers=2"], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (ourselves)
        assert process.stdout
        for line in process.stdout:
            if line.startswith(step):
                break
        process.send_signal(number)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert "The sandbox demo is gone." in rest
    assert marked(home / "vkprovider" / "sandboxes" / "demo") == []
    with pytest.raises(SandboxError, match="there is no sandbox"):
        Sandbox.attach("demo")


async def test_demo_runs_on_programs_that_it_downloads(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache of programs; those that are built say what official ones say."""
    built = ensure_programs(print)
    empty = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(empty))
    monkeypatch.delenv(BIN_VARIABLE, raising=False)
    async with Releases() as hosts:
        hosts.publish_folder(built)
        monkeypatch.setenv(MIRROR_VARIABLE, hosts.url)
        monkeypatch.setenv(SUMS_VARIABLE, hosts.url)
        result = await asyncio.to_thread(demo, "--download")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "\n     all have their sums, and say their versions\n" in result.stdout
    assert "All of it held" in result.stdout
    [target] = (empty / "vkprovider" / "controlplane").glob("*/")
    assert target.name == built.name
    assert {path.name: path.stat().st_size for path in target.iterdir()} == {
        path.name: path.stat().st_size for path in built.iterdir()
    }
    assert marked(home / "vkprovider" / "sandboxes" / "demo") == []


def test_demo_says_in_one_line_why_it_cannot_start(home: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "VKPROVIDER_SANDBOX_BIN": str(tmp_path)}
    command = [*COMMAND, "demo"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)  # noqa: S603 (ourselves)
    assert result.returncode == 1
    assert f"Error: VKPROVIDER_SANDBOX_BIN={home} lacks etcd, kube-apiserver" in result.stderr
    assert "Traceback" not in result.stderr
