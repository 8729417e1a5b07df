"""Two people in one lablet: a guest whom an instructor lets in, to watch or to type; a stranger stays out."""

import re
from functools import partial
from pathlib import Path

import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import RBAC
from tests.component.portal.site.assigned import opened
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import token_of
from tests.component.portal.site.consolebench import console_bench
from tests.component.portal.site.test_live_streams import stream
from tests.component.portal.site.test_portal_given_pages import class_with
from tests.component.portal.site.test_portal_links import assigning, cookies, lets_in, linked_class, shows
from tests.support.apiserver import ApiServer
from tests.support.page import visiting
from vkprovider.classroom.access import sweep
from vkprovider.classroom.sharing import SharingError, share, unshare
from vkprovider.lablet import names
from vkprovider.lablet.guests import GuestMode, guests_in


async def test_a_guest_sees_the_lablet_until_an_instructor_ends_it(world: PortalWorld) -> None:
    async with class_with(world) as (made, room, bob):
        await room.lablet("warm-1", "ada", message="", state="READY", devices="2/2")
        await room.known(1)
        await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names.ROLE_INSTRUCTOR}
        note = {names.ANNOTATION_USERNAME_PREFIX: made.people.prefix}
        body = {"metadata": {"name": names.ROLE_INSTRUCTOR, "annotations": note}, "roleRef": ref, "subjects": []}
        await world.admin.create(f"{RBAC}/namespaces/{room.namespace}/rolebindings", body)
        mine, guests = f"/lablets/{room.namespace}/warm-1", f"{room.path}/lablets/warm-1/guests"
        assert (await bob.get(mine)).status_code == 404
        async with (
            Browsing(made.client.url) as teacher,
            Browsing(made.client.url) as ada,
            Browsing(made.client.url) as eve,
        ):
            await teacher.log_in(room.teacher)
            await ada.log_in(await made.people.person("ada"))
            await eve.log_in(await made.people.person("eve"))
            for stranger in (bob, ada):
                assert (await stranger.get(guests)).status_code == 404
                assert (await stranger.post(guests, guest="bob", mode="type")).status_code == 404
            page = (await teacher.get(f"{room.path}/lablets/warm-1")).text
            assert f'href="{guests}"' in page
            assert "Guests in the lab of ada" in (await teacher.get(guests)).text
            for guest, mode in (("bob", "own"), ("ada", "type"), (" ", "type")):
                assert (await teacher.post(guests, guest=guest, mode=mode)).status_code in {409, 422}, guest
            assert (await teacher.post(guests, guest="bob", mode="watch")).status_code == 303
            assert (await room.notes("warm-1"))["guests"] == '{"bob":"watch"}'

            await eventually(lambda: shows(bob, mine, "You are a guest in the lab of ada, and watch."), "bob is in")
            page = (await bob.get(mine)).text
            assert "The lab of ada is ready" in page
            assert f'href="{mine}/consoles/r1"' in page
            for act in ("reset", "hand-in"):
                assert f'formaction="{mine}/{act}"' not in page
                assert (await bob.post(f"{mine}/{act}")).status_code == 404
            assert "formaction" not in page, "who watches changes no device"
            assert (await bob.post(f"{mine}/devices/stop", device="r1")).status_code == 404
            console = (await bob.get(f"{mine}/consoles/r1?as=type")).text
            assert 'data-mode="watch"' in console
            assert "data-only-watches" in console
            assert (await bob.get("/")).headers["location"] == mine
            await eventually(lambda: shows(ada, mine, "bob watches."), "ada is told")
            assert f'formaction="{mine}/hand-in"' in (await ada.get(mine)).text
            for path in (mine, f"{mine}/consoles/r1"):
                assert (await eve.get(path)).status_code == 404, "a stranger"

            assert (await teacher.post(guests, guest="bob", mode="type")).status_code == 303
            await eventually(lambda: shows(bob, mine, "and work in it, too."), "bob may type")
            assert 'data-mode="type"' in (await bob.get(f"{mine}/consoles/r1")).text
            assert "data-only-watches" not in (await bob.get(f"{mine}/consoles/r1")).text

            async def out() -> bool:
                return (await bob.get(mine)).status_code == 404

            async with stream(made.client.url, f"given:{room.namespace}/warm-1", Cookie=cookies(bob)) as found:
                await found.next("change")
                assert (await teacher.post(f"{guests}/end", guest="bob")).status_code == 303
                kind, _ = await found.next("gone")
                assert kind == "gone"
            await eventually(out, "bob is out")
            assert "guests" not in await room.notes("warm-1")
            assert (await teacher.post(f"{guests}/end", guest="bob")).status_code == 409
            assert (await ada.get(mine)).status_code == 200


