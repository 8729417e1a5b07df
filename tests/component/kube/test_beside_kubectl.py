"""Kubeconfigs that the client library alone reads otherwise than kubectl: both ask one server, and are compared."""

import asyncio
import base64
import datetime as dt
import json
import os
import ssl
import stat
import textwrap
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.support.apiserver import ApiServer
from tests.support.connectproxy import ConnectProxy
from tests.support.scripted import ScriptedServer
from vkprovider.platform import errors
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import kubeconfig as plugins
from vkprovider.platform.settings import KubeSettings

PATH = "/version"
V1 = "client.authentication.k8s.io/v1"
Headers = Mapping[str, str]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(name: str, cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


class Both:
    """kubectl and our client, in a folder that no kubeconfig is in."""

    def __init__(self, kubectl: Path, server: ScriptedServer, folder: Path, environ: dict[str, str]) -> None:
        self.kubectl = kubectl
        self.server = server
        self.folder = folder
        self.environ = environ

    async def by_kubectl(self, *files: Path) -> Headers:
        """Return the headers of kubectl's request."""
        environ = {**self.environ, "KUBECONFIG": os.pathsep.join(map(str, files)), "HOME": str(self.folder)}
        process = await asyncio.create_subprocess_exec(
            *(str(self.kubectl), "get", "--raw", PATH),
            env=environ,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            _, trouble = await process.communicate()
        if process.returncode:
            raise AssertionError(trouble.decode())
        return self.server.seen[-1].headers

    async def by_us(self, *files: Path) -> Headers:
        """Return the headers of our request."""
        client = await KubeClient.connect(KubeSettings(kubeconfig=os.pathsep.join(map(str, files))))
        try:
            await client.get(PATH)
        finally:
            await client.close()
        return self.server.seen[-1].headers

    async def agree(self, *files: Path) -> str:
        """Return the Authorization that both have sent; empty for none."""
        theirs, ours = await self.by_kubectl(*files), await self.by_us(*files)
        assert len(self.server.seen) == 2
        found = ours.get("Authorization", "")
        assert theirs.get("Authorization", "") == found
        return found


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def secure(authority: trustme.CA) -> AsyncIterator[ScriptedServer]:
    """A server with a certificate, which asks for one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "kubernetes.test").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = await ScriptedServer(tls=context).start()
    yield server
    await server.stop()


@pytest.fixture
def both(apiserver: ApiServer, secure: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return Both(apiserver.programs / "kubectl", secure, folder, environ)


@pytest.fixture
def cluster(secure: ScriptedServer, authority: trustme.CA) -> dict[str, Any]:
    return {"server": secure.url, "certificate-authority-data": b64(authority.cert_pem.bytes())}


async def test_the_first_current_context_wins(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / name, document(name, cluster, {"token": f"of-{name}"})) for name in ("first", "second")
    )
    assert await both.agree(one, two) == "Bearer of-first"


async def test_the_first_entry_of_a_name_wins(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    one = write(tmp_path / "one", {**document("a", cluster, {"token": "first"}), "current-context": ""})
    two = write(tmp_path / "two", document("a", {"server": "https://127.0.0.1:1"}, {"token": "second"}))
    assert await both.agree(one, tmp_path / "missing", two) == "Bearer first"


async def test_empty_files_are_passed_over(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert await both.agree(empty, write(tmp_path / "full", document("a", cluster, {"token": "t"}))) == "Bearer t"


async def test_paths_are_those_of_the_file_they_stand_in(
    both: Both, cluster: dict[str, Any], authority: trustme.CA, tmp_path: Path
) -> None:
    """Also a user's, where the cluster stands in another file."""
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "ca.crt").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "two" / "token").write_text("relative")
    whole = document("a", {"server": cluster["server"], "certificate-authority": "ca.crt"}, {"tokenFile": "token"})
    users = {"users": whole.pop("users")}
    files = (write(tmp_path / "one" / "config", whole), write(tmp_path / "two" / "config", users))
    assert await both.agree(*files) == "Bearer relative"


