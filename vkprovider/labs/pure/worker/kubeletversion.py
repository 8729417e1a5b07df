"""The version of a kubelet that a Node claims: the API server's, so that it is neither newer nor too old.

No kubelet may be newer than its API server, and upgrades refuse one that is more than three releases older
(https://kubernetes.io/releases/version-skew-policy). Programs read it as a semantic version, with or without a suffix.
"""

import re
from typing import Final

KUBERNETES_OLDEST: Final = (1, 30)
"""The oldest supported release."""
_SUFFIX: Final = "-vkprovider"
_RELEASE: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


def kubelet_version(server: str) -> str:
    """Return the version for an API server of a version such as `v1.33.5+k3s1`; the oldest where it has none.

    >>> kubelet_version("v1.33.5-eks-3cfe0ce")
    'v1.33.5-vkprovider'
    """
    found = _RELEASE.match(server)
    release = found[1] if found else ".".join(map(str, (*KUBERNETES_OLDEST, 0)))
    return f"v{release}{_SUFFIX}"
