"""`kubectl lablet portal`: from a kubeconfig to a browser that is logged in."""

import asyncio
import os
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import trustme
import yaml

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing

KEY = b64encode(os.urandom(32)).decode()
PROGRAM = "from vkprovider.cli.lablet import main; main()"


def kubeconfig(path: Path, server: str, user: dict[str, Any]) -> Path:
    one = {"cluster": "c", "user": "u"}
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "c", "context": one}],
            }
        )
    )
    return path


async def run(path: Path, *words: str, **env: str) -> tuple[int, str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VKPROVIDER_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "portal", *words, f"--kubeconfig={path}"),
        env={**inherited, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_the_address_that_is_printed_logs_in_once(world: PortalWorld, tmp_path: Path) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        token = made.alice["Authorization"].removeprefix("Bearer ")
        path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": token})  # the API server is not asked
        code, out, err = await run(path, VKPROVIDER_PORTAL_URL=made.client.url)
        assert (code, err) == (0, "It logs one browser in as you, once, within 60 s.\n")
        assert token not in out
        address = out.strip().removeprefix(made.client.url)
        await browser.get(address, **{"Sec-Fetch-Site": "none"})
        assert (await browser.post(address)).status_code == 303
        assert (await browser.get("/")).headers["location"] == "/labs/alice"


async def test_a_token_is_sent_over_tls_that_the_named_ca_vouches_for(world: PortalWorld, tmp_path: Path) -> None:
    ours, other = trustme.CA(), trustme.CA()
    served = ours.issue_cert("localhost")
    served.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    served.private_key_pem.write_to_path(tmp_path / "tls.key")
    for name, authority in {"ours.pem": ours, "other.pem": other}.items():
        authority.cert_pem.write_to_path(tmp_path / name)
    running = await world.replica(
        VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
        VKPROVIDER_HTTP_TLS_CERT=str(tmp_path / "tls.crt"),
        VKPROVIDER_HTTP_TLS_KEY=str(tmp_path / "tls.key"),
    )
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": "made-up"})
    url = f"--url=https://localhost:{running.page.port}"
    code, _, err = await run(path, url, f"--cacert={tmp_path / 'other.pem'}")
    assert code == 1
    assert "for a CA of your own use --cacert" in err
    code, _, err = await run(path, url, f"--cacert={tmp_path / 'ours.pem'}")
    assert code == 1
    assert "the cluster does not know the token" in err
    assert "made-up" not in err


async def test_what_is_in_the_way_is_told(world: PortalWorld, tmp_path: Path) -> None:
    certificate = kubeconfig(tmp_path / "certificate", world.server.url, {})
    code, _, err = await run(certificate, "--url=http://127.0.0.1:9")
    assert code == 1
    assert "the kubeconfig has no token, only a client certificate" in err
    assert "paste a token at http://127.0.0.1:9/login" in err
    with_token = kubeconfig(tmp_path / "token", world.server.url, {"token": "made-up"})
    code, _, err = await run(with_token)
    assert code == 1
    assert "name the portal with --url or VKPROVIDER_PORTAL_URL" in err
    assert "svc/vkprovider-portal 8083" in err
    code, _, err = await run(with_token, "--url=http://portal.example.com")
    assert code == 2
    assert "would send the token in plain text" in err
    running = await world.replica()
    code, _, err = await run(with_token, f"--url=http://127.0.0.1:{running.page.port}")
    assert code == 1
    assert "an admin must set VKPROVIDER_PORTAL_COOKIE_KEY" in err
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"http://127.0.0.1:{running.page.port}/login/code")).status_code == 503
