"""A user's lab on a cluster with all its controllers: asked for by HTTP, booted in CML, deleted (C43, C46)."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import topologies
from tests.support.cluster import Cluster, is_ready
from tests.support.waiting import until
from vkprovider.shipped import find_manifests
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.processes.ports import free_ports

ACCOUNT: Final = "vkprovider-portal"
SYSTEM: Final = "vkprovider-system"
ROUTES: Final = "/nublado/spawner/v1"
WRITES: Final = {"create", "update", "patch", "delete"}
RSS_KB_MAX: Final = 150_000


class Portal:
    """The portal as a process, with the rights of its ServiceAccount."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process = process
        self._port = port

    def ask(self, method: str, path: str, token: str, body: object = None) -> tuple[int, Any]:
        """Send one request; return status and answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request(method, ROUTES + path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    def ready(self) -> bool:
        """Return whether it serves."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    @property
    def rss_kb(self) -> int:
        """Its resident memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", text)
        assert found
        return int(found[1])


@contextmanager
def portal(cluster: Cluster, folder: Path, **env: str) -> Iterator[Portal]:
    """Install the portal, and run one replica of it beside the cluster."""
    for name in ("rbac.yaml", "roles.yaml", "confine.yaml", "mark.yaml"):
        path = str(find_manifests() / "components" / "portal" / name)
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={SYSTEM}", "--duration=2h").stdout.strip()
    kubeconfig = folder / "portal.kubeconfig"
    write_kubeconfig(kubeconfig, name="portal", cluster=read_cluster(cluster.sandbox.kubeconfig), user={"token": token})
    [port] = free_ports(1)
    settings = {"KUBECONFIG": str(kubeconfig), "VKPROVIDER_HTTP_HOST": "127.0.0.1", "VKPROVIDER_HTTP_PORT": str(port)}
    log = folder / "portal.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 (the command of its Deployment)
            [str(Path(sys.executable).with_name("vkprovider")), "portal"],
            env={**os.environ, **settings, **env},
            stdout=output,
            stderr=output,
        )
    running = Portal(process, port)
    try:
        until(running.ready, 60, f"the portal is not ready: {log.read_text()[-2000:]}")
        yield running
    except AssertionError as error:
        error.add_note(log.read_text()[-4000:])
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def account(cluster: Cluster, namespace: str, name: str, role: str) -> str:
    """Make a ServiceAccount with a role of the portal; return a token of it."""
    cluster.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
    cluster.kubectl(
        *("create", "rolebinding", f"{namespace}-{name}", f"--namespace={SYSTEM}"),
        *(f"--clusterrole={role}", f"--serviceaccount={namespace}:{name}"),
    )
    cluster.delete_later("rolebinding", f"{namespace}-{name}", f"--namespace={SYSTEM}")
    return cluster.kubectl("create", "token", name, f"--namespace={namespace}").stdout.strip()


def written(cluster: Cluster, since: int) -> list[str]:
    """Return what the account of the portal wrote, as `VERB path`, from a byte of the audit log on."""
    lines = cluster.sandbox.layout.audit_log.read_bytes()[since:].splitlines()
    found = []
    for event in map(json.loads, filter(None, lines)):
        path = event["requestURI"].partition("?")[0]
        ours = event["user"]["username"] == f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
        of_member = "-replica-" in path or "reviews" in path
        if ours and event["verb"] in WRITES and event["stage"] == "ResponseComplete" and not of_member:
            found.append(f"{event['verb']} {path}")
    return found


@pytest.fixture
def definition(cluster: Cluster) -> str:
    """A definition on the menu."""
    body = topologies.definition("portal-lab", topologies.topology({"h0": "alpine"}))
    body["metadata"]["labels"] = {"vkprovider.io/family": "portal", "vkprovider.io/size": "small"}
    cluster.define(body)
    return "portal:1.0.0"


def test_a_lab_is_asked_for_booted_and_deleted(
    cluster: Cluster, namespace: str, definition: str, tmp_path: Path
) -> None:
    user = f"system:serviceaccount:{namespace}:alice"
    with portal(cluster, tmp_path, VKPROVIDER_PORTAL_USERNAME_PREFIX=f"system:serviceaccount:{namespace}:") as running:
        alice = account(cluster, namespace, "alice", "vkprovider-portal-user")
        hub = account(cluster, namespace, "hub", "vkprovider-portal-hub")
        before = cluster.sandbox.layout.audit_log.stat().st_size
        since = {worker.name: worker.last_request() for worker in cluster.workers}
        body = {"options": {"image_list": [definition], "size": ["small"]}, "env": {"HUB_TOKEN": "hush"}}

        def asked() -> bool:
            status, answer = running.ask("POST", "/labs/alice/create", alice, body)
            assert status in {303, 403}, (status, answer)  # roles take a moment
            return status == 303

        until(asked, 30)
        until(lambda: running.ask("GET", "/labs/alice", hub)[1]["status"] == "running", 60)
        [pod] = cluster.pods("nublado-alice")
        assert is_ready(pod)
        lab = cluster.lab_of(pod)
        assert lab is not None
        assert lab["state"] == "STARTED"
        made = written(cluster, before)
        after = [line for line in made if line.startswith(("patch /api/v1/namespaces/", "delete "))]
        assert len(after) == 2, made  # the record of the end, and the lock, which are written when the lab is ready
        assert len(made) - len(after) <= 8, made
        assert running.ask("GET", "/labs", hub) == (200, ["alice"])
        assert cluster.kubectl("get", "pods", "-n", "nublado-alice", f"--as={user}").returncode == 0
        refused = cluster.kubectl("delete", "pod", "nb-alice", "-n", "nublado-alice", f"--as={user}", check=False)
        assert "cannot delete" in refused.stderr
        other = cluster.kubectl("get", "pods", "-n", SYSTEM, f"--as={user}", check=False)
        assert "cannot list" in other.stderr
        assert running.rss_kb <= RSS_KB_MAX

        assert running.ask("DELETE", "/labs/alice", hub)[0] == 202
        until(lambda: cluster.get("/api/v1/namespaces/nublado-alice") is None, 60, "the namespace stays")
        assert running.ask("GET", "/labs/alice", hub)[0] == 404
        assert cluster.lab_of(pod) is None
        imports = [
            entry
            for worker in cluster.workers
            for entry in worker.access_log(since[worker.name])
            if entry["method"] == "POST" and "/import" in entry["path"]
        ]
        assert len(imports) == 1, imports
