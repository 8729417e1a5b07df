"""A real HAProxy, a relay beside it with the rights of its manifest, and a real API server."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.apiserver import Admin, ApiServer
from tests.support.relay import MuxObjects, RelaySide, haproxy_or_skip
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.processes.ports import free_range

NAMESPACE = "vkprovider-relay"
PORTS = 40


def install(server: ApiServer) -> None:
    """Apply what the relay needs to run: its namespace, its account and its rights."""
    for name in ("namespace.yaml", "rbac.yaml"):
        server.kubectl("apply", "-f", str(find_manifests() / "components" / "relay" / name))


def kubeconfig_of(server: ApiServer, path: Path) -> Path:
    """Write the credentials of the relay's ServiceAccount; return the path."""
    token = server.kubectl("create", "token", "vkprovider-relay", f"--namespace={NAMESPACE}").strip()
    write_kubeconfig(path, name="relay", cluster=read_cluster(server.kubeconfig), user={"token": token})
    return path


@pytest.fixture(scope="session")
def relay_server(apiserver: ApiServer) -> ApiServer:
    """The API server, with the rights of the relay."""
    haproxy_or_skip()
    install(apiserver)
    return apiserver


@pytest.fixture(scope="session")
def kubeconfig(relay_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The credentials of the relay's ServiceAccount."""
    return kubeconfig_of(relay_server, tmp_path_factory.mktemp("kubeconfig") / "relay")


@pytest.fixture
async def mux(relay_server: ApiServer) -> AsyncIterator[MuxObjects]:
    """The mux of a test; at its end it is gone."""
    async with Admin(relay_server) as admin:
        objects = MuxObjects(admin)
        yield objects
        await objects.wipe()


@pytest.fixture
def side(kubeconfig: Path, tmp_path: Path) -> Iterator[RelaySide]:
    """An HAProxy and a relay, not started yet."""
    side = RelaySide(tmp_path, kubeconfig, free_range(PORTS))
    yield side
    side.end()
