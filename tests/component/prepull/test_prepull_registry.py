"""A registry is asked for tags and digests, with the tokens of Docker's registries (R002-068)."""

import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.support.scripted import Handler, ScriptedServer, answer, refuse
from vkprovider.platform.errors import Forbidden, NotFound, Unavailable
from vkprovider.portal.pure.nodeimages import ImageName
from vkprovider.prepull.distribution import DockerConfig
from vkprovider.prepull.registry import Registry

DIGEST = f"sha256:{'a' * 64}"
LIST = "/v2/team/lab/tags/list"


@pytest.fixture
def image(server: ScriptedServer) -> ImageName:
    return ImageName(f"127.0.0.1:{server.port}", "team/lab", "recommended")


@pytest.fixture
async def registry(image: ImageName) -> AsyncIterator[Registry]:
    async with Registry(
        image, DockerConfig({image.registry: {"username": "me", "password": "secret"}}), plain_http=True
    ) as it:
        yield it


def page(*tags: str, link: str = "", digest: str = "") -> Handler:
    async def handler(_: web.Request) -> web.Response:
        headers = {"Link": link} if link else {}
        return web.json_response(
            {"tags": list(tags)}, headers=headers | ({"Docker-Content-Digest": digest} if digest else {})
        )

    return handler


async def test_a_token_is_had_once_and_all_pages_are_read(
    server: ScriptedServer, registry: Registry, image: ImageName
) -> None:
    realm = f'Bearer realm="{server.url}/token",service="here",scope="repository:team/lab:pull"'
    server.next(refuse(401, "no", WWW_Authenticate=realm), when="tags/list")
    server.next(answer({"access_token": "t1"}), when="/token")
    server.next(page("a", "b", link=f'<{LIST}?last=b&n=1000>; rel="next"'), when="tags/list")
    server.next(page("c"), when="last=b")
    server.next(page(digest=DIGEST), when="HEAD")
    assert await registry.tags(image) == ["a", "b", "c"]
    assert await registry.digest(image) == DIGEST
    asked = [(each.path, each.headers.get("Authorization", "")) for each in server.seen]
    basic = f"Basic {base64.b64encode(b'me:secret').decode()}"
    manifest = "/v2/team/lab/manifests/recommended"
    assert asked == [(LIST, ""), ("/token", basic), (LIST, "Bearer t1"), (LIST, "Bearer t1"), (manifest, "Bearer t1")]
    assert server.seen[1].query == {"service": "here", "scope": "repository:team/lab:pull"}
    assert "application/vnd.oci.image.index.v1+json" in server.seen[4].headers["Accept"]


async def test_a_registry_may_want_name_and_password_itself(
    server: ScriptedServer, registry: Registry, image: ImageName
) -> None:
    server.next(refuse(401, "no", WWW_Authenticate='Basic realm="x"'))
    server.next(page("a"))
    assert await registry.tags(image) == ["a"]
    assert server.seen[1].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [(404, NotFound, "answers 404"), (403, Forbidden, "the login is refused"), (500, Unavailable, "answers 500")],
)
async def test_what_a_registry_refuses(
    server: ScriptedServer, registry: Registry, image: ImageName, status: int, kind: type[Exception], said: str
) -> None:
    server.next(refuse(status, "no"))
    with pytest.raises(kind, match=said):
        await registry.tags(image)


async def test_what_is_no_registry_is_no_empty_list(
    server: ScriptedServer, registry: Registry, image: ImageName
) -> None:
    server.next(answer([1]))
    with pytest.raises(Unavailable, match="does not answer as a registry"):
        await registry.tags(image)
    server.next(page())
    with pytest.raises(Unavailable, match="names no digest"):
        await registry.digest(image)
    for _ in range(2):
        server.next(page("a", link=f'<{LIST}?n=1000>; rel="next"'))
    with pytest.raises(Unavailable, match="gives one page twice"):
        await registry.tags(image)
