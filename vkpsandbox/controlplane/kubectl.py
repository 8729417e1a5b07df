"""Run kubectl against a sandbox."""

import os
import subprocess
from pathlib import Path

from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import environment

DEADLINE_S = 300.0
"""No command of the sandbox takes longer; `kubectl wait` has its own --timeout."""


class Kubectl:
    """A kubectl with a kubeconfig and a discovery cache of its own."""

    def __init__(self, program: Path, layout: Layout) -> None:
        self.program = program
        self._layout = layout

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run one command and return its result.

        Args:
            arguments: As on the command line.
            stdin: What it reads.
            check: Whether a failure raises.
            timeout_s: When it is killed.

        Raises:
            SandboxError: If it fails and `check` is set, or takes too long.
        """
        changes = {"KUBECONFIG": str(self._layout.kubeconfig), "KUBECACHEDIR": str(self._layout.kubectl_cache)}
        environ = environment(os.environ, changes, self._layout.directory)
        command = [str(self.program), *arguments]
        try:
            result = subprocess.run(  # noqa: S603 (kubectl, with the sandbox's arguments)
                command, input=stdin, capture_output=True, text=True, env=environ, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(
                f"`kubectl {' '.join(arguments)}` took more than {timeout_s:.0f} s: is the API server up? "
                "See `vkprovider sandbox ps`"
            ) from error
        if check and result.returncode:
            said = result.stderr.strip() or result.stdout.strip()
            raise SandboxError(f"`kubectl {' '.join(arguments)}` failed with {result.returncode}: {said}")
        return result
