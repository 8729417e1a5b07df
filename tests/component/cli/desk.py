"""Where a user of `kubectl lablet` sits: the real kubectl, which finds the plugin and its completion on PATH."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.component.controllers.harness import World
from tests.component.controllers.running import SHORT, Running
from tests.support.apiserver import ApiServer
from tests.support.faultyapi import FaultyApi
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.build import find_kubectl
from vkpsandbox.controlplane.components import ISSUER
from vkpsandbox.processes.ports import free_ports

PATIENCE_S = 90.0
_PROGRAMS = {
    "kubectl-lablet": "from vkprovider.cli.lablet import main; main()",
    "kubectl_complete-lablet": "from vkprovider.cli.lablet.completion import complete; complete()",
}


async def with_page(world: World, **settings: str) -> Running:
    """Start a replica whose page the CMLWorkers name, and which accepts the tokens of kubeconfigs."""
    [port] = free_ports(1)
    url, audiences = f"http://127.0.0.1:{port}", f"vkprovider.io {ISSUER}"
    env = {"VKPROVIDER_PAGE_URL": url, "VKPROVIDER_HTTP_AUDIENCES": audiences, **settings}
    running = await world.replica(SHORT, **env)
    await world.stack.enter_async_context(running.page(port))
    return running


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The table's lines, each split at gaps of three spaces."""
        return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """The document."""
        return json.loads(self.out)


class Desk:
    """Runs commands in the namespace of a world; whatever still runs at its end is killed.

    Attributes:
        folder: For its files.
        kubeconfig: The administrator's, with the world's namespace.
    """

    def __init__(self, server: ApiServer, world: World, folder: Path) -> None:
        self._server = server
        self._world = world
        self.folder = folder
        self._stack = AsyncExitStack()
        self._started: list[asyncio.subprocess.Process] = []
        self.kubeconfig = folder / "kubeconfig"

    async def __aenter__(self) -> Self:
        programs = self.folder / "programs"
        programs.mkdir()
        for name, script in _PROGRAMS.items():
            path = programs / name
            path.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{script}' \"$@\"\n")
            path.chmod(0o755)
        self.kubeconfig.write_text(self._server.kubeconfig.read_text())
        await self.kubectl("config", "set-context", "--current", f"--namespace={self._world.namespace}")
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._started:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        await self._stack.aclose()

    @property
    def environ(self) -> dict[str, str]:
        """The environment of its commands."""
        path = [str(self.folder / "programs"), str(find_kubectl().parent), os.environ["PATH"]]
        return {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": str(find_manifests().parent),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "cache"),
        }

    async def start(self, *words: str, **environ: str) -> asyncio.subprocess.Process:
        """Start kubectl with pipes."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env={**self.environ, **environ},
        )
        self._started.append(process)
        return process

    async def kubectl(self, *words: str, **environ: str) -> Result:
        """Run kubectl to its end."""
        process = await self.start(*words, **environ)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        return Result(process.returncode or 0, out.decode(errors="replace"), err.decode())

    async def lablet(self, *words: str) -> Result:
        """Run `kubectl lablet`; it must not end with a traceback."""
        result = await self.kubectl("lablet", *words)
        assert "Traceback" not in result.err, result.err
        return result

    async def succeeds(self, *words: str) -> str:
        """Run `kubectl lablet`, which must succeed; return what it printed."""
        result = await self.lablet(*words)
        assert result.code == 0, result
        return result.out

    async def completes(self, *words: str) -> tuple[list[str], int]:
        """Press Tab after words, the last of them unfinished; return the candidates and kubectl's directive."""
        result = await self.kubectl("__complete", "lablet", *words)
        assert result.code == 0, result
        *lines, directive = result.out.splitlines()
        return [line.partition("\t")[0] for line in lines], int(directive.removeprefix(":"))

    async def proxied(self) -> tuple[FaultyApi, str]:
        """Put a proxy before the API server; return it, and a kubeconfig that leads through it."""
        api = await self._stack.enter_async_context(FaultyApi(self._server.url, self._server.admin_tls()))
        path = self.folder / "proxied"
        context = {"cluster": "c", "user": "u", "namespace": self._world.namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxied",
            "contexts": [{"name": "proxied", "context": context}],
            "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            "users": [{"name": "u", "user": {}}],
        }
        path.write_text(json.dumps(config))
        return api, str(path)
