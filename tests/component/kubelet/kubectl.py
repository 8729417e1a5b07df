"""kubectl as a program beside the test's loop."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from vkpsandbox.controlplane.build import find_kubectl

PATIENCE_S = 90.0
_TASKS = "kubelet-session", "log of ", "story of ", "followed log", "console", "exec: "


def left_over() -> list[str]:
    """Name the tasks of sessions that there still are in this process."""
    return [name for task in asyncio.all_tasks() if (name := task.get_name()).startswith(_TASKS)]


class Kubectl:
    """Runs kubectl in one namespace; whatever still runs at the end of its context is killed."""

    def __init__(self, kubeconfig: Path, namespace: str, cache: Path) -> None:
        self._words = (str(find_kubectl()), f"--kubeconfig={kubeconfig}", f"--namespace={namespace}")
        self._cache = str(cache)
        self._started: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._started:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def start(self, *words: str, environ: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
        """Start it, with pipes."""
        environment = {**os.environ, "KUBECACHEDIR": self._cache, **(environ or {})}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._words, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        self._started.append(process)
        return process

    async def __call__(self, *words: str, environ: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Run it; return its exit code, and what it printed."""
        process = await self.start(*words, environ=environ)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()
