"""The version that Nodes claim."""

import re

import pytest

from vkprovider.labs.pure.worker.endpoint import kubelet_version

SEMANTIC = re.compile(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
"""As kubeadm, Helm and Cluster API read it (semver.org)."""
RELEASE = re.compile(r"(v[0-9]*.[0-9]*).*")
"""As the stock alert KubeVersionMismatch groups versions."""


@pytest.mark.parametrize(
    ("server", "claimed"),
    [
        ("v1.33.13", "v1.33.13-vkprovider"),
        ("v1.36.3+k3s1", "v1.36.3-vkprovider"),
        ("v1.32.9-gke.1010000", "v1.32.9-vkprovider"),
        ("v1.31.4-eks-2d5f260", "v1.31.4-vkprovider"),
        ("v1.37.0-alpha.1.22+abcdef", "v1.37.0-vkprovider"),
        ("1.30.0", "v1.30.0-vkprovider"),
        ("", "v1.30.0-vkprovider"),
        ("nightly", "v1.30.0-vkprovider"),
    ],
)
def test_a_node_claims_the_version_of_the_api_server(server: str, claimed: str) -> None:
    found = kubelet_version(server)
    assert found == claimed
    assert SEMANTIC.fullmatch(found)
    if server.startswith("v"):
        mine, theirs = RELEASE.fullmatch(found), RELEASE.fullmatch(server)
        assert mine
        assert theirs
        assert mine[1] == theirs[1], "no mismatch for the stock alert"
