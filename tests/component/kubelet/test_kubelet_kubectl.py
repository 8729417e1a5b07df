"""kubectl through a stock API server: options of logs, users without rights, a Node that changes hands, a crowd."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Running
from tests.component.kubelet.credentials import Credentials, base_of, client
from tests.component.kubelet.kubectl import Kubectl, left_over
from tests.support.apiserver import ApiServer
from vkprovider.labs.kubelet import consoles
from vkprovider.labs.kubelet.listeners import MOVED

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
SILENT, HALF_ASKED, NOT_READING = 300, 100, 20


@pytest.fixture
async def owner(world: World) -> Running:
    """The replica that owns the worker."""
    return await world.replica()


@pytest.fixture
async def lablet(world: World, owner: Running) -> Lablet:
    """A lablet that runs, and whose Events are written."""
    assert owner.name
    made = await world.pod(await world.define(), await world.worker())
    await made.ready()
    await world.until_event("Ready", made.name)
    return made


@pytest.fixture
async def kubectl(apiserver: ApiServer, world: World, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with Kubectl(apiserver.kubeconfig, world.namespace, tmp_path) as kubectl:
        yield kubectl


async def test_every_option_of_logs(lablet: Lablet, kubectl: Kubectl) -> None:
    async def logs(*options: str) -> str:
        code, out, err = await kubectl("logs", lablet.name, *options)
        assert (code, err) == (0, ""), options
        return out

    whole = await logs()
    lines = whole.splitlines()
    assert lines[0].endswith("Pod created")
    assert any("Normal Created: " in line for line in lines)
    assert (await logs("--tail=2")).splitlines() == lines[-2:]
    assert await logs("--tail=0") == ""
    assert await logs("--limit-bytes=12") == whole[:12]
    assert await logs("--since=1h") == whole
    assert await logs("--since-time=2999-01-01T00:00:00Z") == ""
    assert STAMP.match(await logs("--timestamps", "--tail=1"))
    assert await logs("--all-containers") == whole
    assert await logs("--insecure-skip-tls-verify-backend") == whole
    code, _, err = await kubectl("logs", lablet.name, "--previous")
    assert (code, "never started again" in err) == (1, True)


async def test_who_may_get_pods_opens_no_console(world: World, lablet: Lablet, kubectl: Kubectl) -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    await world.admin.create(f"{RBAC}/{world.namespace}/roles", {"metadata": {"name": "looker"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looker"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}
    binding = {"metadata": {"name": "looker"}, "roleRef": role, "subjects": [user]}
    await world.admin.create(f"{RBAC}/{world.namespace}/rolebindings", binding)
    assert (await kubectl("get", "pod", lablet.name, "--as=looker", "-o", "name"))[1] == f"pod/{lablet.name}\n"
    for words, verb, resource in (
        (("logs", lablet.name), "get", "pods/log"),
        (("exec", lablet.name, "--", "show version"), "create", "pods/exec"),
        (("attach", lablet.name), "create", "pods/attach"),
        (("port-forward", lablet.name, ":22"), "create", "pods/portforward"),
    ):
        code, _, err = await kubectl(words[0], "--as=looker", *words[1:])
        assert code == 1
        assert f'cannot {verb} resource "{resource}"' in err


async def test_the_api_server_proxies_to_no_loopback_address(lablet: Lablet, kubectl: Kubectl) -> None:
    """Elsewhere `kubectl get --raw` reaches the node-scoped paths; here only the port itself does."""
    code, _, err = await kubectl("get", "--raw", f"/api/v1/nodes/vnode.{lablet.worker}/proxy/healthz")
    assert (code, "address not allowed" in err) == (1, True)


async def test_an_owner_that_ends_ends_what_is_followed(
    world: World, owner: Running, lablet: Lablet, kubectl: Kubectl
) -> None:
    following = await kubectl.start("logs", "-f", lablet.name)
    assert following.stdout is not None
    assert (await following.stdout.readline()).endswith(b"Pod created\n")
    stamped = await kubectl.start("logs", "-f", lablet.name, "--timestamps")
    assert stamped.stdout is not None
    assert (await stamped.stdout.readline()).endswith(b"Pod created\n")
    before = base_of(await world.node(lablet.worker, is_ready))
    other = await world.replica()
    await owner.stop()
    async with asyncio.timeout(60):
        out, err = await following.communicate()
    assert out.decode().endswith(f"{MOVED}\n")
    assert (following.returncode, err) == (0, b"")
    async with asyncio.timeout(60):
        out, _ = await stamped.communicate()
    last = out.decode().splitlines()[-1]
    assert (bool(STAMP.match(last)), last.endswith(MOVED)) == (True, True), last
    await when(lambda: len(other.replica.kubelet.listeners) == 1, "the other replica serves the Node")
    await world.node(
        lablet.worker, lambda node: "InternalIP" in str(node["status"]["addresses"]) and base_of(node) != before
    )

    async def again() -> bool:
        code, out, _ = await kubectl("logs", lablet.name)
        return code == 0 and "Pod created" in out

    await eventually(again, "the next command works")


async def test_why_a_log_cannot_be_read_reaches_its_reader(world: World, kubectl: Kubectl) -> None:
    """The API server passes on what a kubelet says with some statuses only."""
    await world.replica(VKPROVIDER_KUBELET_SESSIONS_MAX="1")
    made = await world.pod(await world.define(), await world.worker())
    await made.ready()
    following = await kubectl.start("logs", "-f", made.name)
    assert following.stdout is not None
    assert (await following.stdout.readline()).endswith(b"Pod created\n")
    code, _, err = await kubectl("logs", made.name)
    assert (code, "VKPROVIDER_KUBELET_SESSIONS_MAX allows (1): try again later" in err) == (1, True), err


async def test_a_crowd_holds_up_nobody(
    world: World, owner: Running, lablet: Lablet, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some never ask, some ask slowly, some do not read; whoever asks is answered."""
    node = await world.node(lablet.worker, is_ready)
    port, path = int(base_of(node).rpartition(":")[2]), f"/containerLogs/{lablet.namespace}/{lablet.name}/lab"
    writers: list[asyncio.StreamWriter] = []

    async def come(tls: ssl.SSLContext | None, says: str, count: int) -> None:
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=1024)
            writer.write(says.encode())
            writers.append(writer)

    async with client(node, credentials.apiserver()) as call:
        try:
            await come(None, "", SILENT)
            assert "Pod created" in (await call(path)).text
            await come(credentials.nobody(), f"GET {path} HTTP/1.1\r\nHost: x\r\nX-A: ", HALF_ASKED)
            assert "Pod created" in (await call(path)).text
            await come(credentials.apiserver(), f"GET {path}?follow=true HTTP/1.1\r\nHost: x\r\n\r\n", NOT_READING)
            await when(lambda: owner.replica.kubelet.sessions.open["logs"] == NOT_READING, "they follow")
            assert "Pod created" in (await call(path)).text
            monkeypatch.setattr(consoles, "_OF_POD_MAX", NOT_READING)
            more = await call(path)
            said = f"{NOT_READING} sessions of pod {lablet.namespace}/{lablet.name} are open already"
            assert (more.status, said in more.text) == (500, True)
        finally:
            for writer in writers:
                writer.close()
    await when(lambda: owner.replica.kubelet.sessions.open.total() == 0, "whoever leaves is forgotten")
    await when(lambda: not left_over(), "their tasks end")
