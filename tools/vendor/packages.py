"""Which files of which packages of npm the site serves."""

import hashlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path(__file__).with_name("packages.toml")
FOLDER: Final = ROOT / "vkprovider" / "portal" / "web" / "static" / "vendor"
LICENSES: Final = "LICENSES.txt"


class VendoredFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a package.

    Attributes:
        to: Its name here.
        sha256: Of its bytes.
    """

    to: str
    sha256: str


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package of npm.

    Attributes:
        name: `@xterm/xterm`.
        version: An exact one.
        license: Its SPDX identifier.
        integrity: Of the whole package, as npm has it: `sha512-…`.
        files: Those that are served, by their paths in the package.
        bundles: Modules that are served as one file with all that they import, by their paths in the package.
        licenses: Where the package has its license.
    """

    name: str
    version: str
    license: str
    integrity: str
    files: dict[str, VendoredFile] = {}
    bundles: dict[str, VendoredFile] = {}
    licenses: tuple[str, ...] = ("LICENSE",)

    @property
    def served(self) -> list[VendoredFile]:
        """The files that the site serves of it."""
        return [*self.files.values(), *self.bundles.values()]


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    package: list[Package]


def read(path: Path = LIST) -> list[Package]:
    """Read the list."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _List).package


def faults(packages: Sequence[Package], folder: Path = FOLDER) -> list[str]:
    """Return what is not as the list says, a sentence each."""
    wanted = {file.to: file.sha256 for package in packages for file in package.served}
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    said = [f"{name} is missing" for name in sorted({*wanted, LICENSES} - found)]
    said += [f"{name} is in no package of the list" for name in sorted(found - {*wanted, LICENSES})]
    for name in sorted(found & set(wanted)):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if digest != wanted[name]:
            said.append(f"{name} has the hash {digest}, and not the one of the list")
    licenses = (folder / LICENSES).read_text(encoding="utf-8") if LICENSES in found else ""
    said += [f"{LICENSES} lacks {title(each)}" for each in packages if title(each) not in licenses.splitlines()]
    return said


def title(package: Package) -> str:
    """Return the line before the license of a package."""
    return f"{package.name} {package.version} ({package.license})"
