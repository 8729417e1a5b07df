"""What a learner does by a link with real devices, and when what is open ends: with a provider in the same loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_links import allow, assigning, cookies, given, lets_in, shows
from tests.support.apiserver import ApiServer
from vkprovider.classroom import access, links
from vkprovider.classroom.links import LinkCode
from vkprovider.classroom.pods import pods_in
from vkprovider.lablet import names
from vkprovider.platform.kube.client import KubeClient


class LinkedBench(NamedTuple):
    """A lablet with devices that bob opens by a link.

    Attributes:
        mine: The path of its page.
        pod: That of its Pod, at the API server.
    """

    bench: Bench
    kube: KubeClient
    bob: Browsing
    code: LinkCode
    mine: str
    pod: str


@pytest.fixture
async def linked(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[LinkedBench]:
    async with console_bench(portal_server, tmp_path) as bench, opened(bench) as found:
        yield found


@asynccontextmanager
async def opened(bench: Bench) -> AsyncIterator[LinkedBench]:
    lablet = bench.site.lablet
    pod = f"/api/v1/namespaces/{lablet.namespace}/pods/{lablet.name}"
    await allow(bench.portal, lablet.namespace, names.LINKS_ALLOWED)
    await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}})
    async with assigning(bench.portal) as kube, Browsing(bench.url) as bob:
        code = (await given(kube, lablet.namespace, lablet.name)).codes["bob"]
        mine = f"/link/lablets/{lablet.namespace}/{lablet.name}"
        await eventually(lambda: lets_in(bob, code.text), "the link opens")
        await eventually(lambda: shows(bob, mine, "formaction"), "the role counts")
        yield LinkedBench(bench, kube, bob, code, mine, pod)


async def test_who_has_the_link_types_downloads_resets_and_hands_in(linked: LinkedBench) -> None:
    bench, _, bob, _, mine, pod = linked
    async with await bench.screen(cookies(bob), "h0", lab=mine) as screen:
        await screen.shows("h0:~# ")
        await screen.type("echo by-link\r")
        await screen.shows("by-link")
    archive = await bob.get(f"{mine}/configurations")
    assert archive.headers["content-type"] == "application/zip"
    await bob.get(mine)
    done = await bob.post(f"{mine}/reset")
    assert (done.status_code, done.headers["location"]) == (303, mine), done.text
    found: Any = await bench.portal.admin.get(pod)
    assert names.ANNOTATION_RESET in found["metadata"]["annotations"]
    assert (await bob.post(f"{mine}/stop")).status_code == 404
    await eventually(lambda: posts(bob, f"{mine}/hand-in"), "it is handed in")
    await bench.portal.admin.until(
        pod,
        lambda it: it["metadata"]["annotations"].get(names.ANNOTATION_DESIRED_STATE) == "COLLECTING",
        "is collected",
    )


async def posts(browser: Browsing, path: str) -> bool:
    return (await browser.post(path)).status_code == 303


async def test_a_console_that_is_open_ends_when_the_link_is_taken_back(linked: LinkedBench) -> None:
    bench, kube, bob, code, mine, _ = linked
    lablet = bench.site.lablet
    async with await bench.screen(cookies(bob), "h0", lab=mine) as screen:
        await screen.shows("h0:~# ")
        await links.take_back(kube, lablet.namespace, (await links.links_in(kube, lablet.namespace)).values())
        [found] = [each for each in await pods_in(kube, lablet.namespace).list() if each.metadata.name == lablet.name]
        assert await access.open_access(kube, lablet.namespace, [found]) == ()
        _, why, _ = await screen.ends(within_s=90)
        assert why
    assert (await bob.get(mine)).status_code == 303
    assert not await lets_in(bob, code.text)
