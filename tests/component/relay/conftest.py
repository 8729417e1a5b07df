"""A real HAProxy, a relay beside it with the rights of its manifest, and a real API server with an audit log."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import apiserver as real
from tests.support.apiserver import Admin, ApiServer
from tests.support.relay import MuxObjects, RelaySide, haproxy_or_skip
from vkprovider.shipped import find_manifests
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.processes.ports import free_range

NAMESPACE = "vkprovider-relay"
PORTS = 40


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API server of these tests alone, where the relay is the only program."""
    haproxy_or_skip()
    with real.running(tmp_path_factory.mktemp("relay-api"), audit=True) as server:
        folder = find_manifests() / "components" / "relay"
        for name in ("namespace.yaml", "rbac.yaml"):
            server.kubectl("apply", "-f", str(folder / name))
        yield server


@pytest.fixture(scope="session")
def kubeconfig(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The credentials of the relay's ServiceAccount."""
    token = apiserver.kubectl("create", "token", "vkprovider-relay", f"--namespace={NAMESPACE}").strip()
    path = tmp_path_factory.mktemp("kubeconfig") / "relay"
    write_kubeconfig(path, name="relay", cluster=read_cluster(apiserver.kubeconfig), user={"token": token})
    return path


@pytest.fixture
async def mux(apiserver: ApiServer) -> AsyncIterator[MuxObjects]:
    """The mux of a test; at its end it is gone."""
    async with Admin(apiserver) as admin:
        objects = MuxObjects(admin)
        yield objects
        await objects.wipe()


@pytest.fixture
def side(kubeconfig: Path, tmp_path: Path) -> Iterator[RelaySide]:
    """An HAProxy and a relay, not started yet."""
    side = RelaySide(tmp_path, kubeconfig, free_range(PORTS))
    yield side
    side.end()


@pytest.fixture
def rules() -> list[dict[str, list[str]]]:
    """What the manifest grants."""
    text = (find_manifests() / "components" / "relay" / "rbac.yaml").read_text()
    [role] = [item for item in yaml.safe_load_all(text) if item["kind"] == "Role"]
    found: list[dict[str, list[str]]] = role["rules"]
    return found
