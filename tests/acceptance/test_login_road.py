"""docs/login.md, command by command, from an empty sandbox to a learner with a prompt."""

import asyncio
import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from tests.component.controllers.looking import eventually
from tests.component.portal.openid.organisation import MemberBrowser
from tests.support import docs
from tests.support.cluster import Cluster
from tests.support.issuer import LOOPBACK, Issuer, IssuerClient, IssuerUser, issuing
from tests.support.sandboxes import started
from vkprovider.doctor.programs import variables_of
from vkprovider.platform.objects import Metadata, Secret
from vkpsandbox import Sandbox, start

pytestmark = pytest.mark.timeout(400)

PAGE: Final = "docs/login.md"
SECRET: Final = "secret of the client of the page"
HEADINGS: Final = ("3. The portal knows the client", "4. Who may have a lab", "5. The first lab")
ISSUER: Final = "https://login.example.com/realms/labs"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    """The organisation: step 1."""
    clients = [IssuerClient("vkprovider-portal", SECRET, pattern=LOOPBACK)]
    users = [IssuerUser("alice", ("students",)), IssuerUser("tess", ("teachers",)), IssuerUser("mallory", ())]
    with issuing(tmp_path_factory.mktemp("issuer"), clients=clients, users=users) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker and no portal; its API server has the file of step 2."""
    text = (docs.ROOT / PAGE).read_text()
    block = next(
        each for each in text.split("```") if each.startswith("yaml") and "AuthenticationConfiguration" in each
    )
    config: dict[str, Any] = yaml.safe_load(block.removeprefix("yaml\n").replace(ISSUER, issuer.url))
    config["jwt"][0]["issuer"]["certificateAuthority"] = issuer.ca_file.read_text()
    path = tmp_path_factory.mktemp("trust") / "authentication.yaml"
    path.write_text(yaml.safe_dump(config))
    with started(
        "login-road",
        tmp_path_factory.mktemp("sandbox"),
        workers=1,
        worker_args=[["--boot-seconds=0.5-1"]],
        component_args={"kube-apiserver": [f"--authentication-config={path}"]},
    ) as made:
        yield made


def portal_of(cluster: Cluster, issuer: Issuer) -> str:
    """Start the portal with what the commands have written, as its Pods would read it; return its address."""
    found = cluster.get("/api/v1/namespaces/vkprovider-system/secrets/vkprovider-portal-settings")
    assert found is not None
    given = {name: base64.b64decode(value) for name, value in found["data"].items()}
    settings = variables_of(Secret(Metadata("settings"), given))
    settings["VKPROVIDER_PORTAL_OIDC_CA_FILE"] = str(issuer.ca_file)
    sandbox = cluster.sandbox
    [url] = start.start_portal(sandbox.layout, sandbox._kubectl, 1, settings)
    return url


async def test_the_road_from_an_issuer_to_a_learner_with_a_prompt(
    cluster: Cluster, issuer: Issuer, tmp_path: Path
) -> None:
    sandbox = cluster.sandbox
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig), "PATH": f"{sandbox.programs}:{os.environ['PATH']}"}
    reader = docs.Reader(tmp_path, environ, {ISSUER: issuer.url, "=…": f"='{SECRET}'"})
    for heading in HEADINGS:
        await asyncio.to_thread(reader.run, PAGE, heading)
    assert tuple(dict.fromkeys(block.heading for block in docs.blocks(PAGE))) == HEADINGS, "no command is left out"
    url = await asyncio.to_thread(portal_of, cluster, issuer)
    async with MemberBrowser(url, issuer) as alice:
        assert "Example University" in (await alice.get("/login")).text
        await alice.enter("alice", "/labs/alice")
        begun = await alice.post("/labs/alice/create", image="netlab:1.0.0")
        assert begun.status_code == 303, begun.text

        async def ready() -> bool:
            return "Your lab is ready" in (await alice.get("/labs/alice")).text

        await eventually(ready, "the lab of alice is ready")
        assert "h0" in await typed(alice, "/labs/alice/consoles/h0/stream", "h0")
        async with MemberBrowser(url, issuer) as tess:
            await tess.log_in_as("tess", "/classes")
            assert "friday" in (await tess.get("/classes")).text
        async with MemberBrowser(url, issuer) as mallory:
            await mallory.log_in_as("mallory", "/labs/alice")
            assert (await mallory.get("/labs/alice")).status_code == 404
        await alice.get("/labs/alice")
        await alice.post("/labs/alice/stop")


async def typed(browser: MemberBrowser, path: str, prompt: str) -> str:
    """Press Enter at a console until a prompt is on the screen; return what was."""
    shown = b""
    headers = {"Cookie": browser.cookie, "Origin": browser.url}
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
        http.ws_connect(f"{browser.url}{path}", headers=headers) as console,
    ):
        await console.send_bytes(b"\r")
        async for message in console:
            if message.type is aiohttp.WSMsgType.BINARY:
                shown += message.data
            if f"{prompt}:~#".encode() in shown:
                break
    return shown.decode(errors="replace")
