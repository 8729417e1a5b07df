"""Versions of the control plane's programs: those that go.mod pins, and those that programs say they have."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vkprovider.labs.pure.worker.endpoint import KUBERNETES_OLDEST
from vkpsandbox.errors import SandboxError

ETCD: Final = "etcd"
"""The program that has versions of its own."""

_QUESTIONS: Final[Mapping[str, tuple[tuple[str, ...], re.Pattern[str]]]] = {
    ETCD: (("--version",), re.compile(r"^etcd Version: v?(\d+\.\d+\.\d+\S*)", re.MULTILINE)),
    "kubectl": (("version", "--client"), re.compile(r"^Client Version: v?(\d+\.\d+\.\d+\S*)", re.MULTILINE)),
}
"""Program: the arguments with which it says its version, and how the answer reads."""

_OTHERS: Final = (("--version",), re.compile(r"^Kubernetes v?(\d+\.\d+\.\d+\S*)", re.MULTILINE))

_ANSWER_S: Final = 60.0
"""Of a program that is asked its version. A cold one of 100 MB takes some seconds to be read from a slow disk."""


def kubernetes_version(go_mod: bytes) -> str:
    """Return the version of Kubernetes that go.mod requires, such as `v1.36.3`.

    Raises:
        SandboxError: If go.mod requires none.
    """
    return _required(go_mod, "k8s.io/kubernetes")


def etcd_version(go_mod: bytes) -> str:
    """Return the version of etcd that go.mod requires, such as `v3.6.8`.

    Raises:
        SandboxError: If go.mod requires none.
    """
    return _required(go_mod, "go.etcd.io/etcd/server/v3")


def _required(go_mod: bytes, module: str) -> str:
    line = rf"^\s*{re.escape(module)} (v[0-9]+\.[0-9]+\.[0-9]+\S*)(?: //|$)"
    found = re.search(line.encode(), go_mod, re.MULTILINE)
    if not found:
        raise SandboxError(f"go.mod of the control plane requires no {module}: reinstall vkprovider")
    return found[1].decode()


def said_by(program: Path) -> str:
    """Run a program of the control plane, and return the version that it says it has, such as `v1.36.3`.

    Raises:
        SandboxError: It does not run, or says none.
    """
    arguments, answer = _QUESTIONS.get(program.name, _OTHERS)
    command = [str(program), *arguments]
    environment = {**os.environ, "KUBECONFIG": os.devnull, "KUBERC": "off"}  # a broken one of the user is no matter
    try:
        said = subprocess.run(  # noqa: S603 (a program that is about to be run as a part of the sandbox)
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"`{' '.join(command)}` says nothing within {_ANSWER_S:.3g} s") from error
    except OSError as error:
        raise SandboxError(f"{program} does not run on this machine: {error.strerror}") from error
    found = answer.search(said.stdout.decode(errors="replace"))
    if said.returncode or not found:
        words = (said.stderr or said.stdout).decode(errors="replace").strip()[:200] or "nothing"
        raise SandboxError(f"`{' '.join(command)}` ends with {said.returncode} and says no version: {words}")
    return f"v{found[1]}"


def unfit(versions: Mapping[str, str]) -> str:
    """Return why programs do not make a control plane, by their versions; "" if they do.

    What a distribution adds behind a `+` does not count, and etcd has versions of its own.

    >>> unfit({"etcd": "v3.6.8", "kube-apiserver": "v1.36.3", "kubectl": "v1.36.3+k3s1"})
    ''
    >>> unfit({"kube-apiserver": "v1.36.3", "kubectl": "v1.35.0"})
    'kube-apiserver is v1.36.3 and kubectl is v1.35.0, which must be one version of Kubernetes'

    Args:
        versions: By program.
    """
    of_kubernetes = {program: version for program, version in versions.items() if program != ETCD}
    each = [f"{program} is {version}" for program, version in of_kubernetes.items()]
    text = " and ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)
    if len({version.partition("+")[0] for version in of_kubernetes.values()}) > 1:
        return f"{text}, which must be one version of Kubernetes"
    oldest = ".".join(map(str, KUBERNETES_OLDEST))
    if any(_minor(version) < KUBERNETES_OLDEST for version in of_kubernetes.values()):
        return f"{text}, which must be {oldest} or later"
    return ""


def _minor(version: str) -> tuple[int, int]:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return int(major), int(minor)
