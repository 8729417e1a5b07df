"""A class in a real browser: what an instructor reads, presses and types, and the judges of the page."""

import os
from base64 import b64encode
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.classroom import EVIL, ClassRoom, classroom, fill, pool, token_of
from tests.component.portal.site.test_portal_class_pages import TEACH, teach
from tests.support.apiserver import GROUP
from tests.support.page import Page, visiting
from tests.support.topologies import topology
from vkprovider.lablet import names
from vkprovider.platform.times import iso

NO_ROOM = "0/9 nodes are available: 1 node(s) had untolerated taint(s), 8 Insufficient cpu. preemption: 0/9 nodes"
BROKEN = """
const broken = [];
const walk = document.createTreeWalker(document.querySelector("#grid-rows"), NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  for (const word of walk.currentNode.textContent.matchAll(/[a-z]{2,20}/gi)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, word.index);
    range.setEnd(walk.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""
"""Names the words of the rows that are broken inside."""
KEY = b64encode(os.urandom(32)).decode()


async def learners(page: Page) -> list[str]:
    """Return the names in the rows that are shown, in their order."""
    return [text for text in await page.texts("#grid-rows tr th a") if text]


async def until_learners(page: Page, names: list[str], first: int | None = None) -> None:
    """Wait until the rows that are shown are of these names, or begin so: a page has its address before its rows."""

    def shown(driver: Chrome) -> bool:
        found = [each.text for each in driver.find_elements("css selector", "#grid-rows tr th a")]
        return [text for text in found if text][:first] == names

    await page.until(shown, f"the rows are of {names}")


async def whole(page: Page) -> None:
    """Wait until the page is loaded to its last row."""
    await page.until(lambda driver: driver.execute_script("return document.readyState") == "complete", "it is loaded")


def focused(driver: Chrome) -> str:
    """Return the text of what has the focus, or its id."""
    active = driver.switch_to.active_element
    return str(active.get_attribute("id") or active.text)


async def confirm(page: Page, act: str, *, fill_in: tuple[str, str] | None = None) -> str:
    """Open a question, answer it, and return what became of it, which is said on the same page."""
    await page.run(lambda driver: driver.execute_script("document.getElementById('acts-answer').replaceChildren()"))
    await page.press(f"#ask-{act} > summary")
    if fill_in is not None:
        await page.fill(*fill_in)
    await page.press(f"#ask-{act} button[formaction]")
    await page.until(lambda driver: driver.find_element("id", "acts-answer").text, "it is said what became of it")
    return await page.text("#acts-answer")


async def until_note(room: ClassRoom, pod: str, note: str) -> str:
    """Wait for an annotation of a lablet, and return it."""

    async def look() -> str:
        return str((await room.notes(pod)).get(note, ""))

    return await eventually(look, f"{pod} has {note}")


async def test_a_class_at_a_glance(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        await fill(room)
        await page.log_in(token_of(room.teacher), "/classes")
        await page.shows("The classes that you teach")
        assert (await page.texts("tbody tr")) == [f"{room.namespace} 24"]
        await page.judge()
        await page.press("tbody a")
        await page.shows(f"Class {room.namespace}")
        await whole(page)

        # What she reads.
        counts = " ".join((await page.text("#class-counts")).split())
        assert counts == "24 labs: 2 needs help, 4 booting, 1 ready, 16 working, 1 free"
        assert (await page.texts("#class-held li a")) == ["4: StartingNodes", "2: NeedsAttention"]
        names = await learners(page)
        assert names[:3] == [f"={EVIL}", "emil", "dora"], "who needs help stands first"
        assert names[3:23] == [f"learner{at:02}" for at in range(20)]
        assert names[23] == "free"
        rows = {text.split("\n")[0]: " ".join(text.split()) for text in await page.texts("#grid-rows tr")}
        assert rows["dora"].startswith("dora warm-off ready not yet 1/2 r2 is off")
        assert "NeedsAttention r1 does not boot" in rows["emil"]
        assert f"=1+1 {EVIL}" in rows[f"={EVIL}"]
        assert "working yes 2/2" in rows["learner00"]
        assert "min left" in rows["learner00"]
        assert "booting" in rows["learner01"]
        assert "StartingNodes 1 of 2 devices" in rows["learner01"]
        await page.judge()

        # She filters while she types, and moves by keys.
        await page.keys("/")
        assert await page.run(focused) == "filter"
        await page.keys("learner1")
        await page.until(lambda driver: "10 of 24 rows shown" in driver.page_source, "the rows are filtered")
        assert await learners(page) == [f"learner{at:02}" for at in range(10, 20)]
        await page.keys(Keys.ARROW_DOWN)
        assert await page.run(focused) == "learner10"
        await page.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
        assert await page.run(focused) == "learner11"
        await page.keys("x")
        assert (
            await page.run(lambda driver: driver.execute_script("return document.forms.acts.elements.row.length")) == 24
        )
        ticked = "return [...document.querySelectorAll('#grid-rows input:checked')].map((each) => each.value)"
        assert await page.run(lambda driver: driver.execute_script(ticked)) == ["pod-warm-11 learner11"]
        await page.keys(Keys.END)
        assert await page.run(focused) == "learner19"
        await page.keys(Keys.HOME, Keys.ARROW_UP)
        assert await page.run(focused) == "filter"
        await page.judge(html=False)
        await page.keys(Keys.ESCAPE)
        assert len(await learners(page)) == 24

        # Links sort and filter without scripts.
        await page.press("thead th:nth-of-type(2) a")
        await page.until(lambda driver: "sort=state" in driver.current_url, "sorted by state")
        await until_learners(page, [f"={EVIL}", "emil", "learner01"], 3)
        await page.press("#class-held li:nth-child(2) a")
        await page.until(lambda driver: "reason=NeedsAttention" in driver.current_url, "of one reason")
        await until_learners(page, [f"={EVIL}", "emil"])
        await page.judge(html=False)
        await page.press(".filter a.button")
        await page.until(lambda driver: "?" not in driver.current_url, "all of them")
        await whole(page)
        assert len(await learners(page)) == 24

        # On a phone each learner is a card, and what can be done is behind one button.
        await room.lablet("warm-wait", "zoe", ready=False, phase="Pending", reason="Unschedulable", message=NO_ROOM)
        await page.shows("No worker has room: CPU")
        assert "taint" not in await page.text()
        phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone))
        await page.until(lambda driver: not driver.find_element("id", "acts").is_displayed(), "the menu is folded")
        width = "return [document.documentElement.scrollWidth, document.querySelector('.scroll').scrollWidth]"
        assert max(await page.run(lambda driver: driver.execute_script(width))) <= 390
        assert await page.run(lambda driver: driver.execute_script(BROKEN)) == []
        await page.judge(html=False)
        await page.press("#acts-menu > summary")
        await page.press("#ask-message > summary")
        await page.judge(html=False)
        await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {}))


async def test_each_act_asks_first_and_says_what_became_of_each(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        end = iso(int(has.running.replica.ctx.wall()) + 1800)
        for learner in ("ann", "ben", EVIL):
            await room.lablet(
                f"warm-{'evil' if learner == EVIL else learner}", learner, state="READY", timeslot_end=end
            )
        await room.lablet("warm-open", "carl", state="READY")
        await room.known(4)
        await page.log_in(token_of(room.teacher), room.path)
        await page.shows("Class ")

        # With nobody ticked there is nothing to answer; Cancel and Escape lead back.
        await page.press("#ask-collect > summary")
        await page.shows("Nobody is meant yet", css="#ask-collect")
        assert not await page.run(
            lambda driver: driver.find_element("css selector", "#ask-collect .danger").is_enabled()
        )
        await page.judge()
        assert await page.run(focused) == "Cancel"
        await page.keys(Keys.ENTER)
        assert await page.run(focused) == "Hand in"
        await page.press("#tick-pod-warm-ben")
        await page.press("#tick-pod-warm-ann")
        await page.press("#ask-collect > summary")
        await page.shows("Hand in 2 labs: ann, ben", css="#ask-collect")
        await page.press("input[value=all]")
        await page.shows(f"Hand in 4 labs: {EVIL}, ann, ben, carl", css="#ask-collect")
        await page.judge(html=False)
        await page.press("#ask-collect .cancel")

        assert await confirm(page, "extend") == (
            "Time extended: 3 of 4: 1 did not\ncarl: the time has no end that could be moved"
        )
        assert "desired-state" not in await room.notes("warm-ben"), "what was cancelled came before that, if at all"
        assert await page.path() == room.path
        assert await page.texts("#acts-answer .notice") == []
        await page.judge()
        assert (
            await confirm(page, "message", fill_in=("#message", f"We go on at 14:00. {EVIL}"))
            == "Messages sent: 4 of 4"
        )
        assert await page.texts("#acts-answer .refusal") == []
        await page.shows(f"Message: We go on at 14:00. {EVIL}", css="#grid-rows")
        assert await page.texts("#grid-rows input:checked") == [], "what was done is not done again"
        await page.press("input[value=ticked]")
        for act, note, says in (
            ("stop", "desired-state", "Labs stopped: 1 of 1"),
            ("reset", "reset", "Labs reset: 1 of 1"),
            ("collect", "desired-state", "Labs handed in: 1 of 1"),
        ):
            await page.press("#tick-pod-warm-ben")
            assert await confirm(page, act) == says
            assert await until_note(room, "warm-ben", note)
        await page.judge()
        # Enter in a field sends nothing: of what is asked then and after it, that alone arrives.
        await page.press("#ask-message > summary")
        await page.press("#tick-pod-warm-ann")
        before = await room.notes("warm-ann")
        await page.keys(Keys.ENTER)
        assert await confirm(page, "extend") == "Time extended: 1 of 1"
        assert await page.path() == room.path
        after = await room.notes("warm-ann")
        assert {each for each in before | after if before.get(each) != after.get(each)} == {"timeslot-end"}


async def test_the_page_follows_the_class_and_keeps_what_is_ticked(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        path = await room.lablet("warm-1", "ann", ready=False, reason="StartingNodes", phase="Pending")
        await room.lablet("warm-2", "ben", state="READY")
        await room.known(2)
        await page.log_in(token_of(room.teacher), room.path)
        await page.shows("1: StartingNodes")
        await page.press("#tick-pod-warm-1")
        await room.stands(path, state="RUNNING", devices="2/2")
        await page.shows("working", css="#row-pod-warm-1")
        await page.until(lambda driver: "StartingNodes" not in driver.page_source, "nothing holds it up")
        assert await page.run(lambda driver: driver.find_element("id", "tick-pod-warm-1").is_selected())
        await room.lablet("warm-3", EVIL, state="READY")
        await page.shows(EVIL, css="#grid-rows")
        assert await learners(page) == [EVIL, "ann", "ben"]
        await page.judge()
        await world.admin.delete(path, grace_s=0)
        await page.until(lambda driver: "ann" not in driver.page_source.partition("grid-rows")[2], "the row goes")


async def test_a_lablet_that_is_given_meanwhile_is_ticked_again_for_its_learner(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        end = iso(int(has.running.replica.ctx.wall()) + 1800)
        path = await room.lablet("warm-1", state="READY", timeslot_end=end)
        await room.known(1)
        await page.log_in(token_of(room.teacher), room.path)
        await page.shows("free", css="#grid-rows")
        await page.press("#tick-pod-warm-1")
        await world.admin.patch(path, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ann"}}})
        await page.shows("ann", css="#grid-rows")
        box = await page.run(lambda driver: driver.find_element("id", "tick-pod-warm-1"))
        assert not await page.run(lambda _: box.is_selected()), "ann was not meant"
        assert await page.run(lambda _: box.get_attribute("aria-label")) == "Tick ann"
        await page.press("#tick-pod-warm-1")
        assert "Time extended: 1 of 1" in await confirm(page, "extend")


async def test_a_question_about_one_learner_closes_once_the_lab_is_anothers(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        path = await room.lablet("warm-1", "ann", state="READY")
        await room.known(1)
        await page.log_in(token_of(room.teacher), f"{room.path}/lablets/warm-1")
        await page.shows("The lab of ann is ready")
        await page.press("#act-reset summary")
        await world.admin.patch(path, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ben"}}})
        await page.shows("The lab of ben is ready")
        await page.until(
            lambda driver: not driver.find_elements("css selector", "details.confirm[open]"), "nobody asks about ann"
        )
        assert "reset" not in await room.notes("warm-1")


async def test_who_may_only_look_reads_the_same_and_presses_nothing(world: PortalWorld) -> None:

    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        await fill(room, 8)
        observer = await teach(has, "observer", room.namespace, TEACH)
        await page.log_in(token_of(observer), room.path)
        await page.shows("dora")
        await whole(page)
        assert len(await learners(page)) == 8
        assert await page.texts("main button") == ["Show"]
        assert await page.texts("input[type=checkbox]") == []
        await page.judge()


async def test_from_the_class_to_the_lab_of_a_learner_and_back(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        visiting(has.client.url) as page,
    ):
        end = iso(int(has.running.replica.ctx.wall()) + 1800)
        path = await room.lablet("warm-1", EVIL, state="READY", timeslot_end=end)
        await room.known(1)
        await page.log_in(token_of(room.teacher), room.path)
        await page.shows(EVIL)
        await page.keys("/")
        await page.keys(Keys.ARROW_DOWN, Keys.ENTER)
        await page.shows(f"The lab of {EVIL} is ready")
        await page.judge()
        await page.press("#lab-acts button[formaction$='/extend']")
        later = str((await room.notes("warm-1"))["timeslot-end"])

        async def extended() -> bool:
            return str((await room.notes("warm-1"))["timeslot-end"]) > end

        await eventually(extended, f"the end is later than {later}")
        await room.stands(path, ready=False, reason="NeedsAttention", message=f"r1 does not boot {EVIL}")
        await page.shows("needs help")
        await page.judge(html=False)
        await page.press(".crumbs a:last-child")
        await page.shows("1: NeedsAttention")


async def test_a_list_gets_the_lablets_of_a_pool(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        pool(room, 2),
        visiting(has.client.url) as page,
    ):
        await room.known(2)
        await page.log_in(token_of(room.teacher), room.path)
        await page.shows("2 labs: 2 free")
        await page.press(".filter a[href$='/assign']")
        await page.shows("Give lablets to a list of learners")
        await page.fill("#names", f"learner\n{EVIL}\nann\nAnn")
        await page.judge()
        await page.press("main form button")
        await page.shows("3 names, 2 free: 1 lacks one: add 1")
        assert await page.texts("tbody tr") == ["Ann lacks one", f"{EVIL} gets one", "ann gets one"]
        assert (
            await page.text("[role=alert]")
            == "ann and Ann differ in case only, and are different people to the cluster."
        )
        assert "Give the lablets to 2 of 3" in await page.text("main form")
        await page.judge()
        await page.press("main form button")  # the box is required
        await page.press("main form a.button")
        await page.fill("#names", f"learner\n{EVIL}\nann")
        await page.press("main form button")
        await page.shows("2 names, 2 free: everybody has one then")
        await page.press("main form button")
        await page.shows("Have a lab: 2 of 2")
        await whole(page)
        assert [text.split(" yes ")[0] for text in await page.texts("tbody tr")] == [EVIL, "ann"]
        await page.judge(html=False)
        await page.press("main a.button[href$='/hand-out']")
        await page.shows("Where each learner begins")
        await page.judge()
        links = await page.texts("#hand-out a")
        assert {link.rpartition("/")[0] for link in links} == {f"{has.client.url}/lablets/{room.namespace}"}
        assert len(set(links)) == 2
        grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": has.client.url}
        await page.run(lambda driver: driver.execute_cdp_cmd("Browser.grantPermissions", grant))
        await page.press("#copy-links")
        await page.shows("2 copied", css="#copied")
        read = "navigator.clipboard.readText().then(arguments[arguments.length - 1])"
        copied = await page.run(lambda driver: driver.execute_async_script(read))
        assert copied == f"{EVIL}\t{links[0]}\nann\t{links[1]}\n"
        await page.press(".above a:last-child")
        await page.shows("2 labs: 2 ready")
        await until_learners(page, [EVIL, "ann"])


async def test_a_pool_that_is_too_small_grows_by_a_button(world: PortalWorld, tmp_path: Path) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        pool(room, 1) as deployment,
        visiting(has.client.url) as page,
    ):
        await room.known(1)
        await page.log_in(token_of(room.teacher), f"{room.path}/assign")
        await page.fill("#names", "ann\nben\ncarl")
        await page.press("main form button")
        await page.shows("3 names, 1 free: 2 lack one: add 2")
        await page.press("button[name=replicas]")
        await page.shows("2 lack one until more of the pool are ready")
        await page.judge(html=False)
        found = await world.admin.get(deployment)
        assert found is not None
        assert found["spec"]["replicas"] == 3
        assert not [each for each in await page.texts("main button") if each.startswith("Add")]
        assert "username" not in await room.notes("warm-0"), "nothing is given yet"
        await page.open(f"{room.path}/pools")
        await page.shows("1 of 3")
        await page.judge()
        await page.press("button[aria-label='One more in warm']")
        await page.shows("1 of 4")
        await page.fill("input[aria-label='Free lablets of warm']", "2")
        await page.press("form:has(> input[aria-label='Free lablets of warm']) button")
        await page.shows("1 of 2")
        await page.press("form.card button")
        await page.shows("warm-2")
        await page.shows("0 of 24")
        await page.judge(html=False)
        await world.admin.delete(f"{deployment}-2")

        await page.press("main a[href$='/definitions']")
        await page.shows("A lab of your own")
        await page.judge()
        name = f"branch-{room.namespace}"[:50]
        file = tmp_path / f"{name}.yaml"
        file.write_text(topology({"r1": "alpine"}, {"r1": ["serial:4001"]}))
        await page.run(lambda driver: driver.find_element("id", "file").send_keys(str(file)))
        await page.press("input[name=try]")
        await page.press("form.card button")
        try:
            await page.shows("the provider has not read it yet")
            await page.judge()
        finally:
            await world.admin.delete(f"{GROUP}/labletdefinitions/{name}")
