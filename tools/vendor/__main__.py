"""`python -m tools.vendor`: see the package."""

import subprocess
import sys
from collections.abc import Sequence

from tools.vendor.fetching import Tampered, fetch
from tools.vendor.packages import FOLDER, ROOT, faults, read


def main(arguments: Sequence[str]) -> int:
    """Fetch the files, unless the argument is `--check`, and say what of them is not as the list says."""
    packages = read()
    if list(arguments) != ["--check"]:
        try:
            fetch(packages, FOLDER)
        except (Tampered, subprocess.CalledProcessError, OSError) as error:
            print(error)
            return 1
    found = faults(packages)
    for fault in found:
        print(f"{FOLDER.relative_to(ROOT)}/{fault}")
    if not found:
        print(f"{sum(len(each.served) for each in packages)} vendored files are as the list says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
