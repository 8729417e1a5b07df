"""The sandbox of all tests with an LDS."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import SETTINGS
from tests.support.cluster import Cluster
from tests.support.lds import LdsSide
from tests.support.sandboxes import started
from tests.support.topologies import definition, topology
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.tunnels import Tunnel

CHECKS = [{"item": "task-1", "matches": "router ospf"}]
"""What a learner must answer to pass."""


@pytest.fixture(scope="package")
def deployments_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the provider looks for several deployments of the LDS; as long as there is no file, it has one."""
    return tmp_path_factory.mktemp("lds") / "lds_deployments.yaml"


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory, deployments_file: Path, tunnel: Tunnel) -> Iterator[Sandbox]:
    """One worker, an LDS that grades by what the learner answered, two replicas that its events go to in turn.

    Routers (`csr1000v`) never boot.
    """
    checks = deployments_file.with_name("checks.json")
    checks.write_text(json.dumps(CHECKS))
    with started(
        "sessions",
        tmp_path_factory.mktemp("sandbox"),
        workers=1,
        replicas=2,
        lds=True,
        lds_args=["--grade=checks", f"--grade-checks={checks}", "--grade-seconds=1"],
        provider_env={
            **SETTINGS,
            "LAB_START_TIMEOUT": "20",  # here tests wait for it
            "LDS_DEPLOYMENTS_CONFIG": str(deployments_file),
            "LDS_SELECTION_STRATEGY": "priority",
        },
        worker_args=[("--boot-seconds=0.3-1", "--boot=csr1000v=86400")],
        tunnel=tunnel,
    ) as made:
        yield made


class Strays(NamedTuple):
    """Sessions that no lablet has, by id: one with our mark, and those of others."""

    ours: str
    foreign: list[str]


@pytest.fixture(scope="package", autouse=True)
def strays(sandbox: Sandbox) -> Strays:
    """Sessions that are older than a minute when the last test looks at them."""
    assert sandbox.lds is not None
    lds = LdsSide(sandbox.lds)
    body = {
        "username": "eve",
        "timeslot_start": "2026-01-01T00:00:00Z",
        "timeslot_end": "2036-01-01T00:00:00Z",
        "form_qualified_name": "netlab",
    }
    uid = Cluster(sandbox).request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
    owners: list[dict[str, str]] = [
        {"owner": f"vkprovider installation={uid}", "client_key": "nobody"},
        {},
        {"owner": "somebody-else", "client_key": "theirs"},
    ]
    ours, *foreign = [str(lds.api("POST", "/sessions", body | owner)["id"]) for owner in owners]
    return Strays(ours, foreign)


@pytest.fixture
def kind(cluster: Cluster, namespace: str) -> str:
    """A definition of one host with a console."""
    name = f"one-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine"}, {"h0": ["serial:5001"]})))
    return name