async def test_a_form_about_one_learner_lets_nobody_into_the_lab_of_the_next(world: PortalWorld) -> None:
    async with (
        class_with(world) as (made, room, _),
        assigning(world) as kube,
        Browsing(made.client.url) as teacher,
    ):
        path = await room.lablet("warm-1", "ada", message="", state="READY", devices="2/2")
        await room.known(1)
        await teacher.log_in(room.teacher)
        guests = f"{room.path}/lablets/warm-1/guests"
        assert 'name="learner" value="ada"' in (await teacher.get(guests)).text
        await world.admin.patch(path, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "carol"}}})
        with pytest.raises(SharingError, match=r"is the lablet of carol now, not of ada"):
            await share(kube, room.namespace, "warm-1", "bob", GuestMode.TYPE, learner="ada")
        await eventually(lambda: shows(teacher, guests, "Guests in the lab of carol"), "the portal knows")
        answer = await teacher.post(guests, guest="bob", mode="type", learner="ada")
        assert answer.status_code == 409
        assert "The lab is that of carol now; nothing was done." in answer.text
        assert "guests" not in await room.notes("warm-1")
        await share(kube, room.namespace, "warm-1", "bob", GuestMode.TYPE, learner="carol")
        assert (await teacher.post(f"{guests}/end", guest="bob", learner="ada")).status_code == 409
        assert (await room.notes("warm-1"))["guests"] == '{"bob":"type"}'


async def test_a_removal_of_a_guest_that_was_interrupted_is_repeated(world: PortalWorld) -> None:
    """The Pod no longer names the guest, but the binding does: it is rewritten, and the learner keeps access."""
    async with class_with(world) as (made, room, _), assigning(world) as kube:
        prefix, pod = made.people.prefix, f"/api/v1/namespaces/{room.namespace}/pods/warm-1"
        await room.lablet("warm-1", f"{prefix}ada", message="", state="READY", devices="2/2")
        await room.known(1)
        binding = await opened(world.admin, room.namespace, "warm-1", "")

        async def subjects() -> list[str]:
            found = await world.admin.get(binding)
            assert found is not None
            return [each["name"] for each in found["subjects"]]

        repeats = (
            lambda: unshare(kube, room.namespace, "warm-1", "bob"),
            lambda: sweep(kube, room.namespace),
        )
        for repeat in repeats:
            assert (await share(kube, room.namespace, "warm-1", "bob", GuestMode.TYPE)).closed == ()
            assert await subjects() == [f"{prefix}ada", "bob"]
            await world.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_GUESTS: None}}})
            await repeat()
            assert await subjects() == [f"{prefix}ada"]
        with pytest.raises(SharingError):
            await unshare(kube, room.namespace, "warm-1", "bob")


