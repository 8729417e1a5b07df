"""Packets of a link on the page of a lab, by the visitor's own token; and who gets none."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.controllers.looking import eventually
from tests.component.controllers.test_console_captures import tcpdump
from tests.component.portal.people import INSTRUCTOR_ROLE, USER_ROLE
from tests.component.portal.site.assigned import opened
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.support.apiserver import ApiServer
from vkprovider.lablet import names
from vkpsim.cml.world import editing


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def link_up(bench: Bench) -> None:
    """Join r1 and h0 in the lab that runs."""
    simulation = bench.site.simulator.simulation
    [lab] = simulation.world.labs.values()
    a, b = (next(iter(bench.site.node(label).interfaces.values())) for label in ("r1", "h0"))
    editing.join(simulation.world, time.time(), lab, a, b)


async def test_a_learner_gets_a_file_stops_it_and_nobody_else_does(bench: Bench) -> None:
    lablet = bench.site.lablet
    link_up(bench)
    header = await bench.people.person("bob")
    pod = f"/api/v1/namespaces/{lablet.namespace}/pods/{lablet.name}"
    await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}})
    await opened(bench.portal.admin, lablet.namespace, lablet.name, bench.people.prefix)
    mine = f"/lablets/{lablet.namespace}/{lablet.name}"
    async with Browsing(bench.url) as bob, Browsing(bench.url) as carol, Browsing(bench.url) as teacher:
        await bob.log_in(header)

        async def is_known() -> bool:
            return (await bob.get(mine)).status_code == 200

        await eventually(is_known, "he has a lab")
        file = await bob.post(f"{mine}/captures/start", link="r1-h0", packets="3", filter="icmp")
        assert (file.status_code, file.headers["content-type"]) == (200, "application/vnd.tcpdump.pcap"), file.text
        assert file.headers["content-disposition"].endswith(f"{lablet.name}.pcap")
        assert len(tcpdump(file.content)) == 3
        for link, packets, why in (("r1-h9", "3", "there is no link"), ("r1-h0", "0", "is not understood")):
            refused = await bob.post(f"{mine}/captures/start", link=link, packets=packets)
            assert (refused.status_code, why in refused.text) == (409, True), refused.text
        assert (await bob.post(f"{mine}/captures/stop")).status_code == 409, "nothing is captured"
        going = asyncio.create_task(bob.post(f"{mine}/captures/start", end="r1:eth0", seconds="600"))

        async def is_stopped() -> bool:
            return (await bob.post(f"{mine}/captures/stop")).status_code == 303

        await eventually(is_stopped, "it is stopped")
        async with asyncio.timeout(60):
            tcpdump((await going).content)
        for path in ("captures/start", "captures/stop"):  # by a page of the learner before him
            refused = await bob.post(f"{mine}/{path}", link="r1-h0", learner="alice")
            assert (refused.status_code, "is that of bob now; nothing was done" in refused.text) == (409, True)
        await carol.log_in(await bench.people.person("carol", USER_ROLE))
        await teacher.log_in(await bench.people.person("teacher-of-another-class", INSTRUCTOR_ROLE))
        for person in (carol, teacher):
            await person.get("/nowhere")
            for path in ("captures/start", "captures/stop"):
                assert (await person.post(f"{mine}/{path}", link="r1-h0")).status_code == 404
