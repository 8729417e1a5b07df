"""Modules of the repository as text and tree, in the working tree or at a revision; nothing is imported or run."""

import ast
import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("vkprovider/", "tunnels/", "vkpsim/", "vkpsandbox/", "tools/")


@dataclass(frozen=True)
class Module:
    """One module: its path below the checkout, its text, and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Count its lines, empty ones included."""
        return len(self.text.splitlines())

    @property
    def package(self) -> str:
        """Return the part of the repository that it belongs to."""
        top = self.path.partition("/")[0]
        return "product" if top in {"vkprovider", "tunnels"} else top


def read_tree(revision: str | None) -> list[Module]:
    """Parse every module of the packages, in the working tree or at a revision.

    Raises:
        subprocess.CalledProcessError: git does not know the revision.
    """
    texts = _read_revision(revision) if revision else _read_working_tree()
    return [Module(path, text, ast.parse(text, path)) for path, text in sorted(texts.items())]


def archive(revision: str) -> tarfile.TarFile:
    """Open all files of a revision.

    Raises:
        subprocess.CalledProcessError: git does not know the revision.
    """
    return tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", revision)))


def _read_working_tree() -> dict[str, str]:
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "--", *PACKAGES).decode().splitlines()
    paths = [path for path in listed if path.endswith(".py") and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


def _read_revision(revision: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    with archive(revision) as files:
        for member in files:
            if member.isfile() and member.name.startswith(PACKAGES) and member.name.endswith(".py"):
                content = files.extractfile(member)
                if content is not None:
                    texts[member.name] = content.read().decode()
    return texts


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, check=True).stdout  # noqa: S603, S607 (git of the checkout)
