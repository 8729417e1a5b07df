"""What kubectl completes after `kubectl lablet`: it runs `kubectl_complete-lablet` on PATH itself."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.support.apiserver import GROUP
from tests.support.ptys import Pty
from tests.support.topologies import topology
from vkprovider.cli.lablet.group import COMMANDS

NO_FILES, FILES, FOLDERS = 4, 0, 16


@pytest.fixture
async def lablet(world: World) -> Lablet:
    """One of two devices, with a port of each kind."""
    await world.replica()
    worker = await world.worker()
    tags = {"R 1": ["serial:4001", "pat:udp:4004:53"], "h0": ["vnc:4002"]}
    definition = await world.define(topology({"R 1": "alpine", "h0": "alpine"}, tags))
    made = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await made.ready()
    return made


async def test_commands_options_and_their_values(desk: Desk) -> None:
    assert await desk.completes("") == ([name for name, (_, text) in COMMANDS.items() if text], NO_FILES)
    assert await desk.completes("re") == (["release", "reset", "refresh"], NO_FILES)
    options, directive = await desk.completes("list", "--")
    assert {"--watch", "--output", "--namespace", "--all-namespaces", "--selector", "--context"} <= set(options)
    assert directive == NO_FILES
    assert await desk.completes("list", "-o", "") == (["table", "wide", "json", "yaml", "csv", "name"], NO_FILES)
    assert await desk.completes("list", "--output=w") == (["wide"], NO_FILES)
    assert await desk.completes("list", "--kubeconfig", "") == ([], FILES)
    assert await desk.completes("configs", "a", "--dir", "") == ([], FOLDERS)
    assert await desk.completes("completion", "z") == (["zsh"], NO_FILES)


async def test_names_that_the_cluster_has(world: World, desk: Desk, lablet: Lablet) -> None:
    other = {"metadata": {"name": "other"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
    await world.admin.create(f"/api/v1/namespaces/{world.namespace}/pods", other)
    assert await desk.completes("console", "") == ([lablet.name], NO_FILES), "a lablet, and no other pod"
    assert await desk.completes("ports", "pod/") == ([f"pod/{lablet.name}"], NO_FILES)
    assert await desk.completes("stop", lablet.name, "") == ([], NO_FILES), "it is named already"
    assert await desk.completes("console", lablet.name, "") == (["R 1", "h0"], NO_FILES)
    assert await desk.completes("forward", lablet.name, "") == (["R_1_serial", "h0_vnc"], NO_FILES), "UDP cannot be"
    assert await desk.completes("list", "-n", world.namespace[:-1]) == (
        sorted(name for name in await namespaces(world) if name.startswith(world.namespace[:-1])),
        NO_FILES,
    )
    assert await desk.completes("console", "-n", "kube-public", "") == ([], NO_FILES)
    definition = (await lablet.ready())["spec"]["runtimeClassName"]
    assert await desk.completes("refresh", "") == ([definition], NO_FILES)
    contexts, _ = await desk.completes("list", "--context", "")
    assert contexts == (await desk.kubectl("config", "get-contexts", "-o", "name")).out.split()


async def namespaces(world: World) -> list[str]:
    return [item["metadata"]["name"] for item in await world.admin.items("/api/v1/namespaces")]


async def test_workers_that_await_approval(world: World, desk: Desk, lablet: Lablet) -> None:
    assert lablet.worker
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker"}
    meta = {"name": "cml-7", "annotations": {"vkprovider.io/approved": "false"}}
    spec = {"tunnel": "mqtt", "address": "198.51.100.7", "portRange": {"start": 2000, "end": 2999}}
    await world.admin.create(f"{GROUP}/cmlworkers", {**body, "metadata": meta, "spec": spec})
    assert await desk.completes("approve", "") == (["cml-7"], NO_FILES)
    assert await desk.succeeds("approve", "cml-7") == "cmlworker/cml-7 approved\n"
    assert await desk.completes("approve", "") == ([], NO_FILES)


async def test_a_pool_can_be_assigned(world: World, desk: Desk) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    await world.admin.create(path, {"metadata": {"name": "warm"}, "spec": spec})
    assert await desk.completes("assign", "") == (["deployment/warm"], NO_FILES)
    await world.admin.delete(f"{path}/warm")


async def test_a_cluster_that_is_away_offers_nothing_and_says_nothing(desk: Desk) -> None:
    desk.kubeconfig.write_text(desk.kubeconfig.read_text().replace("https://", "https://nowhere.invalid#"))
    result = await desk.kubectl("__complete", "lablet", "console", "")
    assert (result.code, result.out) == (0, ":4\n")
    assert "Traceback" not in result.err


async def test_a_cluster_that_hangs_is_not_waited_for(desk: Desk) -> None:
    """It accepts connections, and nothing more; each Tab has one deadline, however much it asks."""
    async with await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0) as server:
        held: list[asyncio.StreamWriter] = []
        port = server.sockets[0].getsockname()[1]
        text = desk.kubeconfig.read_text()
        desk.kubeconfig.write_text(re.sub(r"https://127\.0\.0\.1:\d+", f"https://127.0.0.1:{port}", text))
        async with asyncio.timeout(60):
            result = await desk.kubectl("__complete", "lablet", "assign", "")
        assert (result.code, result.out) == (0, ":4\n")
        for writer in held:
            writer.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_scripts_are_the_shells(desk: Desk, shell: str) -> None:
    script = await desk.succeeds("completion", shell)
    assert "kubectl completion" in script
    assert "_KUBECTL_LABLET_COMPLETE" in script
    if (program := shutil.which(shell)) is not None:
        process = await asyncio.create_subprocess_exec(program, "-n", stdin=asyncio.subprocess.PIPE)
        await process.communicate(script.encode())
        assert process.returncode == 0


async def test_bash_completes_the_program_itself(desk: Desk) -> None:
    """The script that is loaded, as bash runs it at Tab."""
    bash = shutil.which("bash")
    assert bash is not None
    lines = (
        "source <(kubectl lablet completion bash)",
        "COMP_WORDS=(kubectl-lablet comp)",
        "COMP_CWORD=1",
        "_kubectl_lablet_completion kubectl-lablet",
        'echo "offered: ${COMPREPLY[*]}"',
    )
    process = await asyncio.create_subprocess_exec(
        bash, "-c", "\n".join(lines), env=desk.environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert "offered: completion" in out.decode(), err.decode()


async def test_without_the_program_the_plugin_answers_itself(desk: Desk) -> None:
    """As after an installation by krew, which puts the plugin alone on PATH."""
    program = await desk.succeeds("completion", "program")
    assert program.startswith("#!/bin/sh\n")
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", program, "kubectl_complete-lablet", "comp", env=desk.environ, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().splitlines() == [f"completion\t{COMMANDS['completion'][1]}", ":4"]


BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
"""The package bash-completion, which kubectl's own script needs."""
HAS_BASH_COMPLETION = BASH_COMPLETION.exists()
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], f"source {BASH_COMPLETION}; source <(kubectl lablet completion bash)"),
    "zsh": (
        ["-f", "-i"],
        "autoload -U compinit && compinit -u -D && source <(kubectl lablet completion zsh)",
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
async def test_tab_completes_in_the_shell_itself(desk: Desk, shell: str) -> None:
    """At a terminal, with the script loaded as its help says."""
    program = shutil.which(shell)
    if program is None or (shell == "bash" and not HAS_BASH_COMPLETION):
        pytest.skip(f"{shell} or its completion is not installed")
    options, load = SHELLS[shell]

    def work() -> None:
        environ = {**desk.environ, "TERM": "dumb", "PS1": "$ ", "HOME": str(desk.folder)}
        with Pty([program, *options], environ, columns=200) as pty:
            pty.type(f"{load}; echo it is $((40+2))ed\r")
            pty.shows("it is 42ed")
            pty.type("kubectl lablet comp\t")
            pty.shows("kubectl lablet completion")
            pty.type("\x15kubectl-lablet comp\t")
            pty.shows("kubectl-lablet completion")

    await asyncio.to_thread(work)


async def test_fish_completes_both(desk: Desk) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    lines = (
        "kubectl lablet completion fish | source",
        "complete --do-complete 'kubectl lablet comp'",
        "complete --do-complete 'kubectl-lablet comp'",
    )
    environ = {**desk.environ, "HOME": str(desk.folder)}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(fish, "-c", "; ".join(lines), env=environ, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert [line.partition("\t")[0] for line in out.decode().splitlines()] == ["completion", "completion"], err.decode()
