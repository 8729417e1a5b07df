"""The claims of workers as the API server has them: all of them, or an error."""

from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted import ScriptedServer, refuse
from vkprovider.lablet import names
from vkprovider.labs.controllers.claims import reader
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context


@pytest.fixture
def ctx(kube: KubeClient) -> Context:
    return Context(kube, EventRecorder(kube, component="test", instance="r"), "i", "r", "n")


def store(worker: str, *sessions: str, installation: str = "i") -> dict[str, Any]:
    """Make the claims of a worker, whose lablets have these sessions."""
    rows = {
        f"uid-{session}": Claim(
            f"uid-{session}", "a", "p", "d", "u", "1", "x", session=Session("l", "k", "ann", id=session)
        )
        for session in sessions
    }
    data, _ = document.write(document.StoredClaims(rows), worker=worker, installation="i")
    metadata = {
        "name": names.claims_name(worker),
        "namespace": "n",
        "annotations": {wellknown.ANNOTATION_INSTALLATION: installation},
    }
    return {"metadata": metadata, "data": data}


def stored(server: ScriptedServer, *stores: dict[str, Any]) -> None:
    async def no_workers(request: web.Request) -> web.Response:
        assert request.path.endswith("/cmlworkers")
        return web.json_response({"metadata": {}, "items": []})

    server.next(no_workers, when="GET")

    async def answer(request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == "vkprovider.io/component=claims"
        return web.json_response({"metadata": {}, "items": list(stores)})

    server.next(answer, when="GET")


def sessions(found: list[Claim]) -> list[str]:
    return [claim.session.id for claim in found if claim.session is not None]


async def test_of_every_worker(server: ScriptedServer, ctx: Context) -> None:
    stored(server, store("w1", "s-0"), store("w2", "s-1", "s-9"))
    assert sessions(await reader.of_all(ctx)) == ["s-0", "s-1", "s-9"]


async def test_one_store_that_cannot_be_read_is_an_error(server: ScriptedServer, ctx: Context) -> None:
    """It may name any session: none may be taken for a stray then."""
    stored(server, store("w1", "s-0"), store("w2", "s-1", installation="other"))
    with pytest.raises(InputError, match="ClaimStoreInvalid"):
        await reader.of_all(ctx)


async def test_an_api_server_that_is_no_help_is_an_error(server: ScriptedServer, ctx: Context) -> None:
    server.next(refuse(503, "not now"), when="GET", times=2)
    with pytest.raises(Unavailable):
        await reader.of_all(ctx)
    with pytest.raises(Unavailable):
        await reader.of_worker(ctx, "w1")


async def test_of_one_worker(server: ScriptedServer, ctx: Context) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/api/v1/namespaces/n/configmaps/" + names.claims_name("w2")
        return web.json_response(store("w2", "s-1"))

    server.next(answer, when="GET")
    assert sessions(list((await reader.of_worker(ctx, "w2")).values())) == ["s-1"]
    server.next(refuse(404, "not found"), when="GET", times=2)
    assert await reader.of_worker(ctx, "w3") == {}


async def test_lost_claims_of_a_worker_in_use_are_an_error(server: ScriptedServer, ctx: Context) -> None:
    """Its finalizer shows that it has claims: "no claims" would let content and sessions be removed."""

    async def in_use(_: web.Request) -> web.Response:
        metadata = {"name": "w1", "uid": "u", "resourceVersion": "1", "finalizers": [names.FINALIZER]}
        return web.json_response({"metadata": {}, "items": [{"metadata": metadata, "spec": {}}]})

    async def no_claims(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {}, "items": []})

    server.next(in_use, when="GET")
    server.next(no_claims, when="GET")
    with pytest.raises(Unavailable, match="lost and are not rebuilt"):
        await reader.of_all(ctx)


async def test_without_the_crd_of_workers_the_claims_that_are_left_count(server: ScriptedServer, ctx: Context) -> None:
    """It was deleted first; definitions must be able to go after it."""
    server.next(refuse(404, "not found"), when="GET")

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {}, "items": [store("w1", "s-0")]})

    server.next(answer, when="GET")
    assert sessions(await reader.of_all(ctx)) == ["s-0"]
