"""`kubectl lablet login` against the page itself: the whole URL, or what is in the way."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from aiohttp import web

from tests.component.web.reviews import RIGHTS, TOKENS, says
from tests.component.web.test_logins import CLAIM, SECRET_URL, Lablets
from tests.support.scripted import ScriptedServer, refuse
from vkprovider.labs.http.lablets import Logins
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.kube.client import KubeClient

UID = "11111111-2222-3333-4444-555555555555"


async def elsewhere(_: web.Request) -> web.Response:
    raise web.HTTPFound("http://127.0.0.1:9/")


async def garbage(_: web.Request) -> web.Response:
    return web.Response(status=502, text="<html>Bad Gateway</html>")


@pytest.fixture
async def page(kube: KubeClient) -> AsyncIterator[str]:
    """The page with one lablet's login; `/moved` and `/broken` are what stands before it on a bad day."""
    lablets = Lablets(msgspec.structs.replace(CLAIM, pod_uid=UID))
    app = web.Application()
    app.router.add_get("/labs/{id}/login", Logins(AccessControl(kube), lablets, lablets.login_url).handle)
    app.router.add_get("/moved/labs/{id}/login", elsewhere)
    app.router.add_get("/broken/labs/{id}/login", garbage)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


async def call(tmp_path: Path, url: str, *arguments: str) -> Result:
    """Run the command with the kubeconfig of the fixtures."""
    options = [UID, f"--url={url}", f"--kubeconfig={tmp_path / 'kubeconfig'}", *arguments]
    command = [sys.executable, "-m", "vkprovider.cli.lablet", "login", *options]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return Result(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.parametrize(("arguments", "token"), [((), "abc"), (("--token=portal",), "portal")])
async def test_whole_url_is_printed_and_nothing_else(
    server: ScriptedServer, page: str, tmp_path: Path, arguments: tuple[str, ...], token: str
) -> None:
    says(server, when=TOKENS, authenticated=True, user={"username": "teacher"})
    says(server, when=RIGHTS, allowed=True)
    result = await call(tmp_path, page, *arguments)
    assert result == (0, f"{SECRET_URL}\n", "")
    [review] = [seen.json["spec"]["token"] for seen in server.seen if seen.path.endswith("/tokenreviews")]
    assert review == token


MADE = "POST /api/v1/namespaces/{}/serviceaccounts/{}/token"


@pytest.mark.parametrize(
    ("user", "arguments", "account"),
    [
        ("system:serviceaccount:team-a:portal", (), ("team-a", "portal")),
        ("ann", ("--service-account=desk", "--namespace=team-b"), ("team-b", "desk")),
    ],
)
async def test_a_token_is_made_for_the_page_alone(
    server: ScriptedServer, page: str, tmp_path: Path, user: str, arguments: tuple[str, ...], account: tuple[str, str]
) -> None:
    says(server, when="POST /apis/authentication.k8s.io/v1/selfsubjectreviews", userInfo={"username": user})
    says(server, when=MADE.format(*account), token="made")
    says(server, when=TOKENS, authenticated=True, user={"username": "teacher"})
    says(server, when=RIGHTS, allowed=True)
    assert await call(tmp_path, page, *arguments) == (0, f"{SECRET_URL}\n", "")
    [made] = [seen.json["spec"] for seen in server.seen if seen.path.endswith("/token")]
    assert made == {"audiences": ["vkprovider.io"], "expirationSeconds": 600}
    [review] = [seen.json["spec"]["token"] for seen in server.seen if seen.path.endswith("/tokenreviews")]
    assert review == "made"


async def test_who_may_not_make_a_token_is_told(server: ScriptedServer, page: str, tmp_path: Path) -> None:
    lacks = 'cannot create resource "serviceaccounts/token" in API group "" in the namespace "default"'
    text = f'serviceaccounts "desk" is forbidden: User "teacher" {lacks}'
    server.next(refuse(403, text), when=MADE.format("default", "desk"))
    result = await call(tmp_path, page, "--service-account=desk", "--namespace=default")
    assert (result.code, "no token of serviceaccount default/desk for the page" in result.err) == (1, True)
    assert "default is the namespace of a context that names none, and no class: name yours with -n" in result.err


async def test_who_may_not_is_told_what_is_missing(server: ScriptedServer, page: str, tmp_path: Path) -> None:
    says(server, when=TOKENS, authenticated=True, user={"username": "teacher"})
    says(server, when=RIGHTS, allowed=False)
    result = await call(tmp_path, page)
    assert result.code == 1
    assert "may not get lablets.vkprovider.io/login of the Pod that has this lab" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("path", "words"), [("/moved", "answered 302"), ("/broken", "Bad Gateway"), ("/nowhere", "answered 404")]
)
async def test_what_stands_in_the_way_is_told(page: str, tmp_path: Path, path: str, words: str) -> None:
    result = await call(tmp_path, page + path)
    assert result.code == 1
    assert words in result.err
    assert "abc" not in result.err, "the token stays secret"


async def test_nobody_answers(tmp_path: Path, page: str) -> None:
    assert page
    result = await call(tmp_path, "http://127.0.0.1:9")
    assert (result.code, "http://127.0.0.1:9" in result.err and "cannot be asked" in result.err) == (1, True)
