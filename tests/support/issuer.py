"""A real OpenID Connect issuer, a process of its own: panva's oidc-provider, over TLS, with users that tests change.

    clients, users = [IssuerClient("portal", pattern=LOOPBACK)], [IssuerUser("alice", ("ccna",))]
    with issuing(folder, clients=clients, users=users) as issuer:
        issuer.set_groups("alice")
        issuer.lose_answer()
        assert issuer.presented_twice() == []

`make judges` installs it. Refresh tokens rotate: one that is presented a second time revokes all that its grant has.
Its commands go by a pipe and are answered within milliseconds, so that they need not be awaited.
"""

import base64
import dataclasses
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urljoin

import httpx
import pytest
import trustme
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.mosquitto import free_port
from tests.support.page import Page

REFRESH: Final = "refresh_token"
CODE: Final = "authorization_code"
LOOPBACK: Final = r"https?://127\.0\.0\.1:\d+/.*"
"""Redirect URIs of whatever listens on this machine."""
_MODULES: Final = Path(sys.prefix) / "judges" / "page" / "node_modules"
_PROGRAM: Final = Path(__file__).with_suffix(".mjs")
_STEPS_MAX: Final = 10


@dataclasses.dataclass(frozen=True)
class IssuerClient:
    """A client that is registered at an issuer; PKCE is required of all.

    Attributes:
        id: Its `client_id`.
        secret: Sent by HTTP Basic; "" for a public client.
        redirects: Redirect URIs, as they are.
        pattern: A regular expression of further ones, and of those after a logout.
    """

    id: str
    secret: str = ""
    redirects: tuple[str, ...] = ()
    pattern: str = ""


@dataclasses.dataclass(frozen=True)
class IssuerUser:
    """Somebody whom an issuer knows; the password is `password of NAME`.

    Attributes:
        name: The claim `preferred_username`; `sub` and `email` are made of it.
        groups: The claim `groups`.
        disabled: Whether nothing is issued any more.
    """

    name: str
    groups: tuple[str, ...] = ()
    disabled: bool = False

    @property
    def password(self) -> str:
        """What the login form asks for."""
        return f"password of {self.name}"

    @property
    def claims(self) -> dict[str, Any]:
        """What tokens and userinfo say."""
        return {
            "sub": f"sub-{self.name}",
            "preferred_username": self.name,
            "name": self.name.capitalize(),
            "email": f"{self.name}@example.org",
            "email_verified": True,
            "groups": list(self.groups),
        }


@dataclasses.dataclass(frozen=True)
class TokenLives:
    """For how many seconds what is issued from now on is valid."""

    id_s: int = 120
    access_s: int = 120
    refresh_s: int = 3600


@dataclasses.dataclass(frozen=True)
class TokenRequest:
    """A request of the token endpoint that was processed.

    Attributes:
        grant: Its `grant_type`.
        refresh: The refresh token that was presented, "" if none was.
        error: The error that it was answered with, "" if none.
        description: What was said about the error.
    """

    grant: str
    refresh: str
    error: str
    description: str