async def test_a_guest_by_link_has_that_lablet_alone_and_keeps_the_own_link(world: PortalWorld) -> None:
    """Bob has a lablet and a link of his own, and is let into that of ann by another one."""
    async with linked_class(world) as the, Browsing(the.made.client.url) as teacher:
        await teacher.log_in(the.room.teacher)
        guests = f"{the.room.path}/lablets/warm-2/guests"
        page = await teacher.get(guests)
        assert 'name="link"' in page.text
        answer = await teacher.post(guests, guest="bob", mode="watch", link="yes")
        assert answer.status_code == 200, answer.text
        found = re.search(r"/link#([a-z0-9.-]+)", answer.text)
        assert found is not None
        theirs = f"/link/lablets/{the.room.namespace}/warm-2"
        async with Browsing(the.made.client.url) as beside, Browsing(the.made.client.url) as bob:
            await eventually(lambda: lets_in(beside, found[1]), "the guest's link opens")
            await eventually(
                lambda: shows(beside, theirs, "You are a guest in the lab of ann, and watch."), "ann's lab"
            )
            assert "data-only-watches" in (await beside.get(f"{theirs}/consoles/r1")).text
            assert (await beside.get(the.mine)).status_code == 404
            await eventually(lambda: lets_in(bob, the.code.text), "the own link opens the own lablet")
            await eventually(lambda: shows(bob, the.mine, "Your lab is ready"), "his own lab")
            assert (await bob.get(theirs)).status_code == 404
            await the.given("warm-1", "warm-2")
            assert (await beside.get(theirs)).status_code == 200, "who assigns again ends no guest's link"
            assert (await teacher.post(f"{guests}/end", guest="bob")).status_code == 303

            async def is_out() -> bool:
                return (await beside.get(theirs)).status_code == 303

            await eventually(is_out, "the guest's link is over")
            assert (await bob.get(the.mine)).status_code == 200
            pods = f"/api/v1/namespaces/{the.room.namespace}/pods"
            await world.admin.delete(f"{pods}/warm-2", grace_s=0)


async def test_who_watches_types_nothing_and_who_types_does(portal_server: ApiServer, tmp_path: Path) -> None:
    async with console_bench(portal_server, tmp_path) as bench, assigning(bench.portal) as kube:
        namespace, name = bench.site.lablet.namespace, bench.site.lablet.name
        pod = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ada"}}})
        header, mine = await bench.people.person("bob"), f"/lablets/{namespace}/{name}"
        guest = f"{bench.people.prefix}bob"  # nobody has named the prefix to this class
        assert (await share(kube, namespace, name, guest, GuestMode.WATCH)).closed == ()
        async with Browsing(bench.url) as bob:
            await bob.log_in(header)
            await eventually(lambda: shows(bob, mine, "and watch."), "bob is in")
            async with await bench.screen(cookies(bob), "h0", "take-over", lab=mine) as screen:
                await screen.shows("h0:~# ")
                await screen.type("echo never\r")
                assert screen.messages[0]["type"] == "open"
                assert screen.messages[0]["watches"] is True
                await share(kube, namespace, name, guest, GuestMode.TYPE)
                await eventually(lambda: shows(bob, mine, "and work in it, too."), "bob may type")
                async with await bench.screen(cookies(bob), "h0", lab=mine) as typing:
                    await typing.shows("h0:~# ")
                    await typing.type("echo two-of-us\r")
                    await typing.shows("two-of-us")
                    await screen.shows("two-of-us")
                    assert "never" not in screen.out
                    await share(kube, namespace, name, guest, GuestMode.WATCH)
                    assert (await typing.ends(62))[:2] == (4403, "withdrawn"), "who only watches types no more"


async def test_an_instructor_names_guests_in_a_browser(world: PortalWorld) -> None:
    async with linked_class(world) as the, visiting(the.made.client.url) as page:
        guests = f"{the.room.path}/lablets/warm-1/guests"
        await page.log_in(token_of(the.room.teacher), f"{the.room.path}/lablets/warm-1")
        await page.press("#lab-people a")
        await page.shows("Guests in the lab of bob")
        await page.judge()
        await page.fill("#guest", "eve")
        await page.press("input[value=type]")
        await page.press("form.card button")
        await page.shows("types", "table")
        await page.press("input[name=link]")
        await page.fill("#guest", "ann")
        await page.press("form.card button")
        await page.shows("/link#", "table")
        await page.judge()
        await page.open(guests)
        await page.press('button[aria-label="Remove eve"]')
        await page.until(lambda driver: "eve" not in driver.page_source, "eve is removed")
        pod = partial(the.made.running.replica.lablets.pod, the.room.namespace, "warm-1")
        await when(
            lambda: (seen := pod()) is not None and guests_in(seen.metadata.annotations) == {"ann": GuestMode.WATCH},
            "the portal knows that ann alone is a guest",
        )
        await page.open(f"{the.room.path}/lablets/warm-1")
        await page.shows("ann watches.", "#lab-people")
        await page.judge()
