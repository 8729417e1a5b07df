"""An organisation's issuer, asked by OpenID Connect: where one logs in and out, tokens of a login, their renewal.

Authlib says what the requests hold and judges what comes back; a token is used only if it is signed by the issuer, for
this portal and for this login. The API server judges it once more.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from yarl import URL

from tunnels.outgoing import open_session
from vkprovider.platform.http.client import SilentError, ask

T = TypeVar("T")
_DEADLINE_S: Final = 15.0
_CONNECT_S: Final = 5.0
_BODY_BYTES_MAX: Final = 1 << 20
_KEPT_S: Final = 3600.0
"""For how long what the issuer says of itself is not asked again."""
_LEEWAY_S: Final = 60
"""How far the clocks of the issuer and of the API server may be apart."""
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key pair: with a secret that both know, whoever has it could make tokens."""


class IssuerRefusedError(Exception):
    """The issuer refuses: the code or the refresh token is known no more, or this client is not."""


class IssuerSilentError(Exception):
    """The issuer does not answer, or not as one.

    Attributes:
        reached: Whether it may have done what was asked.
    """

    def __init__(self, words: str, *, reached: bool = True) -> None:
        super().__init__(words)
        self.reached: Final = reached


class IssuerClient(NamedTuple):
    """The portal, as its issuer knows it.

    Attributes:
        issuer: Its URL, as its tokens name it.
        client_id: The name of the portal there.
        secret: Its secret; "" if it has none.
        scopes: Those that are asked for, as far as the issuer has them.
        prompt: What the issuer is to ask each time, such as `consent`; "" leaves that to it.
    """

    issuer: str
    client_id: str
    secret: str
    scopes: tuple[str, ...]
    prompt: str


class IssuerTokens(msgspec.Struct, frozen=True):
    """What a login gives.

    Attributes:
        id_token: Says who logged in; the API server takes it.
        refresh_token: Gives the next tokens, once; "" if the issuer gives none.
        subject: Who logged in, in the issuer's words.
    """

    id_token: str
    refresh_token: str
    subject: str


