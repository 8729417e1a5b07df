"""A program as a Pod runs it: with the packages of the image alone, and with a ServiceAccount.

What the development environment has beside these would count: structlog imports `rich` where there is one, 3.5 MB; and
so would the library that reads kubeconfigs, 40 MB.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.figures import BUILD, ROOT
from vkprovider.platform.kube.http.auth import SERVICE_ACCOUNT


def in_pod(
    argv: Sequence[str], folder: Path, url: str, authority: Path, token: str
) -> tuple[list[str], dict[str, str | None]]:
    """Return the command line of a program as a Pod runs it, and what to change in its environment.

    The files of the ServiceAccount are mounted in a namespace of the program's own, which takes root.

    Args:
        argv: The command line, of an interpreter.
        folder: For the files of the ServiceAccount.
        url: The API server's.
        authority: The file of the certificate that it is known by.
        token: The ServiceAccount's.
    """
    account = folder / "account"
    account.mkdir(mode=0o700)
    (account / "token").write_text(token)
    (account / "ca.crt").write_bytes(authority.read_bytes())
    place = urlsplit(url)
    env = {
        "KUBECONFIG": None,
        "KUBERNETES_SERVICE_HOST": str(place.hostname),
        "KUBERNETES_SERVICE_PORT": str(place.port),
        "PYTHONPATH": str(ROOT),
    }
    mount = f'mount -t tmpfs tmpfs /run && mkdir -p {SERVICE_ACCOUNT} && cp "$0"/* {SERVICE_ACCOUNT} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, str(account), _python(), *argv[1:]], env


def _python() -> str:
    """Return an interpreter with the packages of the image."""
    folder = BUILD / "image"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603 (our own program)
    install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
    subprocess.run([folder / "bin" / "python", *install], check=True)  # noqa: S603 (as above)
    return str(folder / "bin" / "python")
