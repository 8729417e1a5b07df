"""The road of docs/hub.md with an organisation: a real JupyterHub logs people in at the issuer, by the shipped values.

The hub gives the portal the ID token of each learner, and the API server says who that is.
"""

import base64
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml
from yarl import URL

from hub.tests.realhub import Learner, RealHub, free_ports
from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.openid.organisation import KEY, PREFIX
from tests.component.portal.openid.people import CONFIDENTIAL, SECRET
from tests.component.portal.people import USER_ROLE
from tests.support.docs import ROOT
from tests.support.issuer import REFRESH, Issuer, TokenLives

pytestmark = pytest.mark.timeout(240)
VENV: Final = Path(sys.prefix) / "hub"
SERVICE: Final = "token-of-the-portals-service"
BASE: Final = "/services/vkprovider"


def shipped(ends: dict[str, str], callback: str) -> str:
    """Return the configuration that the shipped values are, for an issuer of the tests."""
    values = yaml.safe_load((ROOT / "hub" / "zero-to-jupyterhub.yaml").read_text())["hub"]
    ours = {
        "client_id": CONFIDENTIAL,
        "client_secret": SECRET,
        "oauth_callback_url": callback,
        "authorize_url": ends["authorization_endpoint"],
        "token_url": ends["token_endpoint"],
        "userdata_url": ends["userinfo_endpoint"],
    }
    told = {**values["config"]["GenericOAuthenticator"], **ours}
    assert ours.keys() - {"client_secret"} <= values["config"]["GenericOAuthenticator"].keys()
    lines = [f"c.GenericOAuthenticator.{name} = {value!r}" for name, value in told.items()]
    lines += [f"c.Authenticator.{name} = {value!r}" for name, value in values["config"]["Authenticator"].items()]
    lines += [f"c.JupyterHub.{name} = {value!r}" for name, value in values["config"]["JupyterHub"].items()]
    return "\n".join(["c.Authenticator.post_auth_hook = None", *lines, *values["extraConfig"].values()])


@asynccontextmanager
async def logged_in(hub: RealHub, issuer: Issuer, name: str) -> AsyncIterator[Learner]:
    """Yield a learner who pressed the hub's only button, and filled in the issuer's form."""
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=URL(hub.url))  # as browsers do on this machine
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session, issuer.browser() as there:
        begin = f"{hub.url}/hub/oauth_login?next=%2Fhub%2Fhome"
        async with session.get(begin, allow_redirects=False) as led:
            assert led.status == 302, await led.text()
            address = led.headers["Location"]
        back = await issuer.log_in(there, address, name)
        async with session.get(URL(back, encoded=True)) as answer:
            assert (answer.status, answer.url.path) == (200, "/hub/home"), (await answer.text(), hub.log()[-3000:])
        yield Learner(hub, name, session)


async def spawn(learner: Learner, family: str) -> None:
    """Start the own server, and wait until it is ready."""
    status, text = await learner.server("POST", {"image_list": f"{family}:1.0.0", "size": "small"})
    assert status in {201, 202}, (text, learner.hub.log()[-3000:])
    await eventually(lambda: learner.hub.ready(learner.name), "the lab of the hub is ready")


@dataclass
class Campus:
    """A portal behind a hub whose people log in at an issuer."""

    made: Setting
    hub: RealHub
    issuer: Issuer

    def visitor(self, name: str) -> AbstractAsyncContextManager[Learner]:
        """Return somebody who logs in."""
        return logged_in(self.hub, self.issuer, name)


@asynccontextmanager
async def campus(world: PortalWorld, issuer: Issuer, folder: Path) -> AsyncIterator[Campus]:
    """Run a portal, and a hub with the shipped values."""
    if not (VENV / ".wanted").exists():
        why = "JupyterHub is not installed in .venv/hub; get it: make hub, or `make test`, which does so first"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    ports = free_ports(3)
    settings = {
        "VKPROVIDER_PORTAL_COOKIE_KEY": KEY,
        "VKPROVIDER_PORTAL_USERNAME_PREFIX": PREFIX,
        "VKPROVIDER_PORTAL_HUB_API_URL": f"http://127.0.0.1:{ports[1]}/hub/api",
        "VKPROVIDER_PORTAL_HUB_TOKEN": SERVICE,
    }
    async with setting(world, **settings) as made:  # type: ignore[arg-type]  # (settings alone)
        await made.people.allow_group(f"{PREFIX}ccna", USER_ROLE)
        async with issuer.browser() as there:
            ends = (await there.get(f"{issuer.url}/.well-known/openid-configuration")).json()
        token = made.hub["Authorization"].removeprefix("Bearer ")
        hub = RealHub(folder, made.client.url, token, issuer.ca_file, VENV, ports, SERVICE)
        hub = replace(
            hub,
            more=shipped(ends, f"{hub.url}/hub/oauth_callback"),
            errors=ROOT / "hub" / "images" / "proxy",
        )
        async with hub.running():
            yield Campus(made, hub, issuer)


async def test_from_a_login_at_the_hub_to_the_own_lab(world: PortalWorld, issuer: Issuer, tmp_path: Path) -> None:
    async with campus(world, issuer, tmp_path) as here, here.visitor("alice") as alice:
        await spawn(alice, here.made.family)
        assert await world.namespaces() == ["nublado-alice"], "made by the ID token of alice"
        code, _, page = await alice.get("/user/alice/")
        assert (code, f'content="0; url={BASE}/labs/alice"' in page) == (200, True), page
        code, _, page = await alice.get(f"{BASE}/labs/alice")
        assert (code, page.partition('class="who" title="')[2].partition('"')[0]) == (200, "oidc:alice"), page
        async with here.visitor("bob") as bob:
            await bob.get(f"{BASE}/")
            assert (await bob.get(f"{BASE}/labs/alice"))[0] == 404
        # The page of the proxy, for who comes while the hub is away; what is open goes on.
        await here.hub.kill()
        code, _, page = await alice.get("/hub/home")
        assert (code, "Not there for a moment" in page) == (503, True)
        assert (await alice.get(f"{BASE}/labs/alice"))[0] == 200, "who is in already goes on"


async def test_a_token_that_was_renewed_is_the_one_that_the_portal_gets(
    world: PortalWorld, issuer: Issuer, tmp_path: Path
) -> None:
    """The hub renews before a start, and the hook of the values is called then, too."""
    issuer.set_lives(TokenLives(id_s=16, access_s=15))  # the hub renews once this is over, and logs in by it before
    async with campus(world, issuer, tmp_path) as here, here.visitor("alice") as alice:
        first = await token_of(here)
        issuer.set_lives(TokenLives())
        issuer.forget_requests()
        await when(lambda: time.time() > ends_at(first), "the first ID token is over")
        await spawn(alice, here.made.family)
        assert [each.grant for each in issuer.requests()] == [REFRESH]
        assert ends_at(await token_of(here)) > time.time()


async def token_of(here: Campus) -> str:
    """Return what the hub keeps as alice's token of the cluster."""
    return str((await here.hub.user("alice"))["auth_state"]["token"])


def ends_at(token: str) -> float:
    """Return when an ID token ends, in Unix time."""
    claims = token.split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
