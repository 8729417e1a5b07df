"""Credentials and TLS: real tokens on the real API server; what is sent, and certificates, on a scripted one."""

import asyncio
import base64
import contextlib
import os
import ssl
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.apiserver import ApiServer
from tests.support.faultyapi import FaultyApi
from tests.support.kubeconfigs import connected, write
from tests.support.scripted import ScriptedServer, refuse
from vkprovider.platform import errors
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth, transport
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.settings import KubeSettings

PATH = "/version"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def tls_server(authority: trustme.CA) -> AsyncIterator[ScriptedServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "kubernetes.test").configure_cert(context)
    server = await ScriptedServer(tls=context).start()
    yield server
    await server.stop()


@pytest.fixture
def pem(authority: trustme.CA) -> bytes:
    return authority.cert_pem.bytes()


# Tokens


async def test_a_token_file_that_rotates(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "TOKEN_AGE_S_MAX", 0.0)
    token = tmp_path / "token"
    token.write_text("one\n")
    async with connected(write(tmp_path / "config", {"server": server.url}, {"tokenFile": "token"})) as client:
        await client.get(PATH)
        token.write_text("two\n")
        await client.get(PATH)
        token.write_text("")
        await client.get(PATH)
        token.unlink()
        await client.get(PATH)
    assert [s.headers.get("Authorization") for s in server.seen] == ["Bearer one", *["Bearer two"] * 3]


