"""`kubectl lablet login` where there is a Lab Delivery System: the whole URL for who has the right, for nobody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.plugin import lablet, succeeded
from tests.support.topologies import definition, pod
from tests.support.waiting import until
from vkpsandbox import Sandbox

LOGIN_URL = "vkprovider.io/lds-login-url"


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sandbox of its own with a simulated LDS."""
    directory: Path = tmp_path_factory.mktemp("login")
    args = (("--boot-seconds=0.3-1",),)
    with Sandbox.up("login", directory=directory, workers=1, worker_args=args, lds=True, tied=True) as made:
        yield Cluster(made)


def test_whole_url_is_for_who_may_log_in(delivered: Cluster) -> None:
    cluster = delivered
    cluster.define(definition("login"))
    cluster.apply(pod("mine", "login"))
    cluster.wait_ready("default", 1)
    succeeded(cluster, "assign", "mine", "alice")
    until(lambda: ((cluster.pod("default", "mine") or {})["metadata"]["annotations"]).get(LOGIN_URL), 60)
    tokens = {}
    for name, role in (("reader", "edit"), ("portal", "vkprovider-login")):
        cluster.kubectl("create", "serviceaccount", name)
        cluster.kubectl("create", "rolebinding", name, f"--clusterrole={role}", f"--serviceaccount=default:{name}")
        tokens[name] = cluster.kubectl("create", "token", name, "--audience=vkprovider.io").stdout.strip()
    uid = (cluster.pod("default", "mine") or {})["metadata"]["uid"]
    shown = (cluster.pod("default", "mine") or {})["metadata"]["annotations"][LOGIN_URL]
    for name in ("mine", uid):
        whole = succeeded(
            cluster, "login", name, f"--url={cluster.provider_url}", f"--token={tokens['portal']}"
        ).strip()
        assert whole.startswith(f"{shown}?"), "what the Pod shows has no query"
        assert len(whole) > len(shown) + 10
    refused = lablet(cluster, "login", "mine", f"--url={cluster.provider_url}", f"--token={tokens['reader']}")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "may not get lablets.vkprovider.io/login of the Pod" in refused.stderr
