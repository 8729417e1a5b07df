"""Several deployments of the LDS in a file that the provider's processes read again: which one gets a session."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.sessions import NOTE, learner, state, wait_state
from tests.cluster.test_lablets_life import made
from tests.support import docs
from tests.support.cluster import Cluster, container, waiting_reason
from tests.support.lds import LdsSide
from tests.support.topologies import definition
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.processes.record import Lds

pytestmark = pytest.mark.tunnelled


@contextmanager
def simulator(token: str) -> Iterator[LdsSide]:
    """An LDS as a process of the test."""
    command = [sys.executable, "-P", "-m", "vkprovider", "sim", "lds", "--listen=127.0.0.1:0"]
    environ = os.environ | {"VKPROVIDER_SIM_LDS_TOKEN": token, "PYTHONPATH": str(docs.ROOT)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)  # noqa: S603 (ours)
    try:
        assert process.stdout
        line = process.stdout.readline()
        yield LdsSide(Lds(line.split()[-1], token, "", ""))
    finally:
        process.terminate()
        process.communicate(timeout=10)


class Deployments:
    """The file that names them: `east` before `west`."""

    def __init__(self, path: Path, sandbox: Sandbox, **sides: LdsSide) -> None:
        self.path = path
        self.sides = sides
        self._logs = [sandbox.layout.log(f"provider-{number}") for number in (1, 2)]

    def write(self, **changed: dict[str, Any]) -> None:
        """Configure them anew: `write(east={"enabled": False})`, and wait until all replicas have read it."""
        entries: list[dict[str, Any]] = [
            {"id": name, "base_url": side.lds.url, "capacity": 100, "priority": number}
            for number, (name, side) in enumerate(self.sides.items(), 1)
        ]
        self.put([entry | changed.get(entry["id"], {}) for entry in entries])

    def put(self, entries: list[dict[str, Any]]) -> None:
        """Write the file, and wait until all replicas have read it."""
        text, before = yaml.safe_dump({"lds_deployments": entries}), self._reloads()
        if self.path.exists() and self.path.read_text() == text:
            return
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)
        until(lambda: all(map(int.__gt__, self._reloads(), before)), 45, "the file is not read again")

    def _reloads(self) -> list[int]:
        return [log.read_text().count("lds deployments reloaded") for log in self._logs]

    def live(self) -> dict[str, int]:
        """How many live sessions each has."""
        return {name: sum(one["state"] != "ARCHIVED" for one in side.sessions()) for name, side in self.sides.items()}


@pytest.fixture(scope="module")
def configured(sandbox: Sandbox, deployments_file: Path) -> Iterator[Deployments]:
    """Two instead of the sandbox's own, which is the only one again at the end."""
    assert sandbox.lds is not None
    with simulator(sandbox.lds.token) as east, simulator(sandbox.lds.token) as west:
        deployments = Deployments(deployments_file, sandbox, east=east, west=west)
        deployments.write()
        yield deployments
        deployments.put([{"id": "default", "base_url": sandbox.lds.url, "capacity": 1000}])


@pytest.fixture
def deployments(configured: Deployments) -> Iterator[Deployments]:
    yield configured
    for side in configured.sides.values():
        side.clear_faults()
    configured.write()


def base_url(found: dict[str, Any]) -> str:
    return str(found["metadata"]["annotations"][f"{NOTE}lds-base-url"])


def test_affinity_then_priority(cluster: Cluster, deployments: Deployments, namespace: str) -> None:
    """R000-094 to R000-097: the definition's wish, if it can be met; else the lowest number that has room."""
    near, far = f"near-{namespace[-5:]}", f"far-{namespace[-5:]}"
    cluster.define(definition(near), definition(far, lds={"affinity": "west"}))
    cluster.apply(learner("near", near), learner("far", far), namespace=namespace)
    east, west = (deployments.sides[name].lds.url for name in ("east", "west"))
    assert base_url(wait_state(cluster, namespace, "near", "READY")) == east
    assert base_url(wait_state(cluster, namespace, "far", "READY")) == west
    deployments.write(east={"capacity": 1}, west={"enabled": False})
    cluster.apply(learner("waits", far), namespace=namespace)
    until(lambda: waiting_reason(made(cluster, namespace, "waits")) == "NoLDSDeployment", 60)
    assert {state(made(cluster, namespace, name)) for name in ("near", "far")} == {"READY"}, "they go on"
    deployments.write(west={"enabled": False})
    assert base_url(wait_state(cluster, namespace, "waits", "READY")) == east
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--timeout=30s")
    assert deployments.live() == {"east": 0, "west": 0}


def test_full_and_disabled_deployments_are_named(cluster: Cluster, deployments: Deployments, namespace: str) -> None:
    """R000-096, R000-098: the lablet waits and says for what; one that has ended makes room at once."""
    name = f"any-{namespace[-5:]}"
    cluster.define(definition(name))
    deployments.write(east={"capacity": 1}, west={"enabled": False})
    cluster.apply(learner("has", name), namespace=namespace)
    wait_state(cluster, namespace, "has", "READY")
    cluster.apply(learner("waits", name), namespace=namespace)
    until(lambda: waiting_reason(made(cluster, namespace, "waits")) == "NoLDSDeployment", 60)
    text = (
        "no LDS deployment can take a session: east is full (1 of 1 session); west is disabled. enable one, raise its "
        "capacity, or add one in lds_deployments; or wait until sessions end"
    )
    waits = made(cluster, namespace, "waits")
    assert container(waits)["state"]["waiting"] == {"reason": "NoLDSDeployment", "message": text}
    assert waits["status"]["phase"] == "Pending"
    until(lambda: [e["message"] for e in cluster.events(namespace, "waits") if e["reason"] == "NoLDSDeployment"], 30)
    assert deployments.live() == {"east": 1, "west": 0}
    cluster.kubectl("delete", "pod", "has", f"--namespace={namespace}", "--timeout=60s")
    wait_state(cluster, namespace, "waits", "READY")
    assert deployments.live() == {"east": 1, "west": 0}


def test_failing_deployment_is_avoided(cluster: Cluster, deployments: Deployments, namespace: str) -> None:
    """It says that it is full, whatever we counted: the session goes to the other one, and there is one."""
    name = f"any-{namespace[-5:]}"
    cluster.define(definition(name))
    east, west = (deployments.sides[which] for which in ("east", "west"))
    east.admin("PUT", "/capacity", {"capacity": 0})
    try:
        since = max((one["number"] for one in east.access_log()), default=0)
        cluster.apply(learner("moves", name), namespace=namespace)
        assert base_url(wait_state(cluster, namespace, "moves", "READY")) == west.lds.url
        assert 503 in {one["status"] for one in east.access_log(since)}, "the fault was met"
        assert deployments.live() == {"east": 0, "west": 1}
    finally:
        east.admin("PUT", "/capacity", {"capacity": 1000})
