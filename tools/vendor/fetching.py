"""Packages of npm, held against their hashes before anything of them is used."""

import base64
import hashlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.vendor.packages import LICENSES, Package, title

BUNDLER: Final = "esbuild@0.25.12"
"""What makes one file of the modules of a package; `make check` has the hash of what it makes."""


class Tampered(Exception):  # noqa: N818 (reads well where it is raised)
    """A package is not the one of the list."""


def fetch(packages: Sequence[Package], folder: Path) -> None:
    """Write the files of packages, with their licenses, into a folder that has nothing else.

    Raises:
        Tampered: A package is another one than the list says.
        subprocess.CalledProcessError: npm cannot get one, and has said why.
    """
    licenses: list[str] = []
    written: dict[str, bytes] = {}
    for package in packages:
        content = _checked(package, _packed(package))
        written |= {file.to: content[f"package/{path}"] for path, file in package.files.items()}
        written |= {file.to: _bundled(content, path) for path, file in package.bundles.items()}
        texts = [content[f"package/{path}"].decode().strip() for path in package.licenses]
        licenses.append("\n\n".join([title(package), *texts]) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, body in written.items():
        (folder / name).write_bytes(body)
    (folder / LICENSES).write_text("\n\n".join(licenses), encoding="utf-8")


def _packed(package: Package) -> bytes:
    """Return a package as npm gets it; nothing of it is run."""
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]
        subprocess.run(command, cwd=place, check=True, timeout=120, stdout=subprocess.DEVNULL)  # noqa: S603 (ours)
        return next(Path(place).glob("*.tgz")).read_bytes()


def _bundled(content: Mapping[str, bytes], module: str) -> bytes:
    """Return a module of a package with all that it imports, as one that imports nothing; nothing of it is run.

    Args:
        content: The files of the package.
        module: Its path in the package.
    """
    with tempfile.TemporaryDirectory() as place:
        for name, body in content.items():
            path = Path(place, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        bundle = Path(place, "bundle.js")
        words = ["--bundle", "--format=esm", "--charset=utf8", "--log-level=warning", f"--outfile={bundle}"]
        command = ["npm", "exec", "--yes", "--ignore-scripts", f"--package={BUNDLER}", "--", "esbuild"]
        subprocess.run([*command, f"package/{module}", *words], cwd=place, check=True, timeout=120)  # noqa: S603 (ours)
        return bundle.read_bytes()


def _checked(package: Package, packed: bytes) -> dict[str, bytes]:
    """Return the files of a package by their paths.

    Raises:
        Tampered: It is another package.
    """
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if integrity != package.integrity:
        raise Tampered(f"{package.name}@{package.version} is {integrity}, and the list says {package.integrity}")
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        files = (member for member in archive.getmembers() if member.isfile())
        return {member.name: file.read() for member in files if (file := archive.extractfile(member)) is not None}