async def test_a_token_file_that_is_empty_as_the_credentials_are_read_makes_nobody_anonymous(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Neither at the start nor after a refusal."""
    token, config = tmp_path / "token", tmp_path / "config"
    token.write_text("one")
    async with connected(write(config, {"server": server.url}, {"tokenFile": "token"})) as client:
        token.write_text("\n")
        server.next(refuse(401, "Unauthorized"))
        with pytest.raises(errors.Unauthorized, match=f"token file {token} is empty"):
            await client.get(PATH)
        with pytest.raises(errors.InputError, match="is empty"):
            await KubeClient.connect(KubeSettings(kubeconfig=str(config)))
    assert [s.headers.get("Authorization") for s in server.seen] == ["Bearer one"]


async def test_a_token_is_not_read_for_every_request(server: ScriptedServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    async with connected(write(tmp_path / "config", {"server": server.url}, {"tokenFile": "token"})) as client:
        await client.get(PATH)
        token.write_text("two")
        await client.get(PATH)
    assert [s.headers["Authorization"] for s in server.seen] == ["Bearer one", "Bearer one"]


@pytest.fixture
async def strict(apiserver: ApiServer) -> AsyncIterator[FaultyApi]:
    """The real API server, which refuses a token that it did not issue."""
    async with FaultyApi(apiserver.url, apiserver.client_tls()) as api:
        yield api


@pytest.fixture
async def token(apiserver: ApiServer) -> str:
    """A token that the real API server accepts."""
    return await asyncio.to_thread(apiserver.provider_token)


async def test_a_401_reads_the_credentials_once_more(strict: FaultyApi, token: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    write(path, {"server": strict.url}, {"token": "old"})
    async with connected(str(path)) as client:
        write(path, {"server": strict.url}, {"token": token})
        await asyncio.gather(*(client.get(PATH) for _ in range(8)))
        assert not client.errors
        assert sum(asked.headers["Authorization"] == f"Bearer {token}" for asked in strict.asked) == 8
        async with client.stream("/readyz") as batches:
            assert [batch async for batch in batches] == []
        assert strict.asked[-1].status == 200


async def test_a_second_401_is_an_error(strict: FaultyApi, tmp_path: Path) -> None:
    async with connected(write(tmp_path / "config", {"server": strict.url}, {"token": "other"})) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(PATH)
        assert len(strict.asked) == 2


async def test_a_401_and_a_kubeconfig_that_is_gone(strict: FaultyApi, tmp_path: Path) -> None:
    kubeconfig = write(tmp_path / "config", {"server": strict.url}, {"token": "other"})
    async with connected(kubeconfig) as client:
        await asyncio.to_thread(Path(kubeconfig).unlink)
        with pytest.raises(errors.Unauthorized, match="no kubeconfig"):
            await client.get(PATH)


async def test_a_401_does_not_lead_to_another_cluster(strict: FaultyApi, token: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    write(path, {"server": strict.url}, {"token": "old"})
    async with connected(str(path)) as client:
        write(path, {"server": "http://198.51.100.1"}, {"token": token})
        with pytest.raises(errors.Unauthorized, match="now names http://198"):
            await client.get(PATH)


async def test_a_401_stays_in_its_context(strict: FaultyApi, token: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    write(path, {"server": strict.url}, {"token": "old"})
    async with connected(str(path)) as client:
        write(path, {"server": strict.url}, {"token": token})
        text = path.read_text().replace("current-context: test", "current-context: elsewhere")
        path.write_text(text)
        await client.get(PATH)


async def test_no_token_no_header(server: ScriptedServer, tmp_path: Path) -> None:
    async with connected(write(tmp_path / "config", {"server": server.url + "/"}, {})) as client:
        await client.get(PATH)
    assert "Authorization" not in server.seen[0].headers
    assert server.seen[0].path == PATH


# TLS


@pytest.mark.parametrize("where", ["data", "file"])
async def test_the_servers_certificate_is_verified(
    tls_server: ScriptedServer, tmp_path: Path, pem: bytes, where: str
) -> None:
    (tmp_path / "ca.crt").write_bytes(pem)
    named = {"certificate-authority-data": b64(pem)} if where == "data" else {"certificate-authority": "ca.crt"}
    async with connected(write(tmp_path / "config", {"server": tls_server.url, **named}, {"token": "t"})) as client:
        await client.get(PATH)
    assert tls_server.seen[0].headers["Authorization"] == "Bearer t"


async def test_an_unknown_authority_is_refused(tls_server: ScriptedServer, tmp_path: Path) -> None:
    other = trustme.CA().cert_pem.bytes()
    cluster = {"server": tls_server.url, "certificate-authority-data": b64(other)}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        with pytest.raises(errors.TlsFailed, match=r"self-signed certificate in certificate chain|unable to get"):
            await client.get(PATH)
    assert not tls_server.seen


async def test_an_authority_that_was_replaced_is_read_again(
    tls_server: ScriptedServer, tmp_path: Path, pem: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubelet does in a running Pod when the cluster's CA rotates."""
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(trustme.CA().cert_pem.bytes())
    cluster = {"server": tls_server.url, "certificate-authority": "ca.crt"}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        with pytest.raises(errors.TlsFailed):
            await client.get(PATH)
        trusted.write_bytes(pem)
        with pytest.raises(errors.TlsFailed):
            await client.get(PATH)
        monkeypatch.setattr(transport, "_RELOAD_EVERY_S", 0.0)
        await client.get(PATH)
    assert len(tls_server.seen) == 1


async def test_insecure_skip_tls_verify(tls_server: ScriptedServer, tmp_path: Path) -> None:
    cluster = {"server": tls_server.url, "insecure-skip-tls-verify": True}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        await client.get(PATH)


@pytest.mark.parametrize(("name", "trusted"), [("kubernetes.test", True), ("other.test", False)])
async def test_the_servers_name_may_be_given(
    tls_server: ScriptedServer, tmp_path: Path, pem: bytes, name: str, *, trusted: bool
) -> None:
    cluster = {"server": tls_server.url, "certificate-authority-data": b64(pem), "tls-server-name": name}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        if trusted:
            await client.get(PATH)
        else:
            with pytest.raises(errors.TlsFailed, match="Hostname mismatch"):
                await client.get(PATH)


async def test_plain_http_on_a_tls_port(server: ScriptedServer, tmp_path: Path, pem: bytes) -> None:
    cluster = {"server": server.url.replace("http", "https"), "certificate-authority-data": b64(pem)}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        with pytest.raises(errors.TlsFailed, match="WRONG_VERSION_NUMBER"):
            await client.get(PATH)


@pytest.fixture
async def mutual_server(authority: trustme.CA) -> AsyncIterator[ScriptedServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    server = await ScriptedServer(tls=context).start()
    yield server
    await server.stop()


@pytest.mark.parametrize("where", ["data", "file"])
async def test_client_certificates(
    mutual_server: ScriptedServer,
    authority: trustme.CA,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pem: bytes,
    where: str,
) -> None:
    cert = authority.issue_cert("admin")
    certificate, key = cert.cert_chain_pems[0].bytes(), cert.private_key_pem.bytes()
    if where == "data":
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    else:
        (tmp_path / "c.pem").write_bytes(certificate)
        (tmp_path / "k.pem").write_bytes(key)
        user = {"client-certificate": "c.pem", "client-key": "k.pem"}
    cluster = {"server": mutual_server.url, "certificate-authority-data": b64(pem)}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    async with connected(write(tmp_path / "config", cluster, user)) as client:
        await client.get(PATH)
    assert not any(scratch.iterdir())


async def test_a_server_that_wants_a_certificate(mutual_server: ScriptedServer, tmp_path: Path, pem: bytes) -> None:
    cluster = {"server": mutual_server.url, "certificate-authority-data": b64(pem)}
    async with connected(write(tmp_path / "config", cluster, {"token": "t"})) as client:
        # By TLS 1.3 the client learns why only if the alert comes before the reset.
        with pytest.raises((errors.TlsFailed, errors.Unavailable)):
            await client.get(PATH)


async def test_a_key_that_does_not_belong_to_its_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    one, two = authority.issue_cert("one"), authority.issue_cert("two")
    user = {
        "client-certificate-data": b64(one.cert_chain_pems[0].bytes()),
        "client-key-data": b64(two.private_key_pem.bytes()),
    }
    with pytest.raises(errors.InputError, match="KEY_VALUES_MISMATCH"):
        await auth.load(write(tmp_path / "config", {"server": "https://127.0.0.1:1"}, user))


@pytest.mark.parametrize(
    ("cluster", "user", "reason"),
    [
        ({"server": "https://a", "proxy-url": "socks5://proxy"}, {}, "KubeconfigUnsupported"),
        ({"server": "https://a"}, {"token": "t", "as": "admin"}, "KubeconfigUnsupported"),
        ({"server": "https://a"}, {"token": "t", "of-tomorrow": "less"}, "KubeconfigUnsupported"),
        ({"server": "https://a"}, {"exec": {"command": "login"}}, "KubeconfigInvalid"),
        ({"server": "unix:///a"}, {}, "KubeconfigInvalid"),
        ({"server": "https://a:port"}, {}, "KubeconfigInvalid"),
        ({"server": "https://"}, {}, "KubeconfigInvalid"),
        ({"server": "https://a", "certificate-authority-data": b64(b"no pem")}, {}, "KubeconfigInvalid"),
        ({"server": "https://a"}, {"tokenFile": "nowhere"}, "TokenMissing"),
        ({"server": "https://a"}, {"token": "a\r\nX-Evil: 1"}, "TokenInvalid"),
    ],
)
async def test_what_cannot_be_used_is_said(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], reason: str
) -> None:
    with pytest.raises(errors.InputError) as caught:
        await KubeClient.connect(KubeSettings(kubeconfig=write(tmp_path / "config", cluster, user)))
    assert caught.value.reason == reason


# Where credentials are looked for


async def test_the_service_account_of_a_pod(
    tls_server: ScriptedServer, pem: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from the pod")
    (tmp_path / "ca.crt").write_bytes(pem)
    (tmp_path / "namespace").write_text("labs\n")
    monkeypatch.setattr(auth, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(auth, "TOKEN_AGE_S_MAX", 0.0)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(tls_server.port))
    async with connected() as client:
        assert client.namespace == "labs"
        await client.get(PATH)
        (tmp_path / "token").write_text("rotated")
        await client.get(PATH)
    assert [s.headers["Authorization"] for s in tls_server.seen] == ["Bearer from the pod", "Bearer rotated"]


@pytest.fixture
def pod(pem: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Pod's ServiceAccount."""
    for name, content in {"token": b"from the pod", "ca.crt": pem}.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(auth, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


async def test_a_pod_of_an_ipv6_cluster(pod: Path) -> None:
    access = await auth.load()
    assert (access.server, access.namespace, access.authorization) == (
        "https://[fd00::1]:443",
        "default",
        "Bearer from the pod",
    )
    (pod / "namespace").write_text("labs\n")
    assert (await auth.load()).namespace == "labs"


@pytest.mark.parametrize(
    ("name", "content"), [("token", b"\n"), ("ca.crt", b"no PEM"), ("ca.crt", b""), ("ca.crt", None)]
)
async def test_a_service_account_that_cannot_be_used(pod: Path, name: str, content: bytes | None) -> None:
    (pod / name).unlink()
    if content is not None:
        (pod / name).write_bytes(content)
    with pytest.raises(errors.InputError, match=name) as caught:
        await auth.load()
    expected = StartReason.TOKEN_MISSING if name == "token" else StartReason.SERVICE_ACCOUNT_INVALID
    assert caught.value.reason == expected


def test_a_pod_does_not_load_the_library_that_reads_kubeconfigs(pod: Path) -> None:
    code = f"""
import asyncio, pathlib, sys
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth
auth.SERVICE_ACCOUNT = pathlib.Path({str(pod)!r})
async def connect(): print((await KubeClient.connect()).server)
asyncio.run(connect())
assert "aiohttp" in sys.modules
assert "kubernetes_asyncio" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 (our own program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "https://[fd00::1]:443\n"


async def test_kubeconfig_comes_before_the_service_account(
    kubeconfig: str, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing{os.pathsep}{kubeconfig}")
    assert (await auth.load()).server == server.url


async def test_the_home_directory_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(errors.InputError, match="KubeconfigMissing"):
        await auth.load()
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", {"server": "http://home"}, {})
    assert (await auth.load()).server == "http://home"


# Login plugins


def plugin(tmp_path: Path, expires: str) -> dict[str, Any]:
    """Write a plugin that counts its runs and puts the count into the token."""
    script = tmp_path / "login"
    script.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            echo x >> {tmp_path}/runs
            n=$(wc -l < {tmp_path}/runs | tr -d ' ')
            printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
            printf '"status":{{"token":"run-%s","expirationTimestamp":"{expires}"}}}}' "$n"
            """)
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


async def test_an_exec_plugin(server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "TOKEN_AGE_S_MAX", 0.0)
    user = plugin(tmp_path, "2999-01-01T00:00:00Z")
    async with connected(write(tmp_path / "config", {"server": server.url}, user)) as client:
        await client.get(PATH)
        await client.get(PATH)
        server.next(refuse(401, "Unauthorized"))
        await client.get(PATH)
    assert [s.headers["Authorization"] for s in server.seen] == ["Bearer run-1"] * 3 + ["Bearer run-2"]


async def test_an_exec_plugin_whose_token_expires(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "TOKEN_AGE_S_MAX", 0.0)
    user = plugin(tmp_path, "2001-01-01T00:00:00Z")
    async with connected(write(tmp_path / "config", {"server": server.url}, user)) as client:
        await client.get(PATH)
        await client.get(PATH)
    assert [s.headers["Authorization"] for s in server.seen] == ["Bearer run-2", "Bearer run-3"]


async def test_an_exec_plugin_that_takes_longer_than_a_request(server: ScriptedServer, tmp_path: Path) -> None:
    """One run serves all requests, and outlives those that gave up."""
    user = plugin(tmp_path, "2001-01-01T00:00:00Z")
    async with connected(write(tmp_path / "config", {"server": server.url}, user), timeout_s=0.5) as client:
        runs = tmp_path / "runs"
        script = tmp_path / "login"
        script.write_text(script.read_text().replace("echo x", "sleep 2; echo x").replace("2001", "2999"))
        found = await asyncio.gather(*(client.get(PATH) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in found] == [errors.DeadlineExceeded] * 3
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(errors.DeadlineExceeded):
                    await client.get(PATH)
                    break
        assert len(runs.read_text().splitlines()) == 2
    assert {s.headers["Authorization"] for s in server.seen} == {"Bearer run-2"}


async def test_an_exec_plugin_that_fails(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    with pytest.raises(errors.Unauthorized, match="process returned 1"):
        await auth.load(write(tmp_path / "config", {"server": "http://a"}, user))


async def test_a_password(server: ScriptedServer, tmp_path: Path) -> None:
    user = {"username": "u", "password": "p"}
    async with connected(write(tmp_path / "config", {"server": server.url}, user)) as client:
        await client.get(PATH)
    assert server.seen[0].headers["Authorization"] == f"Basic {b64(b'u:p')}"
