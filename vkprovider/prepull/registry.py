"""A registry, asked for the tags of a repository and for digests: Docker Hub, Quay, Artifact Registry, one's own.

All have the distribution API (OCI distribution-spec 1.1) with the tokens of Docker's registries.
"""

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

from tunnels.outgoing import open_session
from vkprovider.platform.errors import Forbidden, NotFound, OutsideError, Unavailable
from vkprovider.platform.http.client import HttpAnswer, SilentError, ask
from vkprovider.portal.pure.nodeimages import ImageName
from vkprovider.prepull.distribution import (
    DockerConfig,
    TagPage,
    TokenAnswer,
    challenge_of,
    next_page,
)

T = TypeVar("T")
TAGS_MAX: Final = 20_000
"""Where a repository is no longer read: what its newest version is cannot be said from a part."""
_DEADLINE_S: Final = 30.0
_CONNECT_S: Final = 10.0
_BODY_BYTES_MAX: Final = 8 << 20
_PAGE: Final = "1000"
_MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
)
"""What a kubelet asks for: of an image for several machines, the digest of the list."""
_REFUSALS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class Registry:
    """One registry; use it as a context.

    Args:
        image: Any image of it.
        logins: Names and passwords by registry.
        plain_http: Whether it speaks no TLS.

    Raises from each method:
        NotFound: There is no such repository or tag.
        Forbidden: It wants a login, or another one.
        Unavailable: It does not answer, or not as a registry.
    """

    def __init__(self, image: ImageName, logins: DockerConfig, *, plain_http: bool = False) -> None:
        self._base = f"{'http' if plain_http else 'https'}://{image.api_host}"
        self._login = logins.login_of(image.registry)
        self._authorization: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        """Open a session; nothing is asked."""
        self._http = open_session(aiohttp.TCPConnector(), connect_s_max=_CONNECT_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._http.close()

    async def tags(self, image: ImageName) -> list[str]:
        """Return all tags of a repository, page by page."""
        path, query = f"/v2/{image.path}/tags/list", {"n": _PAGE}
        found: list[str] = []
        while True:
            answer = await self._ask("GET", path, image, query)
            page = _decode(answer.body, TagPage, f"{self._base}{path}")
            found += page.tags or ()
            after = next_page(answer.headers.get("link", ""), f"{self._base}{path}")
            if after is None:
                return found
            if after[1] == query or len(found) > TAGS_MAX:
                raise Unavailable(
                    f"{image.repository} has more than {TAGS_MAX} tags, or its registry gives one page twice"
                )
            path, query = after

    async def digest(self, image: ImageName) -> str:
        """Return the digest that a tag names now."""
        answer = await self._ask("HEAD", f"/v2/{image.path}/manifests/{image.tag}", image, {})
        digest = answer.headers.get("docker-content-digest", "")
        if not digest.startswith("sha256:"):
            raise Unavailable(f"{self._base} names no digest of {image.tagged}")
        return digest

    async def _ask(self, method: str, path: str, image: ImageName, query: Mapping[str, str]) -> HttpAnswer:
        """Ask the registry, once more with a token if it wants one."""
        answer = await self._send(method, self._base + path, query, {"Accept": _MANIFESTS, **self._of(image)})
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._authorization[image.path] = await self._authorize(answer.headers.get("www-authenticate", ""), image)
            answer = await self._send(method, self._base + path, query, {"Accept": _MANIFESTS, **self._of(image)})
        if answer.status == HTTPStatus.OK:
            return answer
        what = f"{self._base}{path} answers {answer.status}"
        if answer.status in _REFUSALS:
            raise Forbidden(
                f"{what}: {'the login is refused' if self._login else 'it wants a login'}", status=answer.status
            )
        kind: type[OutsideError] = NotFound if answer.status == HTTPStatus.NOT_FOUND else Unavailable
        raise kind(what, status=answer.status)

    def _of(self, image: ImageName) -> dict[str, str]:
        given = self._authorization.get(image.path)
        return {"Authorization": given} if given else {}

    async def _authorize(self, header: str, image: ImageName) -> str:
        """Return what a request is to bring, by what the registry asked for."""
        basic = ""
        if self._login is not None:
            basic = f"Basic {base64.b64encode(':'.join(self._login).encode()).decode()}"
        challenge = challenge_of(header, self._base, image.path)
        if challenge is None:
            raise Unavailable(f"{self._base} asks for a login in a way that is not known here")
        if not challenge.realm:
            return basic
        headers = {"Authorization": basic} if basic else {}
        answer = await self._send("GET", challenge.realm, challenge.query, headers)
        if answer.status in _REFUSALS:
            raise Forbidden(
                f"{challenge.realm} refuses {'the login' if basic else 'who has no login'}", status=answer.status
            )
        if answer.status != HTTPStatus.OK:
            raise Unavailable(f"{challenge.realm} answers {answer.status}", status=answer.status)
        given = _decode(answer.body, TokenAnswer, challenge.realm)
        return f"Bearer {given.token or given.access_token}"

    async def _send(self, method: str, url: str, query: Mapping[str, str], headers: Mapping[str, str]) -> HttpAnswer:
        try:
            return await ask(
                self._http,
                method,
                URL(url),
                within_s=_DEADLINE_S,
                bytes_max=_BODY_BYTES_MAX,
                params=query,
                headers=headers,
            )
        except (SilentError, TimeoutError) as error:
            raise Unavailable(f"{url} does not answer: {error}") from error


def _decode(body: bytes, shape: type[T], url: str) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Unavailable(f"{url} does not answer as a registry: {error}") from error
