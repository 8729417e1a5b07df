"""The shipped manifest on a real API server, as the doctor finds it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.apiserver import Admin, ApiServer
from tests.support.doctor import examined
from vkprovider.doctor.findings import Finding, Level
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.shipped import find_manifests

MAPS = "/api/v1/namespaces/vkprovider-relay/configmaps"
ABOUT = "DaemonSet/vkprovider-relay/vkprovider-relay"


@pytest.fixture
def installed(apiserver: ApiServer) -> Iterator[ApiServer]:
    folder = str(find_manifests() / "components" / "relay")
    apiserver.kubectl("apply", "-k", folder)
    yield apiserver
    apiserver.kubectl("-n", "vkprovider-relay", "delete", "daemonset,configmap", "--all", "--wait=false")


async def findings(server: ApiServer) -> list[Finding]:
    """Return what the doctor says of the relay, beside that there is no node for it."""
    report = await examined(server.kubeconfig)
    found = [finding for finding in report.findings if finding.object.startswith("DaemonSet")]
    [nowhere] = [each for each in found if each.reason == DoctorReason.PROGRAM_UNAVAILABLE]
    assert (nowhere.level, nowhere.message.partition(":")[0]) == (Level.NOTE, "it selects no node")
    return [each for each in found if each is not nowhere]


async def settings_map(admin: Admin) -> dict[str, Any]:
    [found] = [item for item in await admin.items(MAPS) if "VKPROVIDER_RELAY_PORTS" in item["data"]]
    return found


async def test_ports_that_something_else_needs_are_found(installed: ApiServer) -> None:
    assert await findings(installed) == []
    async with Admin(installed) as admin:
        path = f"{MAPS}/{(await settings_map(admin))['metadata']['name']}"
        await admin.patch(path, {"data": {"VKPROVIDER_RELAY_PORTS": "29000-30999"}})
        [found] = await findings(installed)
        assert (found.object, found.reason, found.level) == (ABOUT, "RelayPortsTaken", Level.FAULT)
        await admin.patch(path, {"data": {"VKPROVIDER_RELAY_PORTS": "24000-24999"}})
        [found] = await findings(installed)
        assert (found.object, found.level) == (ABOUT, Level.NOTE)
        await admin.delete(path)
        assert await findings(installed) == []
