"""Each way to the real API server: a login plugin, a token file, a proxy, and a ServiceAccount whose token changes."""

import base64
import json
import ssl
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import trustme

from tests.component.kube.conftest import until
from tests.component.kube.pods import Pods, following
from tests.support.apiserver import ApiServer
from tests.support.apiserver import until as until_seen
from tests.support.connectproxy import ConnectProxy
from tests.support.faultyapi import FaultyApi
from tests.support.kubeconfigs import connected, write
from vkprovider.platform import errors
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth

NAME = "cluster.corp.example"
ACCOUNT = "walker"


@pytest.fixture
def cluster(apiserver: ApiServer) -> dict[str, Any]:
    """The API server itself, by TLS, as a kubeconfig describes it."""
    authority = (apiserver.pki / "server-ca.crt").read_bytes()
    return {"server": apiserver.url, "certificate-authority-data": base64.b64encode(authority).decode()}


@pytest.fixture
async def tokens(pods: Pods) -> "Tokens":
    return await Tokens.prepare(pods)


class Tokens:
    """Tokens of a ServiceAccount that may use the Pods of a namespace, each bound to a Secret of its own."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._base = f"/api/v1/namespaces/{pods.namespace}"

    @classmethod
    async def prepare(cls, pods: Pods) -> "Tokens":
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{pods.namespace}"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create"]}]
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": pods.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
        metadata = {"name": ACCOUNT}
        await pods.admin.create(f"/api/v1/namespaces/{pods.namespace}/serviceaccounts", {"metadata": metadata})
        await pods.admin.create(f"{rbac}/roles", {"metadata": metadata, "rules": rules})
        await pods.admin.create(f"{rbac}/rolebindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]})
        return cls(pods)

    async def make(self, secret: str) -> str:
        """Return a token that lasts as long as a Secret, which is made for it."""
        made = await self._pods.admin.create(f"{self._base}/secrets", {"metadata": {"name": secret}})
        bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": made["metadata"]["uid"]}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
        answer = await self._pods.admin.create(f"{self._base}/serviceaccounts/{ACCOUNT}/token", body)
        return str(answer["status"]["token"])

    async def invalidate(self, secret: str) -> None:
        await self._pods.admin.delete(f"{self._base}/secrets/{secret}")


def plugin(path: Path, token: str) -> dict[str, Any]:
    """Write a login plugin beside a kubeconfig."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": credential["apiVersion"], "command": f"./{path.name}", "interactiveMode": "Never"}}


@pytest.mark.parametrize("way", ["plugin", "token file"])
async def test_a_login(pods: Pods, tokens: Tokens, cluster: dict[str, Any], tmp_path: Path, way: str) -> None:
    token = await tokens.make("bound")
    if way == "plugin":
        user = plugin(tmp_path / "login", token)
    else:
        (tmp_path / "token").write_text(f"\n{token}\n\n")
        user = {"tokenFile": "token"}
    async with connected(write(tmp_path / "config", cluster, user)) as client:
        await use(pods, client)


async def use(pods: Pods, client: KubeClient) -> None:
    """Read, write and watch as the ServiceAccount, and as nobody else."""
    async with client.stream(pods.path, {"watch": "1", "resourceVersion": "0"}) as batches:
        await client.create(
            pods.path,
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "made"},
                    "spec": {"containers": [{"name": "a", "image": "x"}]},
                }
            ).encode(),
        )
        (line,) = await anext(batches)
        assert json.loads(line)["object"]["metadata"]["name"] == "made"
    assert json.loads(await client.get(f"{pods.path}/made"))["metadata"]["name"] == "made"
    with pytest.raises(errors.Forbidden, match=f"system:serviceaccount:{pods.namespace}:{ACCOUNT}"):
        await client.get("/api/v1/nodes")


