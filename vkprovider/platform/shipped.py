"""Files that ship with vkprovider beside its code."""

from pathlib import Path

import vkprovider
from vkprovider.platform.errors import VkproviderError


def find_manifests() -> Path:
    """Return the directory of our manifests: of the checkout, or shipped in the package.

    Raises:
        VkproviderError: Neither holds the kustomizations `crds` and `base`.
    """
    package = Path(vkprovider.__file__).parent
    places = [package.parent / "manifests", package / "manifests"]
    for place in places:
        if all((place / part / "kustomization.yaml").is_file() for part in ("crds", "base")):
            return place
    raise VkproviderError(
        f"no manifests (crds/kustomization.yaml and base/kustomization.yaml) in {' or '.join(map(str, places))}: "
        "reinstall vkprovider; a sandbox with `--workers 0 --no-provider` does without"
    )


def manifest(path: str) -> str:
    """Return the text of a shipped manifest.

    Args:
        path: Below the directory of our manifests, such as `base/roles.yaml`.

    Raises:
        VkproviderError: It cannot be read.
    """
    try:
        return (find_manifests() / path).read_text(encoding="utf-8")
    except OSError as error:
        raise VkproviderError(str(error)) from None
