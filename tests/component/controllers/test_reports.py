"""Annotations are reports: whoever edits them reaches no other learner's lab, and they are repaired (C08, C40)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import MADE, TAKEN_DOWN, existing_lab, history, lab_of
from tests.component.controllers.looking import is_ready, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL
from tests.support.cmlapi.simulator import CmlSimulator

GROUP = "vkprovider.io/"
LAB_ID = f"{GROUP}lab-id"
OTHERS = {f"{GROUP}port-mappings": '{"h0": 2000}', f"{GROUP}lds-session-id": "s-1"}
"""Reports that these lablets do not have; a user may write them all the same."""
Reported = tuple[Lablet, dict[str, Any]]
"""A Ready lablet, and its Pod as it was then."""


def reports(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations in which the provider reports."""
    annotations = pod["metadata"].get("annotations", {})
    return {key: value for key, value in annotations.items() if key.startswith(GROUP) and key not in OTHERS}


async def annotate(world: World, lablet: Lablet, values: Mapping[str, str | None]) -> None:
    """Write annotations with the provider's token: the shipped policies, which this API server has, refuse others."""
    server = world.server
    headers = {"Authorization": f"Bearer {server.provider_token()}", "Content-Type": "application/merge-patch+json"}
    body = json.dumps({"metadata": {"annotations": dict(values)}})
    async with (
        aiohttp.ClientSession() as http,
        http.patch(f"{server.url}{lablet.path}/status", data=body, headers=headers, ssl=server.client_tls()) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def make(world: World, simulator: CmlSimulator, worker: str, version: str) -> Reported:
    """Make a Ready lablet of a definition of its own, so that its reports differ from those of all others."""
    lablet = await world.pod(await world.define(version=version), worker)
    pod = await lablet.ready()
    assert reports(pod)[LAB_ID] == existing_lab(simulator, lablet.uid).id
    return lablet, pod


async def swap(world: World, one: Reported, two: Reported) -> None:
    """Give each of two lablets what the other reports."""
    (first, before), (second, after) = one, two
    assert set(reports(before)) == set(reports(after)) >= {LAB_ID, f"{GROUP}content", f"{GROUP}state"}
    await annotate(world, first, {**reports(after), **OTHERS})
    await annotate(world, second, {**reports(before), **OTHERS})


async def repaired(lablet: Lablet, before: dict[str, Any]) -> None:
    """Wait until a lablet reports again what it did; nothing else of it has changed."""
    now = await lablet.until(lambda pod: reports(pod) == reports(before), "not repaired")
    assert is_ready(now)
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert now["status"]["containerStatuses"] == before["status"]["containerStatuses"]


@pytest.mark.parametrize("grace_s", [None, 0], ids=["graceful", "forced"])
async def test_swapped_reports_reach_no_other_lab(world: World, grace_s: int | None) -> None:
    """One of the two, on the same worker, is deleted at once: its own lab goes, the other lives and is repaired."""
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    goes, stays = await make(world, simulator, worker, "1.0.1"), await make(world, simulator, worker, "1.0.2")
    await swap(world, goes, stays)
    await goes[0].delete(grace_s=grace_s)
    await when(lambda: lab_of(simulator, goes[0].uid) is None, "the deleted lablet's own lab goes")
    await repaired(*stays)
    assert history(simulator, goes[0].uid) == [*MADE, *TAKEN_DOWN]
    await asyncio.sleep(1)  # the time of ten observations
    assert history(simulator, stays[0].uid) == MADE
    assert existing_lab(simulator, stays[0].uid).id == reports(stays[1])[LAB_ID]


async def test_reports_swapped_while_the_provider_is_away_are_not_believed(world: World) -> None:
    """It comes back knowing nothing but the claims: what the Pods say of labs is not among what it reads."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    goes, stays = await make(world, simulator, worker, "1.0.1"), await make(world, simulator, worker, "1.0.2")
    for lablet, _ in (goes, stays):
        await lablet.claim(lambda row: row.get("readyAt"))
    await first.crash()
    await swap(world, goes, stays)
    await goes[0].delete()
    assert reports(await stays[0].until(bool))[LAB_ID] == reports(goes[1])[LAB_ID]
    await world.replica(MORTAL)
    await goes[0].gone()
    assert lab_of(simulator, goes[0].uid) is None
    await repaired(*stays)
    assert history(simulator, goes[0].uid) == [*MADE, *TAKEN_DOWN]
    assert history(simulator, stays[0].uid) == MADE


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
async def test_cleared_reports_are_written_again(world: World, *, restarted: bool) -> None:
    """Nothing is imported or started for want of a lab id, by the same provider or by its successor."""
    running = await world.replica(MORTAL)
    simulator = await world.simulator()
    lablet, before = await make(world, simulator, await world.worker(simulator.url), "1.0.0")
    await lablet.claim(lambda row: row.get("readyAt"))
    if restarted:
        await running.crash()
    await annotate(world, lablet, dict.fromkeys(reports(before)))
    if restarted:
        assert reports(await lablet.until(bool)) == {}
        await world.replica(MORTAL)
    await repaired(lablet, before)
    assert history(simulator, lablet.uid) == MADE
