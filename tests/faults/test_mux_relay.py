"""The relay of a mux while its watches stay open and say nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.apiserver import Admin, ApiServer, until
from tests.support.faultyapi import FaultyApi
from tests.support.relay import MuxObjects, RelaySide, device, dial, haproxy_or_skip, who
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.kubeconfig import write_kubeconfig
from vkpsandbox.processes.ports import free_range

NAMESPACE: Final = "vkprovider-relay"
SILENT_S: Final = 45.0
"""The time until the sessions of a lablet that has ended are shut all the same."""


@pytest.fixture(scope="module")
def token(mux_server: ApiServer) -> str:
    haproxy_or_skip()
    for name in ("namespace.yaml", "rbac.yaml"):
        mux_server.kubectl("apply", "-f", str(find_manifests() / "components" / "relay" / name))
    return mux_server.kubectl("create", "token", "vkprovider-relay", f"--namespace={NAMESPACE}").strip()


@pytest.fixture
async def api(mux_server: ApiServer) -> AsyncIterator[FaultyApi]:
    async with FaultyApi(mux_server.url, mux_server.client_tls()) as api:
        yield api


@pytest.fixture
def side(api: FaultyApi, token: str, tmp_path: Path) -> Iterator[RelaySide]:
    """An HAProxy and a relay, which asks the proxy, not started yet."""
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, name="relay", cluster={"server": api.url}, user={"token": token})
    side = RelaySide(tmp_path, kubeconfig, free_range(10))
    yield side
    side.end()


async def test_a_silent_watch_keeps_no_session_of_an_ended_lablet_of_a_mux_for_long(
    mux_server: ApiServer, api: FaultyApi, side: RelaySide
) -> None:
    first, _ = side.ports
    side.start("haproxy", "relay")
    async with Admin(mux_server) as admin, device("r1") as r1, device("r2") as r2:
        mux = MuxObjects(admin)
        await mux.create({"a": first, "b": first + 1})
        await mux.lead("alice", {"a": r1})
        await mux.lead("bob", {"b": r2})

        async def led() -> bool:
            return [await who(first), await who(first + 1)] == ["r1", "r2"]

        await until(led)
        alice, bob = await dial(first), await dial(first + 1)
        await asyncio.sleep(3)  # the looks of the start are over
        assert api.silence_watches() == 2
        await mux.withdraw("alice")
        await alice.ended(within_s=SILENT_S)
        assert await who(first) == ""
        assert await bob.alive()
        bob.close()
        await mux.wipe()
