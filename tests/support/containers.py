"""Pods of the Deployment as containers of podman, with the limits that the Deployment has."""

import base64
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.installation import Installation, Replica
from vkpsandbox.controlplane.kubeconfig import read_cluster

ROOT = Path(__file__).parents[2]
IMAGE = "localhost/vkprovider-test:image"
WORKBENCH = "localhost/vkprovider-workbench-test:image"
BASE = "localhost/vkprovider-base:bookworm"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_FLAGS = f"--network host --volume {AUTHORITIES}:{AUTHORITIES}:ro"
"""The authorities of this machine: it may reach the package index through a proxy."""
BYTES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def podman(*arguments: str, check: bool = True, timeout_s: float = 120) -> str:
    """Run podman; give what it printed, errors too where `check` is off."""
    result = subprocess.run(  # noqa: S603 (podman)
        ["podman", *arguments],  # noqa: S607 (of PATH)
        stdout=subprocess.PIPE,
        stderr=None if check else subprocess.STDOUT,
        text=True,
        check=check,
        timeout=timeout_s,
        cwd=tempfile.gettempdir(),  # podman's monitor writes a file `oom` here when a container is out of memory
    )
    return result.stdout


def missing() -> str:
    """Say what is missing to build an image and run containers; empty if nothing is."""
    for program in ("podman", "mmdebstrap", "make"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    said = podman("info", check=False)
    return "" if "graphRoot" in said else f"podman does not work here: {said[-300:]}"


def build() -> None:
    """Build the image of the checkout on a base of Debian's packages; the base is kept for the next time."""
    if not podman("images", "--quiet", BASE):
        _make("base", "CONTAINER=podman", f"BASE={BASE}")
    _make("image", "CONTAINER=podman", f"IMAGE={IMAGE}", f"PYTHON_IMAGE={BASE}", f"BUILD={_FLAGS}")


def build_workbench(kubectl: Path) -> None:
    """Build the image of workbenches on that of the checkout, with a kubectl that was built here."""
    names = (f"IMAGE={IMAGE}", f"WORKBENCH={WORKBENCH}", f"PYTHON_IMAGE={BASE}")
    _make("workbench", "CONTAINER=podman", *names, f"KUBECTL={kubectl}", f"BUILD={_FLAGS} --layers")


def _make(*arguments: str) -> None:
    result = subprocess.run(  # noqa: S603 (ourselves)
        ["make", "--no-print-directory", *arguments],  # noqa: S607 (of PATH)
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1500,
    )
    assert result.returncode == 0, result.stdout


def limits(pod: dict[str, Any]) -> list[str]:
    """Return podman's flags for what a Pod says of its container: user, capabilities, root, memory, temporary files."""
    [container] = pod["spec"]["containers"]
    own, all_of = container["securityContext"], pod["spec"]["securityContext"]
    memory = _bytes(container["resources"]["limits"]["memory"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert all_of["seccompProfile"] == {"type": "RuntimeDefault"}, "podman's default"
    flags = [
        f"--user={all_of['runAsUser']}:{all_of['runAsGroup']}",
        *(f"--cap-drop={name}" for name in own["capabilities"]["drop"]),
        f"--memory={memory}",
        f"--memory-swap={memory}",
        "--read-only-tmpfs=false",
    ]
    flags += ["--read-only"] if own["readOnlyRootFilesystem"] else []
    flags += [] if own["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges"]
    for volume in pod["spec"]["volumes"]:
        if "emptyDir" in volume:
            size = _bytes(volume["emptyDir"]["sizeLimit"])
            flags.append(f"--tmpfs={mounts[volume['name']]}:size={size},mode=1777")
    return flags


class Contained(Replica):
    """One Pod of the Deployment as a container, which finds the API server as a Pod does."""

    def command(
        self, installation: Installation, home: Path, token: str, environ: dict[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line that runs the container."""
        account = home / "account"
        account.mkdir()
        cluster = read_cluster(installation.sandbox.kubeconfig)
        account.joinpath("token").write_text(token)
        account.joinpath("namespace").write_text(self.pod["metadata"]["namespace"])
        account.joinpath("ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        host, port = cluster["server"].removeprefix("https://").split(":")
        environ = {**environ, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        folders = {str(home / name): mounts[name] for name in ("secrets", "tls")} | {str(account): ACCOUNT}
        arguments = [
            *("podman", "run", "--rm", f"--name={self.name}", "--network=host"),
            *limits(self.pod),
            *(f"--env={name}={value}" for name, value in environ.items()),
            *(f"--volume={folder}:{place}:ro" for folder, place in folders.items()),
            *("--entrypoint", self.container["command"][0], IMAGE, *self.container["command"][1:]),
        ]
        return arguments, {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def run(self, command: str) -> str:
        """Run a command in the container; give what it printed, errors too."""
        return podman("exec", self.name, *shlex.split(command), check=False)


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * BYTES[quantity[-2:]]
