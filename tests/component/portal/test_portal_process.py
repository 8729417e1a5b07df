"""The command `vkprovider portal`, its probes, metrics and settings (R002-075)."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import ACCOUNT, PortalWorld
from tests.component.portal.wishes import refused
from tests.support.apiserver import MEMBERS
from tests.support.mosquitto import free_port
from vkprovider.platform.errors import InputError
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.choices import read_config


async def test_the_command_serves_by_tls_and_ends_at_once(world: PortalWorld, tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "KUBECONFIG": world.server.write_provider_kubeconfig(tmp_path / "kubeconfig", account=ACCOUNT),
        "LABLET_CONTROLLER_INSTANCE_ID": f"command-{world.run}",
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_PORT": str(port),
        "VKPROVIDER_HTTP_TLS_SELF_SIGNED": "true",
        "VKPROVIDER_PORTAL_STARTS": "5",  # there is none of this name
    }
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("vkprovider")), "portal"),
        env={**os.environ, **settings},
        stderr=asyncio.subprocess.PIPE,
    )
    url = f"https://127.0.0.1:{port}"
    try:
        async with aiohttp.ClientSession() as http:

            async def ready() -> bool:
                try:
                    async with http.get(f"{url}/ready", ssl=False) as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await eventually(ready, "the portal is ready")
            async with http.get(f"{url}/metrics", ssl=False) as answer:
                shown = await answer.text()
            assert "vkprovider_portal_userlabs 0.0" in shown
            page = (find_manifests().parent / "docs" / "reference" / "metrics.md").read_text()
            every, *_, own = re.split(r"\n## `vkprovider \w+`\n", page)
            exported = set(re.findall(r"^# TYPE (\S+)", shown, re.MULTILINE))
            described = set(re.findall(r"^\| `(\w+)`", own, re.MULTILINE))
            assert described <= exported
            assert exported - described <= set(re.findall(r"^\| `(\w+)`", every, re.MULTILINE))
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
    assert process.returncode == 0, log.decode()
    assert b"do you mean VKPROVIDER_PORTAL_STARTS_MAX?" in log
    assert not [each for each in await world.admin.items(MEMBERS) if "replica" in each["metadata"]["name"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [("sizes: [small, small]", "names a size twice"), ("warm: {net: -1}", "warm"), ("a: [", "a.yaml"), ("x: 1", "x")],
)
def test_a_configuration_that_cannot_be_used_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        read_config(str(path))
    with pytest.raises(InputError, match="VKPROVIDER_PORTAL_CONFIG"):
        read_config(str(tmp_path / "none.yaml"))


async def test_a_fence_that_all_replicas_may_share_empties_no_service(world: PortalWorld) -> None:
    """People see what was known, and nothing is written."""
    world.takes_over_s = 3.0
    running = await world.replica()
    family = await world.define()
    running.api.fault("^PUT .*/leases/.*-replica-", status=503, count=None)

    async def fenced() -> bool:
        return running.replica.process.membership.is_fenced

    await eventually(fenced, "it is fenced")
    async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{running.page.port}/ready") as answer:
        told = await answer.json()
    assert (answer.status, told["ready"], told["missing"]) == (200, True, [])
    assert any("could not renew its Lease" in note for note in told["notes"])
    assert await refused(world, running, "alice", family) in {Grounds.UNAVAILABLE, Grounds.OPERATION_IN_PROGRESS}
    assert await world.namespaces() == []
    running.api.heal()

    async def acts() -> bool:
        return not running.replica.process.membership.is_fenced

    await eventually(acts, "it may act again")
