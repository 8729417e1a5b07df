"""Who asks and whether the cluster lets them, against a scripted server."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.component.web.reviews import RIGHTS, TOKENS, says
from tests.support.scripted import ScriptedServer, refuse
from vkprovider.labs.http.refusals import lablet_right, path_right
from vkprovider.platform.http import access
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.rights import User

ANN = {"username": "ann", "uid": "u-1", "groups": ["team"], "extra": {"scopes": ["a", "b"]}}
STATS = path_right("/admin/stats", "get")


def asking(token: str = "t-1") -> web.Request:  # noqa: S107 (made up)
    return make_mocked_request("GET", "/", headers={"Authorization": f"Bearer {token}"} if token else {})


async def refused(awaitable: Any) -> tuple[int, str, str]:
    with pytest.raises(Refused) as caught:
        await awaitable
    body = json.loads(caught.value.text or "")
    return caught.value.status, body["reason"], body["message"]


async def test_who_may_passes_and_the_cluster_is_asked_once(server: ScriptedServer, kube: KubeClient) -> None:
    now = 100.0
    guard = AccessControl(kube, now=lambda: now)
    says(server, when=TOKENS, authenticated=True, user=ANN)
    says(server, when=RIGHTS, allowed=True)
    users = await asyncio.gather(*(guard.require(asking(), STATS) for _ in range(5)))
    assert users == [User("ann", "u-1", ["team"], {"scopes": ["a", "b"]})] * 5
    assert [s.path.rpartition("/")[2] for s in server.seen] == ["tokenreviews", "subjectaccessreviews"]
    assert server.seen[0].json["spec"] == {"token": "t-1"}
    assert server.seen[1].json["spec"] == {
        "user": "ann",
        "uid": "u-1",
        "groups": ["team"],
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/admin/stats", "verb": "get"},
    }
    now += access.REMEMBER_S
    says(server, when=TOKENS, authenticated=False)
    assert (await refused(guard.require(asking(), STATS)))[:2] == (401, "TokenInvalid")


async def test_what_is_asked_about_a_lablet(server: ScriptedServer, kube: KubeClient) -> None:
    says(server, when=RIGHTS, allowed=True)
    await AccessControl(kube).check(User("ann"), lablet_right("download", "team-a", "pod-1"))
    assert server.seen[0].json["spec"] == {
        "user": "ann",
        "resourceAttributes": {
            "group": "vkprovider.io",
            "version": "v1alpha1",
            "resource": "lablets",
            "subresource": "download",
            "namespace": "team-a",
            "name": "pod-1",
            "verb": "get",
        },
    }


async def test_one_right_says_nothing_about_another(server: ScriptedServer, kube: KubeClient) -> None:
    guard = AccessControl(kube)
    says(server, when=RIGHTS, allowed=True)
    says(server, when=RIGHTS, allowed=False, times=2)
    assert await guard.may(User("ann"), STATS)
    assert not await guard.may(User("bob"), STATS)
    status, reason, message = await refused(guard.check(User("ann"), path_right("/admin/trigger-reconcile", "post")))
    assert (status, reason) == (403, "NotAllowed")
    assert "'ann' may not post the non-resource URL /admin/trigger-reconcile" in message
    assert await guard.may(User("ann"), STATS)


async def test_refusals_are_remembered_more_briefly(server: ScriptedServer, kube: KubeClient) -> None:
    now = 0.0
    guard = AccessControl(kube, now=lambda: now)
    says(server, when=RIGHTS, allowed=False)
    says(server, when=RIGHTS, allowed=True)
    assert not await guard.may(User("ann"), STATS)
    now = access.REMEMBER_REFUSED_S - 0.1
    assert not await guard.may(User("ann"), STATS)
    now = access.REMEMBER_REFUSED_S
    assert await guard.may(User("ann"), STATS)


async def test_nobody_is_refused_without_asking(server: ScriptedServer, kube: KubeClient) -> None:
    guard = AccessControl(kube)
    assert (await refused(guard.user(asking(""))))[:2] == (401, "TokenMissing")
    assert (await refused(guard.user(asking("x" * 20_000))))[:2] == (401, "TokenInvalid")
    assert server.seen == []


async def test_a_user_without_a_name_is_nobody(server: ScriptedServer, kube: KubeClient) -> None:
    says(server, when=TOKENS, authenticated=True)
    assert (await refused(AccessControl(kube).user(asking())))[:2] == (401, "TokenInvalid")


@pytest.mark.parametrize("status", [403, 500, 503])
async def test_an_api_server_that_is_no_help_refuses_nobody_for_ever(
    server: ScriptedServer, kube: KubeClient, status: int
) -> None:
    guard = AccessControl(kube)
    server.next(refuse(status, "not now"), when=TOKENS)
    code, reason, message = await refused(guard.require(asking(), STATS))
    assert (code, reason) == (503, "ApiServerUnavailable")
    assert "not now" in message
    says(server, when=TOKENS, authenticated=True, user=ANN)
    says(server, when=RIGHTS, allowed=True)
    assert (await guard.require(asking(), STATS)).username == "ann"


async def test_memory_is_bounded(server: ScriptedServer, kube: KubeClient) -> None:
    guard = AccessControl(kube, entries_max=10)
    says(server, when=TOKENS, times=31, authenticated=False)
    for number in [*range(30), 29, 0]:
        await refused(guard.user(asking(f"t-{number}")))
    assert len(guard._users) == 10
    assert len(server.seen) == 31, "the latest is remembered, the first is not"
