"""metrics-server reads our kubelet API, and `kubectl top` shows what devices use.

Its program takes minutes to build, so that this runs only where `VKPROVIDER_METRICS_SERVER` names one:
`GOBIN=DIRECTORY go install sigs.k8s.io/metrics-server/cmd/metrics-server@v0.8.0`.
"""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.component.controllers.consolesite import open_site
from tests.component.controllers.harness import World
from tests.component.kubelet.kubectl import Kubectl
from tests.support.apiserver import ApiServer, until

PROGRAM = os.environ.get("VKPROVIDER_METRICS_SERVER", "")
GROUP = "/apis/apiregistration.k8s.io/v1/apiservices"
SERVICES = "/api/v1/namespaces/kube-system/services"

pytestmark = pytest.mark.skipif(
    not shutil.which(PROGRAM or "/none"), reason="VKPROVIDER_METRICS_SERVER names no program"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@asynccontextmanager
async def metrics_server(server: ApiServer, world: World, directory: Path) -> AsyncIterator[None]:
    """Run metrics-server as its manifest does, registered by a Service that names this host."""
    port = free_port()
    flags = (
        f"--kubeconfig={server.kubeconfig}",
        f"--authentication-kubeconfig={server.kubeconfig}",
        f"--authorization-kubeconfig={server.kubeconfig}",
        f"--secure-port={port}",
        f"--cert-dir={directory}",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        "--kubelet-use-node-status-port",
        "--kubelet-insecure-tls",
        "--kubelet-request-timeout=5s",
        "--metric-resolution=10s",
    )
    log = (directory / "metrics-server.log").open("wb")
    process = await asyncio.create_subprocess_exec(PROGRAM, *flags, stdout=log, stderr=log)
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await world.admin.create(SERVICES, {"metadata": {"name": "metrics-server"}, "spec": spec})
    service = {"name": "metrics-server", "namespace": "kube-system", "port": port}
    registered = {
        "service": service,
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    await world.admin.create(GROUP, {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": registered})
    try:
        yield
    finally:
        await world.admin.delete(f"{GROUP}/v1beta1.metrics.k8s.io")
        await world.admin.delete(f"{SERVICES}/metrics-server")
        process.terminate()
        await process.wait()
        log.close()


@pytest.mark.timeout(300)
async def test_kubectl_top_shows_devices(world: World, apiserver: ApiServer, tmp_path: Path) -> None:
    site = await open_site(world)
    async with AsyncExitStack() as stack:
        kubectl = await stack.enter_async_context(Kubectl(apiserver.kubeconfig, world.namespace, tmp_path))
        await stack.enter_async_context(metrics_server(apiserver, world, tmp_path))

        async def pods() -> str:
            code, out, _ = await kubectl("top", "pod", "--containers", "--no-headers")
            return out if code == 0 and "r1" in out else ""

        async def nodes() -> str:
            code, out, _ = await kubectl("top", "node", f"vnode.{site.worker}", "--no-headers")
            return out if code == 0 else ""

        shown = await until(pods, 150)
        found = {line.split()[1]: line.split()[2:] for line in shown.splitlines()}
        assert {"lab", "r1", "h0"} <= found.keys()
        for cpu, memory in found.values():
            assert re.fullmatch(r"\d+m", cpu)
            assert re.fullmatch(r"\d+Mi", memory)
        assert int(found["r1"][1].removesuffix("Mi")) >= 1
        shown += await until(nodes, 60)
        print(shown)  # noqa: T201 (what a user sees)
        name, cpu, share, memory, memory_share = shown.splitlines()[-1].split()
        assert name == f"vnode.{site.worker}"
        assert re.fullmatch(r"\d+m \d+% \d+Mi \d+%", f"{cpu} {share} {memory} {memory_share}")