@pytest.mark.parametrize("named", ["proxy-url", "HTTPS_PROXY"])
async def test_behind_a_proxy(
    pods: Pods,
    tokens: Tokens,
    cluster: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    named: str,
) -> None:
    """The server's name is known to the proxy alone; its certificate is for another name, which the kubeconfig says."""
    address = urlsplit(cluster["server"])
    assert address.hostname
    assert address.port
    cluster |= {"server": f"https://{NAME}:{address.port}", "tls-server-name": address.hostname}
    async with ConnectProxy({NAME: (address.hostname, address.port)}, user="ann:secret") as proxy:
        url = proxy.url.replace("//", "//ann:secret@")
        if named == "proxy-url":
            cluster["proxy-url"] = url
            monkeypatch.setenv("NO_PROXY", "*")  # which does not count for it
        else:
            monkeypatch.setenv("HTTPS_PROXY", url)
        kubeconfig = write(tmp_path / "config", cluster, {"token": await tokens.make("bound")})
        async with connected(kubeconfig) as client:
            await use(pods, client)
            async with following(client, pods, watching=False) as (informer, heard):
                await until(lambda: len(proxy.asked) == 2)  # its watch is on a connection of its own
                proxy.cut()
                await pods.add("later")
                await until(lambda: (None, "later") in heard.changes)
                assert set(informer.items) == pods.keys("later") | {f"{pods.namespace}/made"}
            assert set(proxy.asked) == {f"CONNECT {NAME}:{address.port}"}
            proxy.refusal = 403
            proxy.cut()
            with pytest.raises(errors.Unavailable, match=f"the proxy to https://{NAME}:.* answers 403"):
                await client.create(pods.path, b"{}")


@pytest.fixture
async def front(
    apiserver: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[FaultyApi, Path]]:
    """The real API server as a Pod sees it: the proxy in front of it by TLS, and the folder of a ServiceAccount."""
    authority = trustme.CA()
    listen = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(listen)
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(authority.cert_pem.bytes())
    async with FaultyApi(apiserver.url, apiserver.client_tls(), listen=listen) as api:
        monkeypatch.setattr(auth, "SERVICE_ACCOUNT", folder)
        monkeypatch.setattr(auth, "TOKEN_AGE_S_MAX", 3600.0)  # so that only a 401 leads to the new token
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(urlsplit(api.url).port))
        yield api, folder


@pytest.mark.parametrize("first", ["watch", "request"])
async def test_a_service_account_whose_token_is_replaced_under_an_open_watch(
    apiserver: ApiServer, pods: Pods, tokens: Tokens, front: tuple[FaultyApi, Path], first: str
) -> None:
    api, folder = front
    old, new = await tokens.make("old"), await tokens.make("new")
    (folder / "token").write_text(f"{old}\n")
    (folder / "namespace").write_text(pods.namespace)
    await pods.add("before")
    async with connected(None) as client, following(client, replace(pods, api=api)) as (informer, heard):
        (folder / "token").write_text(f"{new}\n")
        await tokens.invalidate("old")
        await until_seen(lambda: refused(apiserver, pods.path, old), every_s=0.2)
        await pods.add("during")  # a watch that is open stays so
        await until(lambda: (None, "during") in heard.changes)
        assert {asked.headers["Authorization"] for asked in api.asked} == {f"Bearer {old}"}

        seen = len(api.asked)
        if first == "request":
            assert json.loads(await client.get(f"{pods.path}/during"))["metadata"]["name"] == "during"
            assert statuses(api, seen, "GET .*/during") == [(f"Bearer {old}", 401), (f"Bearer {new}", 200)]
        api.cut()
        await pods.add("meanwhile")
        await pods.remove("before")
        api.heal()
        await until(lambda: ("before", None) in heard.changes and (None, "meanwhile") in heard.changes)
        assert set(informer.items) == pods.keys("during", "meanwhile")
        assert heard.changes.count((None, "during")) == 1
        answered = [found for found in statuses(api, seen, "watch=1") if found[1]]  # others met the cut
        wanted = [(f"Bearer {new}", 200)]
        assert answered == (wanted if first == "request" else [(f"Bearer {old}", 401), *wanted])
        assert informer.relists_total == 0
        assert "401" not in client.errors


async def refused(apiserver: ApiServer, path: str, token: str) -> bool:
    """Return whether the API server itself answers 401 to a token; it remembers one for 10 s."""
    connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
    headers = {"Authorization": f"Bearer {token}"}
    url = apiserver.url + path
    async with aiohttp.ClientSession(connector=connector) as http, http.get(url, headers=headers) as answer:
        return answer.status == 401


def statuses(api: FaultyApi, since: int, pattern: str) -> list[tuple[str, int]]:
    """Return the Authorization and the status of matching requests."""
    found = api.matching(pattern)
    return [(asked.headers["Authorization"], asked.status) for asked in api.asked[since:] if asked in found]