class Issuer:
    """One issuer on 127.0.0.1.

    Attributes:
        url: The issuer, as tokens name it.
        ca_file: The certificates that it is trusted by.
    """

    def __init__(
        self, folder: Path, clients: Sequence[IssuerClient], users: Sequence[IssuerUser], lives: TokenLives
    ) -> None:
        """Make keys and certificates; nothing runs yet."""
        self._port: Final = free_port()
        self.url: Final = f"https://127.0.0.1:{self._port}"
        self.ca_file: Final = folder / "issuer-ca.pem"
        self._folder: Final = folder
        self._clients: Final = clients
        self._first: Final = (tuple(users), lives)
        self._users: dict[str, IssuerUser] = {}
        self._lives = lives
        self._options = (True, True)
        self._key, self._strange_key, self._cookie_key = _rsa("own"), _rsa("own"), os.urandom(16).hex()
        authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self._certificate: Final = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.ECDSA)
        authority.cert_pem.write_to_path(self.ca_file)
        self._process: subprocess.Popen[str] | None = None
        self._begin()

    # ------------------------------------------------------------------------------------------ the process

    def start(self, *, end_session: bool = True, offline: bool = True) -> Self:
        """Start it, at the same port with the same keys as ever; it knows all that it has issued.

        Args:
            end_session: Whether it has an end-session endpoint.
            offline: Whether it has the scope `offline_access`, and issues refresh tokens.
        """
        self._options = (end_session, offline)
        chain = b"".join(each.bytes() for each in self._certificate.cert_chain_pems).decode()
        given = {
            "url": self.url,
            "port": self._port,
            "store": str(self._folder / "issuer-store.json"),
            "key": self._key,
            "strangeKey": self._strange_key,
            "cookieKey": self._cookie_key,
            "certificate": chain,
            "certificateKey": self._certificate.private_key_pem.bytes().decode(),
            "clients": [dataclasses.asdict(each) for each in self._clients],
            "endSession": end_session,
            "offline": offline,
            "state": {**self._state(), "spoiled": None, "faults": []},
        }
        settings = self._folder / "issuer.json"
        settings.write_text(json.dumps(given))
        with (self._folder / "issuer.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [_node(), str(_PROGRAM), str(_MODULES), str(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._answer() == "listening"
        return self

    def stop(self) -> None:
        """End it; nobody listens at its port until it is started again."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(20)
            process.stdout.close()

    def reset(self) -> None:
        """Have it be as at first, for the next test: it runs, with its users and no faults, and has counted nothing."""
        self._begin()
        if self._process is None or self._options != (True, True):
            self.stop()
            self.start()
        self._command("set", {**self._state(), "spoiled": None, "faults": []})
        self.forget_requests()

    def tls(self) -> ssl.SSLContext:
        """Return the TLS settings of a client that trusts it."""
        return ssl.create_default_context(cafile=str(self.ca_file))

    # ------------------------------------------------------------------------------------------ what tests change

    def put(self, user: IssuerUser) -> None:
        """Have a user, or change one: what is issued from now on says so."""
        self._users[user.name] = user
        self._command("set", self._state())

    def set_groups(self, name: str, *groups: str) -> None:
        """Have a user be in these groups alone."""
        self.put(dataclasses.replace(self._users[name], groups=groups))

    def disable(self, name: str) -> None:
        """Have nobody log in as a user any more, nor renew a token."""
        self.put(dataclasses.replace(self._users[name], disabled=True))

    def set_lives(self, lives: TokenLives) -> None:
        """Have what is issued from now on be valid for other times."""
        self._lives = lives
        self._command("set", self._state())

    def lose_answer(self, grant: str = REFRESH, *, after_s: float = 0.0) -> None:
        """Have the next request of a grant type be processed, and its connection end without an answer."""
        self._command("fault", {"grant": grant, "seconds": after_s, "lost": True})

    def delay_answer(self, seconds: float, grant: str = REFRESH) -> None:
        """Have the next request of a grant type be processed at once, and answered later."""
        self._command("fault", {"grant": grant, "seconds": seconds, "lost": False})

    def spoil(self, claims: Mapping[str, object], *, stranger: bool = False) -> None:
        """Have the next ID token be wrong.

        Args:
            claims: What it says instead; None: it lacks the claim.
            stranger: Whether it is signed by a key that the issuer does not publish.
        """
        self._command("set", {"spoiled": {"claims": dict(claims), "stranger": stranger}})

    # ------------------------------------------------------------------------------------------ what it was asked

    def requests(self, grant: str = "") -> list[TokenRequest]:
        """Return the token requests since the last `forget_requests`, of a grant type or of all."""
        asked = [TokenRequest(**each) for each in self._command("asked")]
        return [each for each in asked if grant in ("", each.grant)]

    def presented_twice(self) -> list[str]:
        """Return the refresh tokens that were presented more than once."""
        count = Counter(each.refresh for each in self.requests() if each.refresh)
        return [token for token, times in count.items() if times > 1]

    def forget_requests(self) -> None:
        """Count from nothing."""
        self._command("forget")

    # ------------------------------------------------------------------------------------------ who logs in

    async def log_in(self, http: httpx.AsyncClient, address: str, name: str) -> str:
        """Log in by the form, or by the session that there is; return the address to which the issuer leads back.

        Args:
            http: Keeps the cookies of the issuer, and trusts it.
            address: Of the authorization endpoint, as a client leads there.
            name: The user.
        """
        answer = await http.get(address)
        for _ in range(_STEPS_MAX):
            if answer.is_redirect:
                then = urljoin(str(answer.url), answer.headers["Location"])
                if not then.startswith(self.url):
                    return then
                answer = await http.get(then)
                continue
            assert 'id="password"' in answer.text, f"no login form: {answer.status_code} {answer.text}"
            fields = {"user": name, "password": self._users[name].password, "do": "enter"}
            answer = await http.post(answer.url, data=fields)
        raise AssertionError(f"{name} does not come to an end: {answer.text}")

    async def fill_form(self, page: Page, name: str) -> None:
        """Log in by the form in a browser that was led there."""
        await page.fill("#user", name)
        await page.fill("#password", self._users[name].password)
        await page.press("#enter")

    def browser(self) -> httpx.AsyncClient:
        """Return a browser without scripts that trusts the issuer, and follows nothing by itself."""
        return httpx.AsyncClient(verify=self.tls(), timeout=60, follow_redirects=False)

    # ------------------------------------------------------------------------------------------ the pipe

    def _begin(self) -> None:
        users, self._lives = self._first
        self._users = {user.name: user for user in users}

    def _state(self) -> dict[str, Any]:
        users = {
            name: {"claims": user.claims, "password": user.password, "disabled": user.disabled}
            for name, user in self._users.items()
        }
        lives = self._lives
        return {
            "users": users,
            "seconds": {"idToken": lives.id_s, "accessToken": lives.access_s, "refreshToken": lives.refresh_s},
        }

    def _command(self, name: str, argument: object = None) -> Any:
        assert self._process is not None, "the issuer is stopped"
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, argument]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the issuer has ended: {(self._folder / 'issuer.log').read_text()[-4000:]}"
        return json.loads(line)


@contextmanager
def issuing(
    folder: Path, *, clients: Sequence[IssuerClient], users: Sequence[IssuerUser], lives: TokenLives | None = None
) -> Iterator[Issuer]:
    """Run an issuer; its files are in a folder that is there."""
    issuer = Issuer(folder, clients, users, lives or TokenLives())
    try:
        yield issuer.start()
    finally:
        issuer.stop()


def trusting(folder: Path, issuer: Issuer, *audiences: str, prefix: str = "oidc:") -> str:
    """Return the argument of an API server that takes ID tokens of an issuer; the issuer must run when it starts.

    Args:
        folder: For the file.
        issuer: The one.
        audiences: The clients whose tokens are taken.
        prefix: What the names of users and groups begin with.
    """
    mappings = {name: {"claim": claim, "prefix": prefix} for name, claim in _CLAIMS.items()}
    trusted = {
        "url": issuer.url,
        "certificateAuthority": issuer.ca_file.read_text(),
        "audiences": list(audiences),
        "audienceMatchPolicy": "MatchAny",
    }
    config = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": trusted, "claimMappings": mappings}],
    }
    path = folder / "authentication.yaml"
    path.write_text(yaml.safe_dump(config))
    return f"--authentication-config={path}"


_CLAIMS: Final = {"username": "preferred_username", "groups": "groups"}


def _node() -> str:
    """Return Node.js; without it or the issuer the test is skipped, but in CI it fails."""
    found = shutil.which("node")
    if found is None or not (_MODULES / "oidc-provider").is_dir():
        why = "no oidc-provider with Node.js; get it: make judges, as `make test` does"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


def _rsa(name: str) -> dict[str, str]:
    """Return a new private key as a JWK."""
    numbers = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_numbers()
    public = numbers.public_numbers
    parts = {
        "n": public.n,
        "e": public.e,
        "d": numbers.d,
        "p": numbers.p,
        "q": numbers.q,
        "dp": numbers.dmp1,
        "dq": numbers.dmq1,
        "qi": numbers.iqmp,
    }
    return {"kty": "RSA", "kid": name, "alg": "RS256", "use": "sig"} | {
        part: base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8, "big")).decode().rstrip("=")
        for part, value in parts.items()
    }