async def test_certificates_of_a_user_in_another_file(
    both: Both, cluster: dict[str, Any], authority: trustme.CA, tmp_path: Path
) -> None:
    cert = authority.issue_cert("ann")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "c.pem").write_bytes(cert.cert_chain_pems[0].bytes())
    (tmp_path / "two" / "k.pem").write_bytes(cert.private_key_pem.bytes())
    whole = document("a", cluster, {"client-certificate": "c.pem", "client-key": "k.pem"})
    users = {"users": whole.pop("users")}
    files = (write(tmp_path / "one" / "config", whole), write(tmp_path / "two" / "config", users))
    assert await both.agree(*files) == ""


async def test_empty_fields_are_none(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-file")
    user = {"token": "", "tokenFile": "token", "client-certificate": "", "client-key-data": None, "username": ""}
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == "Bearer of-the-file"


async def test_a_context_without_a_user(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    whole = document("a", cluster, {})
    del whole["users"]
    whole["contexts"][0]["context"]["user"] = ""
    kubeconfig = write(tmp_path / "config", whole)
    with pytest.raises(AssertionError, match="EOF"):  # it asks a human for a name
        await both.by_kubectl(kubeconfig)
    assert "Authorization" not in await both.by_us(kubeconfig)


async def test_a_token_file_is_stripped_and_goes_before_a_token(
    both: Both, cluster: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("\n of-the-file \n\n")
    user = {"token": "inline", "tokenFile": "token"}
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == "Bearer of-the-file"


async def test_a_password(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    user = {"username": "u", "password": "p"}
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == f"Basic {b64(b'u:p')}"


@pytest.mark.parametrize("field", ["as", "as-uid", "as-groups", "as-user-extra"])
async def test_impersonation_is_refused_where_kubectl_impersonates(
    both: Both, cluster: dict[str, Any], tmp_path: Path, field: str
) -> None:
    values = {"as": "root", "as-uid": "7", "as-groups": ["g"], "as-user-extra": {"a": ["b"]}}
    user = {"token": "t", "as": "root", field: values[field]}
    kubeconfig = write(tmp_path / "config", document("a", cluster, user))
    assert (await both.by_kubectl(kubeconfig))["Impersonate-User"] == "root"
    with pytest.raises(errors.InputError, match=field) as caught:
        await both.by_us(kubeconfig)
    assert caught.value.reason == "KubeconfigUnsupported"


@pytest.mark.parametrize(("name", "good"), [("kubernetes.test", True), ("other.test", False)])
async def test_the_servers_name(both: Both, cluster: dict[str, Any], tmp_path: Path, name: str, *, good: bool) -> None:
    kubeconfig = write(tmp_path / "config", document("a", {**cluster, "tls-server-name": name}, {"token": "t"}))
    if good:
        assert await both.agree(kubeconfig) == "Bearer t"
        return
    with pytest.raises(AssertionError, match=r"not other\.test"):
        await both.by_kubectl(kubeconfig)
    with pytest.raises(errors.TlsFailed, match="Hostname mismatch"):
        await both.by_us(kubeconfig)


@pytest.mark.parametrize("named", ["proxy-url", "HTTPS_PROXY", "https_proxy", "both"])
async def test_proxies(
    both: Both, cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    names = {"cluster.test": ("127.0.0.1", both.server.port)}
    cluster |= {"server": f"https://cluster.test:{both.server.port}", "tls-server-name": "127.0.0.1"}
    async with ConnectProxy(names, user="ann:secret") as proxy:
        url = proxy.url.replace("//", "//ann:secret@")
        if named in {"proxy-url", "both"}:
            cluster["proxy-url"] = url
        if named != "proxy-url":
            name, value = ("HTTPS_PROXY", "http://127.0.0.1:1") if named == "both" else (named, url)
            monkeypatch.setenv(name, value)
            both.environ[name] = value
        assert await both.agree(write(tmp_path / "config", document("a", cluster, {"token": "t"}))) == "Bearer t"
        assert proxy.asked == [f"CONNECT cluster.test:{both.server.port}"] * 2


async def test_no_proxy(both: Both, cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster |= {"server": f"https://cluster.test:{both.server.port}"}
    kubeconfig = write(tmp_path / "config", document("a", cluster, {"token": "t"}))
    async with ConnectProxy() as proxy:
        for name, value in (("HTTPS_PROXY", proxy.url), ("NO_PROXY", ".test")):
            monkeypatch.setenv(name, value)
            both.environ[name] = value
        with pytest.raises(AssertionError, match=r"no such host|server misbehaving|lookup"):
            await both.by_kubectl(kubeconfig)
        with pytest.raises(errors.Unavailable, match="no address"):
            await both.by_us(kubeconfig)
        assert not proxy.asked


# Login plugins


def plugin(path: Path, script: str, **fields: Any) -> dict[str, Any]:
    """Write a plugin, which tells `runs` beside it of each run; return the user's fields that name it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ncd {path.parent}\necho "$KUBERNETES_EXEC_INFO" >>runs\n{textwrap.dedent(script)}')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": V1, "command": str(path), "interactiveMode": "Never", **fields}}


def runs(path: Path) -> list[Any]:
    """Return the input of each run of a plugin."""
    return [json.loads(line) for line in (path.parent / "runs").read_text().splitlines() if line]


def granting(**status: str) -> str:
    credential = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(credential)}\nEND\n"


@pytest.mark.parametrize("command", ["./login", "login", "bin/login"])
async def test_a_plugin_is_found_beside_its_kubeconfig_or_on_path(
    both: Both, cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    place = tmp_path / "deep"
    path = place / "bin" / "login" if command != "./login" else place / "login"
    user = plugin(path, granting(token="t"), command=command)
    if command == "login":
        both.environ["PATH"] = f"{path.parent}{os.pathsep}{os.environ['PATH']}"
        monkeypatch.setenv("PATH", both.environ["PATH"])
    assert await both.agree(write(place / "config", document("a", cluster, user))) == "Bearer t"
    assert len(runs(path)) == 2


@pytest.mark.parametrize("told", [True, False])
async def test_a_plugin_is_told_about_the_cluster(
    both: Both, cluster: dict[str, Any], tmp_path: Path, *, told: bool
) -> None:
    cluster |= {
        "tls-server-name": "kubernetes.test",
        "extensions": [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "abc"}},
            {"name": "other", "extension": {"audience": "no"}},
        ],
    }
    path = tmp_path / "login"
    user = plugin(path, granting(token="t"), provideClusterInfo=told)
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == "Bearer t"
    theirs, ours = runs(path)
    assert ours == theirs
    assert ("cluster" in ours["spec"]) is told


async def test_a_plugin_has_arguments_and_variables(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    script = f"""printf '{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{"token":"%s-%s"}}}}' "$1" "$WHO" """
    user = plugin(tmp_path / "login", script, args=["one"], env=[{"name": "WHO", "value": "two"}])
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == "Bearer one-two"


@pytest.mark.parametrize("instead", ["token", "tokenFile", "username", "client-certificate"])
async def test_other_credentials_go_before_a_plugin(
    both: Both, cluster: dict[str, Any], authority: trustme.CA, tmp_path: Path, instead: str
) -> None:
    cert = authority.issue_cert("ann")
    (tmp_path / "c.pem").write_bytes(cert.cert_chain_pems[0].bytes())
    (tmp_path / "k.pem").write_bytes(cert.private_key_pem.bytes())
    (tmp_path / "token").write_text("static")
    fields: dict[str, dict[str, str]] = {
        "token": {"token": "static"},
        "tokenFile": {"tokenFile": "token"},
        "username": {"username": "u", "password": "p"},
        "client-certificate": {"client-certificate": "c.pem", "client-key": "k.pem"},
    }
    user = plugin(tmp_path / "login", granting(token="never")) | fields[instead]
    assert "never" not in await both.agree(write(tmp_path / "config", document("a", cluster, user)))
    assert not (tmp_path / "runs").exists()


async def test_a_plugin_returns_a_certificate(
    both: Both, cluster: dict[str, Any], authority: trustme.CA, tmp_path: Path
) -> None:
    both.server.tls.verify_mode = ssl.CERT_REQUIRED  # type: ignore[union-attr]
    user = plugin(tmp_path / "login", granting(**pair(authority)))
    assert await both.agree(write(tmp_path / "config", document("a", cluster, user))) == ""


def pair(authority: trustme.CA, lasts_s: float = 3600.0) -> dict[str, str]:
    cert = authority.issue_cert("ann", not_after=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=lasts_s))
    return {
        "clientCertificateData": cert.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": cert.private_key_pem.bytes().decode(),
    }


@pytest.mark.parametrize(
    ("script", "theirs", "ours"),
    [
        ("echo no access >&2; exit 3", "exit code 3", r"process returned 3\. no access"),
        ("echo nonsense", "decoding stdout", "not an ExecCredential"),
        (granting(), "token or cert/key pair", "neither a token nor a certificate"),
        (granting(clientKeyData="k"), "only certificate or key", "neither a token nor a certificate"),
        (granting(token="t").replace("/v1", "/v1beta1"), "returned version", "returned version"),
    ],
)
async def test_a_plugin_that_grants_nothing(
    both: Both, cluster: dict[str, Any], tmp_path: Path, script: str, theirs: str, ours: str
) -> None:
    kubeconfig = write(tmp_path / "config", document("a", cluster, plugin(tmp_path / "login", script)))
    with pytest.raises(AssertionError, match=theirs):
        await both.by_kubectl(kubeconfig)
    with pytest.raises(errors.Unauthorized, match=ours):
        await both.by_us(kubeconfig)
    assert not both.server.seen


async def test_a_plugin_that_is_missing(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    user = plugin(tmp_path / "login", "", command="no-such-login", installHint="get it at example.com")
    kubeconfig = write(tmp_path / "config", document("a", cluster, user))
    with pytest.raises(AssertionError, match=r"example\.com"):
        await both.by_kubectl(kubeconfig)
    with pytest.raises(errors.Unauthorized, match=r"No such file.*example\.com"):
        await both.by_us(kubeconfig)


async def test_a_plugin_that_asks_a_human(both: Both, cluster: dict[str, Any], tmp_path: Path) -> None:
    user = plugin(tmp_path / "login", granting(token="t"), interactiveMode="Always")
    kubeconfig = write(tmp_path / "config", document("a", cluster, user))
    with pytest.raises(AssertionError, match="standard input is not a terminal"):
        await both.by_kubectl(kubeconfig)
    with pytest.raises(errors.Unauthorized, match="standard input is no terminal"):
        await both.by_us(kubeconfig)


async def test_a_plugin_that_hangs_ends_with_its_children(
    both: Both, cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here kubectl waits for ever."""
    monkeypatch.setattr(plugins, "RUN_S_MAX", 1.0)
    user = plugin(tmp_path / "login", "sleep 600 & echo $! >child; wait")
    with pytest.raises(errors.Unauthorized, match=r"login failed: it did not end within 1 s"):
        await both.by_us(write(tmp_path / "config", document("a", cluster, user)))
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    async with asyncio.timeout(20):
        while child.exists() and b"sleep" in (child / "cmdline").read_bytes():  # noqa: ASYNC110 (nothing announces it)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("what", ["token", "certificate", "certificate's own end"])
async def test_a_plugin_runs_again_when_what_it_granted_expires(
    both: Both, cluster: dict[str, Any], authority: trustme.CA, tmp_path: Path, what: str
) -> None:
    lasts_s = 8.0
    until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=lasts_s)
    status = {"token": "t"} if what == "token" else pair(authority, lasts_s if what.endswith("end") else 3600.0)
    if not what.endswith("end"):
        status["expirationTimestamp"] = f"{until:%Y-%m-%dT%H:%M:%SZ}"
    path = tmp_path / "login"
    kubeconfig = write(tmp_path / "config", document("a", cluster, plugin(path, granting(**status))))
    client = await KubeClient.connect(KubeSettings(kubeconfig=str(kubeconfig)))
    try:
        await client.get(PATH)
        assert len(runs(path)) == 1
        plugin(path, granting(token="later"))
        async with asyncio.timeout(30):
            while both.server.seen[-1].headers.get("Authorization") != "Bearer later":
                await asyncio.sleep(0.05)
                await client.get(PATH)
        assert dt.datetime.now(dt.UTC) >= until - dt.timedelta(seconds=1)
        assert len(runs(path)) == 2
        assert not client.errors
    finally:
        await client.close()