class _Metadata(msgspec.Struct, frozen=True):
    """What an issuer says of itself (OpenID Connect Discovery 1.0, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Answer(msgspec.Struct, frozen=True):
    id_token: str = ""
    refresh_token: str = ""


class _Kept(NamedTuple):
    metadata: _Metadata
    keys: KeySet
    until: float


class Issuer:
    """The issuer of an organisation.

    Raises from each method:
        IssuerRefusedError: It refuses, or answers with a token that is none of this login.
        IssuerSilentError: It does not answer, or not as an issuer.
    """

    def __init__(self, client: IssuerClient, wall: Callable[[], float], tls: Callable[[], Any]) -> None:
        """Create it; nothing is asked.

        Args:
            client: The portal, as the issuer knows it.
            wall: Returns Unix seconds.
            tls: Returns how its certificate is verified, as aiohttp takes it.
        """
        self._client: Final = client
        self._wall: Final = wall
        self._tls: Final = tls
        self._kept: _Kept | None = None

    async def authorize(self, *, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Return the URL at which one logs in.

        Args:
            redirect_uri: Where the issuer sends the browser back.
            state: Comes back with the code.
            nonce: Comes back in the ID token.
            verifier: Proves whoever asks for the tokens as the one who began (RFC 7636).
        """
        metadata, client = (await self._known()).metadata, self._client
        has = metadata.scopes_supported
        return str(
            prepare_grant_uri(
                metadata.authorization_endpoint,
                client.client_id,
                "code",
                redirect_uri,
                [scope for scope in client.scopes if not has or scope in has or scope == "openid"],
                state,
                nonce=nonce,
                prompt=client.prompt or None,
                code_challenge=create_s256_code_challenge(verifier),  # type: ignore[no-untyped-call]
                code_challenge_method="S256",
            )
        )

    async def exchange(self, code: str, *, redirect_uri: str, nonce: str, verifier: str) -> IssuerTokens:
        """Return the tokens of a login; its code can be used once."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return await self._tokens(form, nonce)

    async def renew(self, refresh_token: str) -> IssuerTokens:
        """Return the next tokens; many issuers take a refresh token once, and end the login if it comes again."""
        tokens = await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token}, "")
        return tokens if tokens.refresh_token else msgspec.structs.replace(tokens, refresh_token=refresh_token)

    async def log_out(self, id_token: str, then: str) -> str:
        """Return the URL at which the session at the issuer ends; "" if it has none.

        Args:
            id_token: Of the session.
            then: Where the issuer sends the browser afterwards.
        """
        metadata = (await self._known()).metadata
        if not metadata.end_session_endpoint:
            return ""
        asked = {"id_token_hint": id_token, "post_logout_redirect_uri": then, "client_id": self._client.client_id}
        joint = "&" if "?" in metadata.end_session_endpoint else "?"
        return f"{metadata.end_session_endpoint}{joint}{urlencode(asked)}"

    # ------------------------------------------------------------------------------------------ what it answers

    async def _tokens(self, form: dict[str, str], nonce: str) -> IssuerTokens:
        metadata, client = (await self._known()).metadata, self._client
        login: str | None = None
        if not client.secret:
            form["client_id"] = client.client_id
        elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            login = aiohttp.encode_basic_auth(_quoted(client.client_id), _quoted(client.secret))
        else:
            form |= {"client_id": client.client_id, "client_secret": client.secret}
        answer = await self._ask("POST", metadata.token_endpoint, _Answer, form=form, login=login)
        if not answer.id_token:
            raise IssuerRefusedError("its answer has no ID token: the scope openid is missing")
        subject = await self._subject(answer.id_token, nonce)
        return IssuerTokens(answer.id_token, answer.refresh_token, subject)

    async def _subject(self, id_token: str, nonce: str) -> str:
        """Return whom an ID token names, if it is the issuer's, for this portal and this login."""
        known = await self._known()
        try:
            try:
                token = jwt.decode(id_token, known.keys, algorithms=list(_ALGORITHMS))
            except (JoseError, ValueError):  # the issuer may sign with a new key
                known = await self._known(anew=True)
                token = jwt.decode(id_token, known.keys, algorithms=list(_ALGORITHMS))
            options = {
                "iss": {"essential": True, "value": known.metadata.issuer},
                "aud": {"essential": True, "value": self._client.client_id},
            }
            wants = {"nonce": nonce, "client_id": self._client.client_id}
            claims = CodeIDToken(token.claims, token.header, options, wants)
            claims.validate(now=int(self._wall()), leeway=_LEEWAY_S)
        except (JoseError, AuthlibBaseError, ValueError) as error:
            raise IssuerRefusedError(f"its ID token is none of this login: {error}") from error
        return str(claims["sub"])

    async def _known(self, *, anew: bool = False) -> _Kept:
        """Return what the issuer says of itself, and its keys."""
        if self._kept is not None and not anew and self._wall() < self._kept.until:
            return self._kept
        url = get_well_known_url(self._client.issuer, external=True)
        metadata = await self._ask("GET", url, _Metadata)
        if metadata.issuer.rstrip("/") != self._client.issuer.rstrip("/"):
            raise IssuerSilentError(f"{url} is of the issuer {metadata.issuer!r}", reached=False)
        found = await self._ask("GET", metadata.jwks_uri, dict[str, Any])
        try:
            keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise IssuerSilentError(f"{metadata.jwks_uri}: no keys: {error}", reached=False) from error
        self._kept = kept = _Kept(metadata, keys, self._wall() + _KEPT_S)
        return kept

    async def _ask(
        self,
        method: str,
        url: str,
        type_: type[T],
        *,
        form: Mapping[str, str] | None = None,
        login: str | None = None,
    ) -> T:
        headers = {"Accept": "application/json"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if login is not None:
            headers["Authorization"] = login
        try:
            async with open_session(aiohttp.TCPConnector(), connect_s_max=_CONNECT_S) as session:
                status, body, _ = await ask(
                    session,
                    method,
                    URL(url, encoded=True),
                    within_s=_DEADLINE_S,
                    bytes_max=_BODY_BYTES_MAX,
                    headers=headers,
                    data=form,
                    tls=self._tls(),
                )
        except SilentError as error:
            reached = not isinstance(error.__cause__, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
            raise IssuerSilentError(f"{url}: {error}", reached=reached) from error
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise IssuerRefusedError(f"{url}: HTTP {status} {body[:200].decode(errors='replace')}")
        if status != HTTPStatus.OK:
            raise IssuerSilentError(f"{url}: HTTP {status}")
        try:
            return msgspec.json.decode(body, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise IssuerSilentError(f"{url}: not what an issuer answers: {error}") from error


def _quoted(text: str) -> str:
    """Encode a name or secret as RFC 6749, 2.3.1 has it in the header."""
    return urlencode({"": text})[1:]
