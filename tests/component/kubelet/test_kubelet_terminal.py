"""A person at a terminal, and a real ssh client: through kubectl, the real API server and our kubelet API."""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.component.controllers.consolesite import Site, open_site
from tests.component.controllers.harness import World
from tests.support.apiserver import ApiServer
from tests.support.ptys import Pty
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.build import find_kubectl
from vkpsim.cml.consoles import inside


@dataclass(frozen=True)
class Desk:
    """Where a person sits; what they do is done in a thread, beside the replica."""

    site: Site
    server: ApiServer
    folder: Path

    @contextmanager
    def terminal(self, *words: str, websockets: bool = True) -> Iterator[Pty]:
        """Run kubectl at a terminal; without WebSockets, it speaks SPDY."""
        path = [str(Path(sys.executable).parent), str(find_kubectl().parent), os.environ["PATH"]]
        environ = {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": str(find_manifests().parent),
            "KUBECONFIG": str(self.server.kubeconfig),
            "KUBECACHEDIR": str(self.folder),
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": str(websockets).lower(),
            "TERM": "xterm",
        }
        first = 2 if words[0] == "lablet" else 1
        where = f"--namespace={self.site.lablet.namespace}"
        with Pty(["kubectl", *words[:first], where, *words[first:]], environ) as pty:
            yield pty

    @contextmanager
    def forwarding(self, *words: str) -> Iterator[int]:
        """Forward a port; yield the local one."""
        with self.terminal(*words) as forward:
            forward.shows("Forwarding from 127.0.0.1:")
            yield int(forward.until(r"(\d+) -> "))


@pytest.fixture
async def desk(world: World, apiserver: ApiServer, tmp_path: Path) -> Desk:
    return Desk(await open_site(world, patty=True), apiserver, tmp_path)


def work_at_a_console(desk: Desk) -> None:
    pod = desk.site.lablet.name
    with desk.terminal("attach", "-it", pod, "-c", "r1") as mine:
        mine.shows("Escape character is '^]'.")
        mine.type("\r")
        mine.shows("r1>")
        mine.resize(132, 43)
        for key in "show version":
            mine.type(key)
            mine.shows(key)
        mine.type("\r")
        mine.shows("Cisco IOS Software")
        mine.shows("r1>")
        mine.type("\x1d")
        assert mine.ends() == 0
    with desk.terminal("lablet", "console", pod, "h1") as unnamed:  # the Pod has no container for it
        unnamed.shows("the console of h1 (alpine)")
        unnamed.type("\x1d")
        assert unnamed.ends() == 0


async def test_a_person_works_at_a_console(desk: Desk) -> None:
    await asyncio.to_thread(work_at_a_console, desk)


def take_over(desk: Desk) -> None:
    pod = desk.site.lablet.name
    with desk.terminal("attach", "-it", pod, "-c", "r1", websockets=False) as mine:
        mine.shows("Escape character is '^]'.")
        for words in (
            ("lablet", "console", pod, "r1"),
            ("attach", "-it", pod, "-c", "r1"),
            ("exec", "-it", pod, "-c", "r1", "--", "sh"),
        ):
            with desk.terminal(*words) as other:
                other.shows("another session types at the console of r1")
                other.shows("--take-over`")
                assert other.ends() == 1
        for words, websockets in (
            (("lablet", "console", pod, "r1", "--take-over"), True),
            (("exec", "-it", pod, "--", "console", "r1", "--take-over"), False),
        ):
            with desk.terminal(*words, websockets=websockets) as other:
                other.shows("Escape character is '^]'.")
                other.shows("you have taken over from a session that typed since")
                mine.shows("[another session has taken over: you watch until it leaves, and type again then")
                other.type("echo mine\r")
                other.shows("\r\nmine\r\n")
                mine.shows("\r\nmine\r\n")
                mine.type("x")
                mine.shows("[another session has taken over")
                other.type("\x1d")
                assert other.ends() == 0
            mine.shows("[the session that had taken over has left: you type again]")
            mine.type("echo again\r")
            mine.shows("\r\nagain\r\n")
        mine.type("\x1d")
        assert mine.ends() == 0


async def test_somebody_takes_over_and_gives_back(desk: Desk) -> None:
    await asyncio.to_thread(take_over, desk)


def press_the_shell_button(desk: Desk) -> None:
    pod = desk.site.lablet.name
    for words in (
        ("sh", "-c", "command -v zsh >/dev/null && exec zsh || exec ash"),
        ("/bin/bash",),
        ("sh", "-c", "clear; (zsh || ash || sh)"),
    ):
        with desk.terminal("exec", "-it", pod, "-c", "r1", "--", *words) as shell:
            shell.shows("the console of r1 (iosv)")
            shell.type("\recho by the button\r")
            shell.shows("by the button\r\nr1>")
            shell.type("\x1d")
            assert shell.ends() == 0
    with desk.terminal("exec", pod, "-c", "r1", "--", "sh") as shell:
        shell.shows(f"kubectl exec -it {pod} -c r1 -- console")
        assert shell.ends() == 1


async def test_the_shell_button_of_a_user_interface_is_the_console(desk: Desk) -> None:
    await asyncio.to_thread(press_the_shell_button, desk)


def use_ports(desk: Desk, ssh: str) -> None:
    pod = desk.site.lablet.name
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    line = [ssh, "-F", "none", *(f"-o{option}" for option in options), "cisco@127.0.0.1"]
    with (
        desk.forwarding("port-forward", f"pod/{pod}", ":22") as port,
        Pty([*line, "-p", str(port), "uname -a"]) as done,
    ):
        done.shows("Linux h0")
        assert done.ends() == 0
    with desk.forwarding("lablet", "forward", pod, "h0_pat22", "0") as port, Pty([*line, f"-p{port}"]) as session:
        session.shows("h0:~# ")
        session.type("echo by name\r")
        session.shows("by name\r\nh0:~# ")
    with desk.terminal("lablet", "forward", pod, "r9_serial") as unknown:
        unknown.shows("it has: h0_vnc, h0_pat80, h0_pat22, r1_serial, r1_pat80")
        assert unknown.ends() == 1


async def test_ssh_through_a_forwarded_port(desk: Desk) -> None:
    ssh = shutil.which("ssh")
    if ssh is None or not inside.has_ssh():
        pytest.skip("needs ssh, and the package asyncssh")
    await asyncio.to_thread(use_ports, desk, ssh)
