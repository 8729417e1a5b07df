"""The issuer of the tests does what the tests of logins rely on, and the API server trusts it; a plain client asks."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from tests.component.portal.openid.people import CONFIDENTIAL, PUBLIC, SECRET
from tests.support.apiserver import Admin, ApiServer
from tests.support.issuer import CODE, REFRESH, Issuer, TokenLives
from tests.support.page import visiting

CALLBACK = "http://127.0.0.1:9/login/organisation/callback"
SCOPES = "openid profile email groups offline_access"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
Json = dict[str, Any]


class PlainClient:
    """A client of the issuer that knows nothing but the specification."""

    def __init__(self, issuer: Issuer, http: httpx.AsyncClient, client: str = PUBLIC, secret: str = "") -> None:
        self.issuer = issuer
        self.http = http
        self.client = client
        self.auth = (client, secret) if secret else None
        self.verifier = secrets.token_urlsafe(48)
        self.endpoints: Json = {}

    async def discover(self) -> Json:
        self.endpoints = (await self.http.get(f"{self.issuer.url}/.well-known/openid-configuration")).json()
        return self.endpoints

    def address(self, **more: str) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client,
            "redirect_uri": CALLBACK,
            "scope": SCOPES,
            "state": "a-state",
            "nonce": "a-nonce",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            **more,
        }
        return f"{self.endpoints['authorization_endpoint']}?{urlencode(asked)}"

    async def token(self, **fields: str) -> httpx.Response:
        if self.auth is None:
            fields["client_id"] = self.client
        auth = httpx.USE_CLIENT_DEFAULT if self.auth is None else httpx.BasicAuth(*map(_quoted, self.auth))
        return await self.http.post(self.endpoints["token_endpoint"], data=fields, auth=auth)

    async def log_in(self, name: str, **more: str) -> Json:
        """Log in as a user, and return what the token endpoint answers."""
        back = await self.issuer.log_in(self.http, self.address(**more), name)
        asked = {each: values[0] for each, values in parse_qs(urlsplit(back).query).items()}
        assert (back.split("?")[0], asked["state"], asked["iss"]) == (CALLBACK, "a-state", self.issuer.url)
        fields = {"code": asked["code"], "redirect_uri": CALLBACK, "code_verifier": self.verifier}
        answer = await self.token(grant_type=CODE, **fields)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def renew(self, refresh: str) -> httpx.Response:
        return await self.token(grant_type=REFRESH, refresh_token=refresh)


def _quoted(text: str) -> str:
    return urlencode({"": text})[1:]  # as OAuth has it in HTTP Basic


def claims_of(token: str) -> Json:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


@pytest.fixture
async def client(issuer: Issuer) -> AsyncIterator[PlainClient]:
    async with issuer.browser() as http:
        client = PlainClient(issuer, http)
        await client.discover()
        yield client


async def who(server: ApiServer, token: str) -> tuple[int, Json]:
    """Return how the API server answers the owner of a token who asks for the own name."""
    async with httpx.AsyncClient(verify=server.client_tls()) as http:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await http.post(server.url + REVIEWS, json=body, headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, answer.json()["status"]["userInfo"] if answer.is_success else {}


async def test_the_api_server_knows_a_user_of_the_issuer_with_the_groups(
    client: PlainClient, apiserver: ApiServer
) -> None:
    assert client.endpoints["issuer"] == client.issuer.url
    assert set(SCOPES.split()) <= set(client.endpoints["scopes_supported"])
    assert client.endpoints["code_challenge_methods_supported"] == ["S256"]
    issued = await client.log_in("alice")
    claims = claims_of(issued["id_token"])
    assert (claims["nonce"], claims["aud"], claims["exp"] - claims["iat"]) == ("a-nonce", PUBLIC, 120)
    status, user = await who(apiserver, issued["id_token"])
    assert (status, user["username"]) == (201, "oidc:alice")
    assert set(user["groups"]) == {"oidc:ccna", "system:authenticated"}
    header = {"Authorization": f"Bearer {issued['access_token']}"}
    told = (await client.http.get(client.endpoints["userinfo_endpoint"], headers=header)).json()
    assert (told["preferred_username"], told["email"], told["groups"]) == ("alice", "alice@example.org", ["ccna"])
    async with Admin(apiserver) as admin:
        assert await admin.items("/api/v1/namespaces"), "client certificates are taken as well"


async def test_a_client_with_a_secret_must_show_it_and_no_client_goes_without_pkce(
    issuer: Issuer, client: PlainClient
) -> None:
    async with issuer.browser() as http:
        confidential = PlainClient(issuer, http, CONFIDENTIAL, SECRET)
        await confidential.discover()
        assert claims_of((await confidential.log_in("bob"))["id_token"])["aud"] == CONFIDENTIAL
        confidential.auth = (CONFIDENTIAL, "a guess")
        assert (await confidential.token(grant_type=CODE, code="x", redirect_uri=CALLBACK)).status_code == 401
    address = client.address().replace("code_challenge", "no_challenge")
    assert "error=invalid_request" in await issuer.log_in(client.http, address, "alice")
    elsewhere = await client.http.get(client.address(redirect_uri="https://example.org/"))
    assert (elsewhere.status_code, "redirect_uri" in elsewhere.text) == (400, True)


async def test_who_has_a_session_at_the_issuer_need_not_log_in_again(client: PlainClient) -> None:
    back = (await client.http.get(client.address(prompt="none"))).headers["Location"]
    assert "error=login_required" in back
    await client.log_in("alice")
    assert "id_token" in await client.log_in("alice", prompt="none")


async def test_a_refresh_token_is_taken_once_and_its_second_use_ends_all_that_came_of_it(client: PlainClient) -> None:
    first = (await client.log_in("alice"))["refresh_token"]
    second = (await client.renew(first)).json()["refresh_token"]
    assert second != first
    assert client.issuer.presented_twice() == []
    again = await client.renew(first)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert (await client.renew(second)).json()["error"] == "invalid_grant"
    assert client.issuer.presented_twice() == [first]
    assert [each.error for each in client.issuer.requests(REFRESH)] == ["", "invalid_grant", "invalid_grant"]
    assert len(client.issuer.requests(CODE)) == 1


async def test_an_answer_is_lost_or_late_after_its_request_was_processed(client: PlainClient) -> None:
    first = (await client.log_in("alice"))["refresh_token"]
    client.issuer.delay_answer(0.5)
    began = time.monotonic()
    second = (await client.renew(first)).json()["refresh_token"]
    assert time.monotonic() - began >= 0.5
    client.issuer.lose_answer()
    with pytest.raises(httpx.RemoteProtocolError):
        await client.renew(second)
    assert [(each.refresh, each.error) for each in client.issuer.requests(REFRESH)] == [(first, ""), (second, "")]
    assert (await client.renew(second)).status_code == 400, "it was rotated, though nobody knows the next one"


async def test_groups_change_and_a_disabled_user_gets_nothing_more(client: PlainClient, apiserver: ApiServer) -> None:
    client.issuer.set_lives(TokenLives(id_s=30))
    issued = await client.log_in("alice")
    client.issuer.set_groups("alice", "ccnp", "night")
    renewed = (await client.renew(issued["refresh_token"])).json()
    claims = claims_of(renewed["id_token"])
    assert (claims["groups"], claims["exp"] - claims["iat"]) == (["ccnp", "night"], 30)
    assert {"oidc:ccnp", "oidc:night"} < set((await who(apiserver, renewed["id_token"]))[1]["groups"])
    client.issuer.disable("alice")
    assert (await client.renew(renewed["refresh_token"])).json()["error"] == "invalid_grant"


async def test_the_issuer_forgets_nothing_while_it_is_stopped(client: PlainClient, apiserver: ApiServer) -> None:
    issued = await client.log_in("alice")
    client.issuer.stop()
    with pytest.raises(httpx.ConnectError):
        await client.renew(issued["refresh_token"])
    client.issuer.start(end_session=False)
    assert "end_session_endpoint" not in await client.discover()
    renewed = await client.renew(issued["refresh_token"])
    assert renewed.status_code == 200, renewed.text
    assert (await who(apiserver, renewed.json()["id_token"]))[0] == 201
    assert len(client.issuer.requests()) == 2


@pytest.mark.parametrize(
    ("claims", "stranger"),
    [
        ({"iss": "https://127.0.0.1:9"}, False),
        ({"aud": "another"}, False),
        ({"preferred_username": None}, False),
        ({}, True),
    ],
    ids=("issuer", "audience", "no-name", "key"),
)
async def test_the_api_server_takes_no_spoiled_token(
    client: PlainClient, apiserver: ApiServer, claims: Json, *, stranger: bool
) -> None:
    client.issuer.spoil(claims, stranger=stranger)
    assert (await who(apiserver, (await client.log_in("alice"))["id_token"]))[0] == 401
    assert (await who(apiserver, (await client.log_in("alice"))["id_token"]))[0] == 201, "one alone is spoiled"


async def test_log_in_refuse_and_log_out_in_a_browser(issuer: Issuer, client: PlainClient) -> None:
    assert "end_session_endpoint" in client.endpoints
    async with visiting(issuer.url) as page:
        page.expects(r"ERR_CONNECTION_REFUSED|ERR_UNSAFE_PORT|Failed to load resource")
        await page.run(lambda driver: driver.get(client.address()))
        await page.fill("#user", "alice")
        await page.press("#deny")
        await page.until(lambda driver: "error=access_denied" in driver.current_url, "the issuer leads back")
        await page.run(lambda driver: driver.get(client.address()))
        await issuer.fill_form(page, "alice")
        await page.until(lambda driver: "code=" in driver.current_url, "the issuer leads back with a code")
        await page.run(lambda driver: driver.get(client.endpoints["end_session_endpoint"]))
        await page.press("#leave")
        await page.shows("You are logged out at the issuer")
        await page.run(lambda driver: driver.get(client.address(prompt="none")))
        await page.until(lambda driver: "error=login_required" in driver.current_url, "nobody is logged in there")
