"""The command `vkprovider mux`, and its settings (R003-002, 005-009, 025)."""

import asyncio
import hashlib
import os
import re
import signal
import sys
from pathlib import Path

import aiohttp

from tests.component.controllers.looking import eventually
from tests.component.mux.harness import ACCOUNT, PREFIX, Json, MuxWorld
from tests.support.apiserver import MEMBERS
from tests.support.mosquitto import free_port
from vkprovider.platform.shipped import find_manifests


async def test_the_command_serves_muxes_by_tls_and_ends_at_once(world: MuxWorld, tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "KUBECONFIG": world.server.write_provider_kubeconfig(tmp_path / "kubeconfig", account=ACCOUNT),
        "LABLET_CONTROLLER_INSTANCE_ID": f"command-{world.run}",
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_TLS_SELF_SIGNED": "true",
        "DEBUG_WEB_PORT": str(port),
        "DAEMON_QUEUE_TIMOUT": "5",  # misspelt
    }
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("vkprovider")), "mux"),
        env={**os.environ, **settings},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await world.mux()
        await world.channel("api", "http:auto")
        await world.until_told("api", "http:80->20000")
        async with aiohttp.ClientSession() as http:
            async with http.get(f"https://127.0.0.1:{port}/ready", ssl=False) as answer:
                assert (answer.status, await answer.json()) == (200, {"ready": True, "missing": []})
            async with http.get(f"https://127.0.0.1:{port}/metrics", ssl=False) as answer:
                shown = await answer.text()
            assert "vkprovider_mux_channels 1.0" in shown
            page = (find_manifests().parent / "docs" / "reference" / "metrics.md").read_text()
            every, own, *_ = re.split(r"\n## `vkprovider \w+`\n", page)
            exported = set(re.findall(r"^# TYPE (\S+)", shown, re.MULTILINE))
            described = set(re.findall(r"^\| `(\w+)`", own, re.MULTILINE))
            assert described <= exported
            assert exported - described <= set(re.findall(r"^\| `(\w+)`", every, re.MULTILINE))
            async with http.get(f"https://127.0.0.1:{port}/", ssl=False) as answer:
                assert answer.status == 401
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
    assert process.returncode == 0, log.decode()
    assert b"do you mean DAEMON_QUEUE_TIMEOUT?" in log
    assert not [each for each in await world.admin.items(MEMBERS) if "replica" in each["metadata"]["name"]]


async def test_prefix_and_default_namespace_are_settings(world: MuxWorld) -> None:
    prefix = f"mux-{world.run}.example.com"
    await world.replica(API_PREFIX=prefix, DEFAULT_MUX_NAMESPACE=world.edge)
    await world.mux("mux-other")  # of the other prefix: nobody's here
    notes = {f"{prefix}/multiplexer": "true", f"{prefix}/allowed-namespaces": "*", f"{prefix}/disabled": "true"}
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{"port": 101}]}
    await world.admin.create(
        world.services(world.edge), {"metadata": {"name": "mux", "annotations": notes}, "spec": spec}
    )
    await world.channel("api", mux=f"{prefix}/mux")
    found = await world.until_ports(80)
    assert found["metadata"]["finalizers"] == [f"{prefix}/finalizer"]
    [port] = found["spec"]["ports"]
    assert port["name"] == hashlib.sha256(f"{world.team}/api/http".encode()).hexdigest()[:7]

    async def shown() -> Json | None:
        api = await world.admin.get(world.path("api"))
        return api if api is not None and f"{prefix}/ports" in api["metadata"].get("annotations", {}) else None

    api = await eventually(shown, "the channel shows its port")
    assert f"{PREFIX}/ports" not in (api or {})["metadata"]["annotations"]
    other = await world.admin.get(world.path("mux-other"))
    assert other is not None
    assert "finalizers" not in other["metadata"]


async def test_an_api_server_that_is_away_changes_nothing_and_is_caught_up_with(world: MuxWorld) -> None:
    running = await world.replica(LEADER_LEASE_TTL="3", DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("a", "http:auto")
    await world.channel("b", "http:auto", backends=("10.1.0.11",))
    await world.until_ports(20000, 20001)
    before = await world.rows()
    await world.until_told("a", f"http:80->{before[f'{world.team}/a/http']}")
    running.api.cut()
    await world.admin.delete(world.path("b"))
    await world.channel("c", "http:auto", backends=("10.1.0.12",))
    await asyncio.sleep(4)  # past its fence
    assert await world.rows() == before
    assert running.replica.process.membership.is_fenced
    assert not running.replica.process.unready(), "its page shows what was known"
    assert any("could not renew its Lease" in note for note in running.replica.process.notes())
    running.api.heal()
    number = before[f"{world.team}/a/http"]
    await world.until_ports(number, 20002)
    await world.until_forwards({number: {"10.1.0.10:8080"}, 20002: {"10.1.0.12:8080"}})


async def test_what_could_not_be_read_is_not_taken_for_nothing(world: MuxWorld) -> None:
    """The store, and the list of Services: a pass is skipped, and nothing is given or taken away."""
    first = await world.replica()
    await world.mux()
    await world.channel("a", "http:auto")
    await world.until_told("a", "http:80->20000")
    await first.stop()
    second = await world.replica()
    second.api.fault("^GET .*/configmaps/", status=503, count=3)
    second.api.fault("^GET .*/services\\?.*limit=", status=503, count=2)
    await world.channel("b", "http:auto")
    await world.until_ports(20000, 20001)
    assert second.replica.queue.failures_total >= 1
    assert await world.rows() == {f"{world.team}/a/http": 20000, f"{world.team}/b/http": 20001}
