"""The krew manifest of a release: `python -m tools.krew ARCHIVE URL` prints it.

ARCHIVE is `dist/kubectl-lablet-VERSION.tar.gz` of `make plugin`; URL is the folder from which users will download it.
"""

import hashlib
import re
import sys
from pathlib import Path
from typing import Final

from tools.helm.chart import semver
from vkprovider import __version__

MANIFEST: Final = Path(__file__).parents[1] / "manifests" / "krew" / "lablet.yaml"


def archive_name() -> str:
    """Return the archive's name of this version."""
    return f"kubectl-lablet-{__version__}.tar.gz"


def filled(text: str, url: str, digest: str) -> str:
    """Return the manifest's text with this version, and the address and the digest of its archive."""
    text = re.sub(r"(?m)^( +version: ).*$", rf"\g<1>v{semver(__version__)}", text)
    text = re.sub(r"(?m)^( +uri: ).*$", rf"\g<1>{url.rstrip('/')}/{archive_name()}", text)
    return re.sub(r"(?m)^( +sha256: ).*$", rf'\g<1>"{digest}"', text)


def main(arguments: list[str]) -> int:
    """Print the manifest; return the exit code."""
    if len(arguments) != 2:  # noqa: PLR2004 (ARCHIVE and URL)
        print(__doc__, file=sys.stderr)
        return 2
    archive, url = Path(arguments[0]), arguments[1]
    if archive.name != archive_name():
        print(f"{archive} is not the archive of version {__version__}, {archive_name()}: make plugin", file=sys.stderr)
        return 1
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    print(filled(MANIFEST.read_text(), url, digest), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
