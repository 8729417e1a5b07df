"""The pages of a class without a browser: who sees them, the CSV, and each request to many lablets."""

import asyncio
import csv
import io
import os
import re
from base64 import b64encode
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import INSTRUCTOR_ROLE, RBAC, USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import EVIL, ClassRoom, classroom, fill, pool
from tests.component.portal.site.test_live_streams import stream
from tests.component.portal.wishes import ask
from tests.support.apiserver import GROUP, RUNTIME_CLASSES, SYSTEM
from tests.support.topologies import topology
from vkprovider.lablet import names
from vkprovider.platform.times import iso
from vkprovider.portal.api import callers
from vkprovider.portal.pure import portalnames

DEFINITIONS = f"{GROUP}/labletdefinitions"
KEY = b64encode(os.urandom(32)).decode()
_LINE = re.compile(r'<tr><th scope="row">(.*?)</th><td><span class="chip \w+">(\w+)</span></td><td>(.*?)</td></tr>')


async def act(who: Browsing, room: ClassRoom, action: str, rows: list[str], **fields: str) -> httpx.Response:
    """Send a form of the class's page."""
    await who.get(room.path)
    sent: Any = {"csrf": who.csrf, "row": rows, **fields}
    return await who.ask("POST", f"{room.path}/{action}", {"Origin": who.url}, data=sent)


def lines(answer: httpx.Response) -> list[tuple[str, str, str]]:
    """Return the lines of what became of each."""
    assert answer.status_code == 200, answer.text
    return _LINE.findall(answer.text)


async def test_a_class_has_one_topic_for_each_wish_whatever_else_is_asked(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        Browsing(made.client.url) as browser,
    ):
        await room.lablet("net-0", "ann")
        await browser.log_in(room.teacher)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        topic = f"class:{room.namespace}"
        async with (
            stream(made.client.url, f"{topic}?junk=1", f"{topic}?sort=help&junk=3", Cookie=cookie) as one,
            stream(made.client.url, f"{topic}?junk=2", Cookie=cookie) as other,
        ):
            for found in (one, other):
                assert (await found.next("change"))[1]["topic"] == topic
            assert len(made.running.replica.live.topics) == 1


async def teach(has: Setting, name: str, namespace: str, *rules: dict[str, Any]) -> dict[str, str]:
    """Make somebody with rights of a role of the admin's own in a namespace."""
    person = await has.people.person(name)
    base = f"{RBAC}/namespaces/{namespace}"
    await has.world.admin.create(f"{base}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": has.people.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    await has.world.admin.create(
        f"{base}/rolebindings", {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}
    )
    await eventually(
        lambda: has.world.admin.may(
            f"{has.people.prefix}{name}", "teach", "userlabs", namespace, group="vkprovider.io"
        ),
        f"{name} may teach",
    )
    return person


TEACH = {"apiGroups": ["vkprovider.io"], "resources": ["userlabs"], "verbs": ["teach"]}


async def test_an_instructor_sees_the_own_classes_alone(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has, "friday") as friday,
        classroom(has, "monday") as monday,
        Browsing(has.client.url) as who,
        Browsing(has.client.url) as alice,
        Browsing(has.client.url) as nobody,
    ):
        await friday.lablet("warm-1", "ann")
        await monday.lablet("warm-2", "ben")
        await ask(world, has.running, "carl", has.family, class_=friday.namespace)
        await ask(world, has.running, "dan", has.family, class_=monday.namespace)
        await ask(world, has.running, "eve", has.family)
        await friday.known(1)
        await when(lambda: len(has.running.replica.index.labs()) == 3, "the labs are known")
        assert (await who.log_in(friday.teacher)).headers["Location"] == "/"
        assert (await who.get("/")).headers["Location"] == friday.path
        listed = (await who.get("/classes")).text
        assert f'<a href="/classes/{friday.namespace}">{friday.namespace}</a></th><td>2</td>' in listed
        assert monday.namespace not in listed
        shown = (await who.get(friday.path)).text
        assert ">ann<" in shown
        assert ">carl<" in shown
        for other in ("ben", "dan", "eve"):
            assert f">{other}<" not in shown
        missing = await who.get("/classes/no-such-class")
        for path in (
            monday.path,
            f"{monday.path}/csv",
            "/classes/%3Cscript%3E",
            f"/classes/{'x' * 64}",
            "/classes/a.b",
        ):
            answer = await who.get(path)
            assert (answer.status_code, answer.text) == (404, missing.text), path
        for action in ("extend", "message", "nonsense"):
            answer = await act(who, friday, action, [])
            assert answer.status_code == (404 if action == "nonsense" else 422)
            sent = {"csrf": who.csrf, "scope": "all", "minutes": "15"}
            answer = await who.ask("POST", f"{monday.path}/{action}", {"Origin": who.url}, data=sent)
            assert answer.status_code == 404, action
        await alice.log_in(has.alice)
        assert (await alice.get(friday.path)).status_code == 404
        assert "You teach no class" in (await alice.get("/classes")).text
        assert (await nobody.get(friday.path)).headers["Location"].startswith("/login?next=")
        assert (await nobody.ask("POST", f"{friday.path}/extend", {"Origin": nobody.url})).status_code == 401


async def test_forms_of_other_pages_and_sessions_do_nothing(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await room.lablet("warm-1", "ann")
        await room.known(1)
        await who.log_in(room.teacher)
        await who.get(room.path)
        path, good = f"{room.path}/stop", {"csrf": who.csrf, "row": "pod-warm-1"}
        for headers, data in (
            ({"Origin": "https://evil.example"}, good),
            ({"Origin": who.url}, {**good, "csrf": "x"}),
            ({"Origin": who.url}, {"row": "pod-warm-1"}),
        ):
            assert (await who.ask("POST", path, headers, data=data)).status_code == 403
        assert "desired-state" not in await room.notes("warm-1")


async def test_the_rows_as_a_file_for_a_spreadsheet(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await fill(room, 8)
        await who.log_in(room.teacher)
        answer = await who.get(f"{room.path}/csv")
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{room.namespace}.csv"'
        assert answer.text.startswith("\ufeff"), "Excel reads umlauts by it"
        rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
        by_learner = {row["learner"]: row for row in rows}
        assert len(rows) == 8
        assert (by_learner["dora"]["devices"], by_learner["dora"]["down"]) == ("1/2", "r2")
        assert by_learner["emil"]["reason"] == "NeedsAttention"
        assert by_learner[f"'={EVIL}"]["why"].startswith("'=1+1")
        assert by_learner[""]["lablet"] == f"{room.namespace}/warm-free"
        assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
        only = await who.get(f"{room.path}/csv?reason=NeedsAttention&sort=learner&falling=1")
        assert [row["learner"] for row in csv.DictReader(io.StringIO(only.content.decode("utf-8-sig")))] == [
            "emil",
            f"'={EVIL}",
        ]


async def test_names_for_people_stand_beside_the_users(world: PortalWorld) -> None:
    """A stranger writes them: they are escaped, and no cell of a spreadsheet computes."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        for user, shown in (("zz1", "Adams, Bert"), ("aa1", "Anna Zimmer"), ("mm1", f"=1+1{EVIL}\u202e"), ("bb1", "")):
            await room.lablet(f"warm-{user}", user, shown_name=shown)
        await room.lablet("warm-free", shown_name="Left, Over")
        await room.known(5)
        await who.log_in(room.teacher)
        page = (await who.get(f"{room.path}?sort=learner")).text
        assert EVIL not in page
        assert "Left, Over" not in page
        found = re.findall(r'<th scope="row"><a[^>]*>(\w+)</a>(?: <span class="shown">(.*?)</span>)?', page)
        evil = "=1+1&lt;script&gt;alert(1)&lt;/script&gt;"
        assert found == [("mm1", evil), ("zz1", "Adams, Bert"), ("bb1", ""), ("aa1", "Anna Zimmer"), ("free", "")]
        only = (await who.get(f"{room.path}?q=zimmer")).text
        assert re.findall(r'<span class="shown">(.*?)</span>', only) == ["Anna Zimmer"]
        for path in ("csv?sort=learner", "hand-out/csv"):
            answer = await who.get(f"{room.path}/{path}")
            rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
            assert [(row["learner"], row["name"]) for row in rows if row["learner"]] == [
                ("mm1", f"'=1+1{EVIL}"),
                ("zz1", "Adams, Bert"),
                ("bb1", ""),
                ("aa1", "Anna Zimmer"),
            ]
        of_lablet = (await who.get(f"{room.path}/lablets/warm-zz1")).text
        assert "The lab of zz1 (Adams, Bert) is ready" in of_lablet


async def test_each_request_is_written_on_the_lablets_that_are_meant(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        now = int(has.running.replica.ctx.wall())
        end = iso(now + 1800)
        for learner in ("ann", "ben"):
            await room.lablet(f"warm-{learner}", learner, state="READY", timeslot_end=end)
        await room.lablet("warm-open", "carl", state="READY")
        await room.lablet("warm-over", "dan", phase="Failed", ready=False)
        await room.lablet("warm-free", state="READY")
        await room.known(5)
        await who.log_in(room.teacher)
        refused = await act(who, room, "extend", [], minutes="15")
        assert refused.status_code == 422
        assert "tick the rows" in refused.text
        assert (await act(who, room, "extend", ["pod-warm-ann"], minutes="999")).status_code == 422
        assert (await act(who, room, "message", ["pod-warm-ann"], message="x" * 501)).status_code == 422

        whom = '<span id="class-everybody" data-number="3" data-whom="ann, ben, carl">(3: ann, ben, carl)</span>'
        assert whom in (await who.get(room.path)).text
        extended = lines(await act(who, room, "extend", [], minutes="15", scope="all"))
        assert [(learner, done) for learner, done, _ in extended] == [("carl", "no"), ("ann", "yes"), ("ben", "yes")]
        assert "no end" in extended[0][2]
        assert (await room.notes("warm-ann"))["timeslot-end"] == iso(now + 1800 + 900)
        assert "timeslot-end" not in await room.notes("warm-open")

        [told] = lines(await act(who, room, "message", ["pod-warm-ann"], message=f" We go on at 14:00.\r\n{EVIL} "))
        assert told == ("ann", "yes", "has the message")
        assert (await room.notes("warm-ann"))["message"].partition(" ")[2] == f"We go on at 14:00. {EVIL}"
        assert "message" not in await room.notes("warm-ben")

        async def shown() -> bool:
            return (
                f"Message: We go on at 14:00. {EVIL}".replace("<", "&lt;").replace(">", "&gt;")
                in (await who.get(room.path)).text
            )

        await eventually(shown, "the instructor sees it")
        lines(await act(who, room, "message", ["pod-warm-ann"], message=" "))
        assert "message" not in await room.notes("warm-ann")

        assert lines(await act(who, room, "stop", ["pod-warm-ben"])) == [("ben", "yes", "is being stopped")]
        assert (await room.notes("warm-ben"))["desired-state"] == "STOPPED"
        await when(
            lambda: "STOPPED" in str(has.running.replica.lablets.pod(room.namespace, "warm-ben")), "the portal sees it"
        )
        both = lines(await act(who, room, "start", ["pod-warm-ann", "pod-warm-ben", "pod-nobody", "x"]))
        assert both == [("ann", "no", "the lab was not stopped"), ("ben", "yes", "is being started")]
        assert "desired-state" not in await room.notes("warm-ben")
        lines(await act(who, room, "reset", ["pod-warm-ben"]))
        assert (await room.notes("warm-ben"))["reset"]
        ended = lines(await act(who, room, "collect", ["pod-warm-ben", "pod-warm-free", "pod-warm-over"]))
        assert [(learner, done) for learner, done, _ in ended] == [("dan", "no"), ("warm-free", "no"), ("ben", "yes")]
        assert (await room.notes("warm-ben"))["desired-state"] == "COLLECTING"
        assert "desired-state" not in await room.notes("warm-free")


async def test_an_end_that_somebody_else_moves_is_not_lost(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        end = int(has.running.replica.ctx.wall()) + 2 * 24 * 3600  # a day that is never today
        path = await room.lablet("warm-1", "ann", state="READY", timeslot_end=iso(end - 600))
        await room.known(1)
        await who.log_in(room.teacher)
        replica = has.running.replica
        seen = replica.lablets.pod(room.namespace, "warm-1")
        note = {"vkprovider.io/timeslot-end": iso(end)}
        await world.admin.patch(path, {"metadata": {"annotations": note}})
        await when(lambda: replica.lablets.pod(room.namespace, "warm-1") != seen, "the portal has seen it")
        replica.lablets.pod_changed(None, seen)  # its watch is late
        assert lines(await act(who, room, "extend", ["pod-warm-1"], minutes="10")) == [
            ("ann", "yes", f"has time until {iso(end + 600)[:10]} {iso(end + 600)[11:16]} UTC")
        ]
        assert (await room.notes("warm-1"))["timeslot-end"] == iso(end + 600)


async def test_user_labs_of_a_class_are_asked_too(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await ask(world, has.running, "ann", has.family, class_=room.namespace)
        await ask(world, has.running, "bob", has.family)
        await world.until_phase("ann", "complete")
        await world.until_phase("bob", "complete")
        await who.log_in(room.teacher)
        teacher = f"{has.people.prefix}teacher-of-friday"
        await eventually(lambda: world.admin.may(teacher, "patch", "pods", "nublado-ann"), "the teacher is bound")

        async def notes() -> dict[str, str]:
            found = await world.admin.get(world.pod("ann"))
            assert found is not None
            given: dict[str, str] = found["metadata"]["annotations"]
            return given

        before = (await notes())["vkprovider.io/timeslot-end"]
        [extended] = lines(await act(who, room, "extend", ["lab-ann", "lab-bob"], minutes="15"))
        assert extended[:2] == ("ann", "yes")
        assert (await notes())["vkprovider.io/timeslot-end"] > before
        assert lines(await act(who, room, "message", [], scope="all", message="Hello")) == [
            ("ann", "yes", "has the message")
        ]
        assert (await notes())["vkprovider.io/message"].endswith(" Hello")
        [reset] = lines(await act(who, room, "reset", ["lab-ann"]))
        assert reset[1] == "yes"
        assert (await notes())["vkprovider.io/reset"]
        assert lines(await act(who, room, "end", ["lab-ann"])) == [("ann", "yes", "is being ended")]
        await world.until_gone("ann")
        assert await world.admin.get(world.pod("bob")) is not None


async def test_a_list_of_learners_gets_the_lablets_of_a_pool(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
        pool(room, 3) as deployment,
    ):
        await room.known(3)
        await who.log_in(room.teacher)
        path = f"{room.path}/assign"
        page = (await who.get(path)).text
        assert "<option>warm</option>" in page

        async def send(file: str | bytes | None = None, **fields: str) -> httpx.Response:
            parts: Any = {name: (None, text) for name, text in {"csrf": who.csrf, "pool": "warm", **fields}.items()}
            if file is not None:
                parts["file"] = ("names.csv", file)
            return await who.ask("POST", path, {"Origin": who.url}, files=parts)

        for fields, says in (
            ({"hours": "2"}, "names no learners"),
            ({"names": "ann\nb\x00b", "hours": "2"}, "the list, line 2"),
            ({"names": "ann", "hours": "99"}, "for how many hours"),
            ({"file": b"\x89PNG\r\n\x1a\n", "hours": "2"}, "the list, line"),
            ({"file": b"x" * 300_000, "hours": "2"}, "larger than 256 KiB"),
            ({"names": "ann", "hours": "2", "pool": "nothing"}, "deployment/nothing not found"),
        ):
            refused = await send(**fields)
            assert refused.status_code in {409, 422}, fields
            assert says in refused.text, refused.text
        assert [await room.notes(f"warm-{at}") for at in range(3)] == [{}] * 3

        looked = await send(names="ann\nBob\nbob", hours="2")
        assert "Bob and bob differ in case only" in looked.text
        assert [await room.notes(f"warm-{at}") for at in range(3)] == [{}] * 3, "it is a question"
        now = int(has.running.replica.ctx.wall())
        given = lines(await send(file=f"learner,seat\nann,1\n{EVIL},2\n", hours="2", names="nobody"))
        assert [(learner, done) for learner, done, _ in given] == [
            ("ann", "yes"),
            ("&lt;script&gt;alert(1)&lt;/script&gt;", "yes"),
        ]
        found = await world.admin.get(deployment)
        assert found is not None
        assert found["spec"]["replicas"] == 1
        notes = await room.notes(given[0][2].removeprefix("has "))
        assert (notes["username"], notes["lent-by"]) == ("ann", "warm")
        assert iso(now + 7190) < notes["timeslot-end"] < iso(now + 7300)
        again = lines(await send(names="ann\nben\ncarl", hours=""))
        assert [(learner, done) for learner, done, _ in again] == [("carl", "no"), ("ann", "yes"), ("ben", "yes")]
        assert "no lablet is free" in again[0][2]
        assert again[1] == given[0], "who has one keeps it"
        sure = lines(await send(names="Ann", hours="", alike="yes"))
        assert [(learner, done) for learner, done, _ in sure] == [("Ann", "no")]
        await who.log_in(await teach(has, "observer", room.namespace, TEACH))
        assert (await who.get(path)).status_code == 403
        assert (await send(names="dan", hours="2")).status_code == 403
        assert f'href="{path}"' not in (await who.get(room.path)).text


async def test_the_hand_out_says_where_each_learner_begins(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        end = iso(int(has.running.replica.ctx.wall()) + 1800)
        await room.lablet("warm-1", EVIL, timeslot_end=end)
        await room.lablet("warm-2", "ann", phase="Failed", ready=False)
        await room.lablet("warm-free")
        await ask(world, has.running, "carl", has.family, class_=room.namespace)
        await room.known(3)
        await who.log_in(room.teacher)
        shown = await who.get(f"{room.path}/hand-out")
        assert EVIL not in shown.text
        answer = await who.get(f"{room.path}/hand-out/csv")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{room.namespace}-hand-out.csv"'
        rows = {row["learner"]: row for row in csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff")))}
        assert set(rows) == {EVIL, "carl"}, "who has a lab that goes on"
        assert rows[EVIL] == {
            "learner": EVIL,
            "name": "",
            "lablet": "warm-1",
            "class": room.namespace,
            "link": f"{who.url}/lablets/{room.namespace}/warm-1",
            "until": end,
            "ports": "",
        }
        assert rows["carl"]["link"] == f"{who.url}/labs/carl"
        await who.log_in(has.alice)
        for path in ("hand-out", "hand-out/csv"):
            assert (await who.get(f"{room.path}/{path}")).status_code == 404


async def test_a_list_is_looked_at_before_anything_is_given(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
        pool(room, 2) as deployment,
    ):
        await room.lablet("warm-of-ann", "Ann")
        await room.known(3)
        await who.log_in(room.teacher)
        path = f"{room.path}/assign"
        await who.get(path)

        async def check(**fields: str) -> httpx.Response:
            sent = {"csrf": who.csrf, "pool": "warm", "hours": "2", **fields}
            return await who.ask("POST", f"{path}/check", {"Origin": who.url}, data=sent)

        shown = await check(names=f"username,name\nAnn,Ann A.\n{EVIL},=1\nben,\ncarl,")
        assert shown.status_code == 200
        assert "4 names, 2 free: 1 has one already, 1 lacks one: add 1" in shown.text
        assert EVIL not in shown.text
        rows = re.findall(
            r'<th scope="row">(.*?)</th><td>(.*?)</td><td><span class="chip (\w+)">(.*?)</span>', shown.text
        )
        assert [(learner, tone, words) for learner, _, tone, words in rows] == [
            ("carl", "bad", "lacks one"),
            ("&lt;script&gt;alert(1)&lt;/script&gt;", "good", "gets one"),
            ("ben", "good", "gets one"),
            ("Ann", "idle", "keeps warm-of-ann"),
        ]
        alike = await check(names="ann")
        assert "Ann and ann differ in case only" in alike.text, "also from who has one"

        async def replicas() -> int:
            found = await world.admin.get(deployment)
            assert found is not None
            return int(found["spec"]["replicas"])

        assert (await check(names="ben", replicas="9", seen="7")).status_code == 409
        assert (await check(names="ben", replicas="99999", seen="2")).status_code == 409
        assert await replicas() == 2
        grown = await check(names="ben\ncarl\ndan", replicas="3", seen="2")
        assert "1 lacks one until more of the pool are ready" in grown.text
        assert await replicas() == 3
        assert (await who.get(f"{path}/check")).headers["Location"] == path
        assert [await room.notes(f"warm-{at}") for at in range(2)] == [{}] * 2
        await who.log_in(await teach(has, "observer", room.namespace, TEACH))
        await who.get(room.path)
        assert (await check(names="ben", replicas="9", seen="3")).status_code == 403
        assert await replicas() == 3


async def test_a_pool_is_made_and_sized_on_the_page(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        deployments = f"/apis/apps/v1/namespaces/{room.namespace}/deployments"
        await who.log_in(room.teacher)
        path = f"{room.path}/pools"
        assert f'href="{path}">Make a pool</a>' in (await who.get(room.path)).text
        page = (await who.get(path)).text
        assert "This class has no pool yet." in page
        assert f"<option>{has.definition}-small</option>" in page
        wished = {"name": "warm", "definition": f"{has.definition}-small", "replicas": "3"}
        for wrong, status in (
            ({"name": "Warm!"}, 422),
            ({"replicas": "-1"}, 422),
            ({"replicas": "1001"}, 422),
            ({"definition": "nothing"}, 409),
        ):
            assert (await who.post(path, None, **{**wished, **wrong})).status_code == status, wrong
        made = await who.post(path, None, **wished)
        assert (made.status_code, made.headers["Location"]) == (303, path)
        found = await world.admin.get(f"{deployments}/warm")
        assert found is not None
        assert (found["spec"]["replicas"], found["metadata"]["labels"]) == (3, {"class": room.namespace})
        assert (await who.post(path, None, **wished)).status_code == 409, "there is one"
        assert (await who.post(f"{path}/warm", replicas="5", seen="2")).status_code == 409, "somebody else was faster"
        assert (await who.post(f"{path}/warm", replicas="x", seen="3")).status_code == 422
        assert (await who.post(f"{path}/warm", replicas="5", seen="3")).status_code == 303
        found = await world.admin.get(f"{deployments}/warm")
        assert found is not None
        assert found["spec"]["replicas"] == 5
        assert "0 of 5" in (await who.get(path)).text
        await who.log_in(await teach(has, "observer", room.namespace, TEACH))
        assert (await who.get(path)).status_code == 403
        assert (await who.post(f"{path}/warm", replicas="0", seen="5")).status_code == 403
        assert path not in (await who.get(room.path)).text
        await world.admin.delete(f"{deployments}/warm")


async def test_a_file_of_cml_becomes_a_definition_of_the_class_and_is_tried(world: PortalWorld) -> None:
    """The test acts as the provider, which reads the definition and makes its RuntimeClass."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await who.log_in(room.teacher)
        path, name = f"{room.path}/definitions", f"branch-{room.namespace}"[:50]
        assert "This class has no definition of its own yet." in (await who.get(path)).text
        text = topology({"r1": "alpine"}, {"r1": ["serial:4001"]})

        async def send(file: str | bytes, filename: str = "Branch.yaml", **fields: str) -> httpx.Response:
            parts: Any = {each: (None, value) for each, value in {"csrf": who.csrf, **fields}.items()}
            return await who.ask("POST", path, {"Origin": who.url}, files={**parts, "file": (filename, file)})

        for refused in (
            await send(b"\xff\xfe\x00", name=name),
            await send(text, name="No!"),
            await send(text, "_.yaml"),
        ):
            assert refused.status_code == 422, refused.text
        made = await send(text, name=name)
        assert (made.status_code, made.headers["Location"]) == (303, path)
        where = f"{DEFINITIONS}/{name}"
        try:
            found = await world.admin.get(where)
            assert found is not None
            assert found["metadata"]["labels"] == {"vkprovider.io/owner-namespace": room.namespace}
            kept = found["spec"]["source"]["configMap"]
            content = await world.admin.get(f"/api/v1/namespaces/{kept['namespace']}/configmaps/{kept['name']}")
            assert content is not None
            assert content["data"]["cml.yaml"] == text
            assert "the provider has not read it yet" in (await who.get(path)).text
            assert (await send(text, name=name)).status_code == 303, "the same again changes nothing"
            other = await send(f"{text}\n", name=name)
            assert other.status_code == 409
            assert "--version 1.0.1" in other.text

            ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": iso(0)}
            status = {"version": "1.0.0", "observedGeneration": found["metadata"]["generation"], "conditions": [ready]}
            await world.admin.patch(f"{where}/status", {"status": status})
            labels = {"vkprovider.io/component": "runtimeclass"}
            selector = {"nodeSelector": {"vkprovider.io/component": "vnode"}}
            runtime = {"metadata": {"name": name, "labels": labels}, "handler": "vkprovider", "scheduling": selector}
            await world.admin.create(RUNTIME_CLASSES, runtime)

            async def begun() -> bool:  # the API server learns of the RuntimeClass a moment later
                return (await who.post(f"{path}/{name}/trials")).status_code == 303

            await eventually(begun, "a trial has begun")
            pods = await world.admin.items(f"/api/v1/namespaces/{room.namespace}/pods")
            [trial] = [pod["metadata"]["name"] for pod in pods]
            assert trial.startswith(f"try-{name}-")
            assert pods[0]["spec"]["activeDeadlineSeconds"] == 3600
            assert f">{trial}</a>" in (await who.get(path)).text
            await room.lablet("warm-1", "ann")
            assert (await who.post(f"{path}/{name}/trials/warm-1")).status_code == 409, "a learner's is no trial"
            assert (await who.post(f"{path}/{name}/trials/{trial}")).status_code == 303
            assert trial not in (await who.get(path)).text
            assert await room.notes("warm-1")
            await who.log_in(await teach(has, "observer", room.namespace, TEACH))
            assert (await who.get(path)).status_code == 403
        finally:
            await world.admin.delete(where)
            await world.admin.delete(f"{RUNTIME_CLASSES}/{name}")


async def test_one_lablet_is_asked_on_its_own_page(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        classroom(has, "monday") as monday,
        Browsing(has.client.url) as who,
    ):
        now = int(has.running.replica.ctx.wall())
        yesterday = iso(now - 86400)
        await room.lablet("warm-1", "ann", state="READY", timeslot_end=iso(now + 600), last_activity=yesterday)
        await room.lablet("warm-free", state="READY")
        await monday.lablet("warm-2", "ben", state="READY")
        await room.known(2)
        await who.log_in(room.teacher)
        assert f'last at <time datetime="{yesterday}" data-clock>' in (await who.get(room.path)).text
        path = f"{room.path}/lablets/warm-1"
        page = await who.get(path)
        assert page.status_code == 200
        assert re.search(rf'formaction="{path}/extend"[^>]* name="minutes" value="15"', page.text)
        assert f'href="{path}/consoles/r1"' in page.text
        assert re.search(r'form="acts" name="learner" value="ann"', page.text)
        for act, fields in (("extend", {"minutes": "15"}), ("stop", {}), ("devices/stop", {"device": "r1"})):
            stale = await who.post(f"{path}/{act}", None, learner="eve", **fields)
            assert stale.status_code == 409
            assert "The lab is that of ann now; nothing was done." in stale.text
        assert "desired-state" not in await room.notes("warm-1")
        free = (await who.get(f"{room.path}/lablets/warm-free")).text
        assert "/extend" not in free.partition('<section id="lab-acts"')[2].partition("</section>")[0]
        done = await who.post(f"{path}/extend", minutes="15", learner="ann")
        assert (done.status_code, done.headers["Location"]) == (303, path)
        assert (await room.notes("warm-1"))["timeslot-end"] == iso(now + 1500)
        assert (await who.post(f"{path}/extend", minutes="x")).status_code == 422
        refused = await who.post(f"{path}/start")
        assert refused.status_code == 409
        assert "was not stopped" in refused.text
        await who.post(f"{path}/collect")
        assert (await room.notes("warm-1"))["desired-state"] == "COLLECTING"
        for gone in (f"{room.path}/lablets/none", f"{monday.path}/lablets/warm-2", "/classes/a.b/lablets/x"):
            assert (await who.get(gone)).status_code == 404
            assert (await who.post(f"{gone}/stop")).status_code == 404
        assert (await who.post(f"{path}/end")).status_code == 404
        assert "desired-state" not in await monday.notes("warm-2")
        await who.log_in(await teach(has, "observer", room.namespace, TEACH))
        page = await who.get(path)
        assert f"{path}/reset" not in page.text
        assert (await who.post(f"{path}/reset")).status_code == 403
        assert "reset" not in await room.notes("warm-1")


async def test_who_may_only_look_has_nothing_to_press(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await room.lablet("warm-1", "ann", state="READY")
        await room.known(1)
        await who.log_in(await teach(has, "observer", room.namespace, TEACH))
        page = (await who.get(room.path)).text
        assert ">ann<" in page
        assert "<form" not in page.partition("<main")[2].replace('<form class="filter"', "")
        assert 'type="checkbox"' not in page
        answer = await who.ask(
            "POST", f"{room.path}/stop", {"Origin": who.url}, data={"csrf": who.csrf, "row": "pod-warm-1"}
        )
        assert answer.status_code == 403
        assert "do nothing in it" in answer.text
        assert "desired-state" not in await room.notes("warm-1")


async def test_a_right_on_some_pods_alone_fails_for_the_others_and_says_so(world: PortalWorld) -> None:
    """The page offers what the namespace allows; the API server decides about each Pod, by the visitor's own token."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await room.lablet("warm-1", "ann", state="READY")
        await ask(world, has.running, "bob", has.family, class_=room.namespace)
        await world.until_phase("bob", "complete")
        await room.known(1)
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]}
        await who.log_in(await teach(has, "helper", room.namespace, TEACH, pods))  # is bound in no lab
        assert [(learner, done) for learner, done, _ in lines(await act(who, room, "reset", [], scope="all"))] == [
            ("bob", "no"),
            ("ann", "yes"),
        ]


async def test_a_withdrawn_right_ends_all_of_it(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await room.lablet("warm-1", "ann", state="READY")
        await room.known(1)
        second = await has.people.person("second", USER_ROLE)
        bound = await has.people.allow("second", INSTRUCTOR_ROLE, room.namespace)
        await who.log_in(second)
        assert (await who.get(room.path)).status_code == 200
        await world.admin.delete(bound)

        async def lost() -> bool:
            return (await who.get(room.path)).status_code == 404

        async with asyncio.timeout(60):
            await eventually(lost, "the class is closed")
        assert room.namespace not in (await who.get("/classes")).text


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_page_or_log_has_a_token(world: PortalWorld, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has) as room,
        Browsing(has.client.url) as who,
    ):
        await room.lablet("warm-1", "ann", state="READY")
        await room.known(1)
        await who.log_in(room.teacher)
        if method == "POST":
            lines(await act(who, room, "stop", ["pod-warm-1"]))
        else:
            await who.get(room.path)
        token = room.teacher["Authorization"].removeprefix("Bearer ")
        assert not any(token in text for text in who.texts)
        assert token not in capsys.readouterr().out


async def test_who_comes_through_an_ingress_without_a_token_writes_on_no_pod(world: PortalWorld) -> None:
    secret = "a-secret-that-only-the-ingress-knows"
    async with (
        setting(world) as has,
        classroom(has) as room,
    ):
        running = await world.replica(
            VKPROVIDER_PORTAL_USERNAME_PREFIX=has.people.prefix,
            VKPROVIDER_PORTAL_CALLERS="headers",
            VKPROVIDER_PORTAL_INGRESS_SECRET=secret,
        )
        await room.lablet("warm-1", "ann", state="READY")
        await ask(world, has.running, "bob", has.family, class_=room.namespace)
        await world.until_phase("bob", "complete")
        await when(lambda: running.replica.index.lab("bob") and running.replica.lablets.of(room.namespace), "both")
        named = {"X-Portal-Ingress-Secret": secret, "X-Auth-Request-User": "teacher-of-friday"}
        async with Browsing(f"http://127.0.0.1:{running.page.port}") as who:
            page = await who.ask("GET", room.path, named)
            assert page.status_code == 200
            assert [act for act in ("extend", "end", "reset", "message") if f'id="ask-{act}"' in page.text] == [
                "extend",
                "end",
            ]
            assert "/assign" not in page.text
            sent = {"csrf": who.csrf, "scope": "all", "minutes": "15"}
            answer = await who.ask("POST", f"{room.path}/extend", {**named, "Origin": who.url}, data=sent)
            assert [(learner, done) for learner, done, _ in lines(answer)] == [("ann", "no"), ("bob", "yes")]
            refused = await who.ask("POST", f"{room.path}/reset", {**named, "Origin": who.url}, data=sent)
            assert refused.status_code == 403


async def test_times_beyond_the_calendar_take_no_page_away(world: PortalWorld) -> None:
    """Who may write on one Pod of a class writes any time there; the page and the rows of the others stay."""
    beyond = "9999-12-31T23:59:59-23:59"
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has, "friday") as friday,
        Browsing(has.client.url) as who,
    ):
        path = await friday.lablet("warm-1", "ann", timeslot_end=beyond, last_activity=beyond)
        said = {"metadata": {"annotations": {names.ANNOTATION_MESSAGE: f"{beyond} Hello."}}}
        await world.admin.request("PATCH", path, said, "application/merge-patch+json")
        await friday.lablet("warm-2", "ben", timeslot_end="9999-12-31T23:59:59Z")
        await friday.known(2)
        await who.log_in(friday.teacher)
        for path in (
            friday.path,
            f"{friday.path}/csv",
            f"{friday.path}/lablets/warm-1",
            f"{friday.path}/lablets/warm-2",
        ):
            shown = await who.get(path)
            assert shown.status_code == 200, path
        for path in (friday.path, f"{friday.path}/csv"):
            assert {"ann", "ben"} <= set(re.findall(r"ann|ben", (await who.get(path)).text)), path
        extended = lines(await act(who, friday, "extend", ["pod-warm-2"], minutes="60"))
        assert len(extended) == 1


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may ask for more names after a while: on a busy machine the requests of a test take long."""
    monkeypatch.setattr(callers, "_NAMES_PER_S", 0.0001)


@pytest.mark.usefixtures("unhurried")
async def test_a_stranger_who_asks_for_many_classes_leaves_reviews_for_others(world: PortalWorld) -> None:
    """A name that the portal knows nothing of takes no review; those of one stranger are limited before all others'."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        Browsing(has.client.url) as trudy,
        Browsing(has.client.url) as mallory,
        Browsing(has.client.url) as alice,
    ):
        await trudy.log_in(await has.people.person("trudy"))
        await mallory.log_in(await has.people.person("mallory"))
        has.running.api.asked.clear()
        for at in range(50):
            assert (await trudy.get(f"/classes/made-up-{at}")).status_code == 404
        assert not [each.line for each in has.running.api.asked if "subjectaccessreviews" in each.path]
        paths = [f"/classes/made-up-{at}/lablets/x/consoles/r1" for at in range(120)]
        statuses = Counter(answer.status_code for answer in await asyncio.gather(*map(mallory.get, paths)))
        assert statuses == {404: 100, 429: 20}
        await alice.log_in(has.alice)
        assert (await alice.get("/labs/alice")).status_code == 200


@pytest.mark.usefixtures("unhurried")
async def test_how_often_a_class_may_be_asked_for_does_not_tell_whether_there_is_one(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has, "monday") as monday,
        Browsing(has.client.url) as mallory,
        Browsing(has.client.url) as trudy,
    ):
        await monday.lablet("warm-1", "ann")
        await monday.known(1)
        for name, who, path in (("mallory", mallory, monday.path), ("trudy", trudy, "/classes/nope")):
            await who.log_in(await has.people.person(name))
            statuses = Counter(each.status_code for each in await asyncio.gather(*(who.get(path) for _ in range(120))))
            assert statuses == {404: 100, 429: 20}, path


async def test_no_label_hides_a_lablet_from_the_page_of_its_class(world: PortalWorld) -> None:
    """The mark of user labs makes none of a Pod: its namespace does, which only the portal marks."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        classroom(has, "friday") as friday,
        Browsing(has.client.url) as who,
    ):
        path = await friday.lablet("warm-1", "ann")
        await friday.lablet("warm-2", "ben")
        await friday.known(2)
        await who.log_in(friday.teacher)
        marked = {"metadata": {"labels": {portalnames.LABEL_PORTAL: SYSTEM}}}
        await world.admin.patch(path, marked)
        replica = has.running.replica
        await when(lambda: f"{friday.namespace}/warm-1" not in replica.objects.lablets.items, "the label is known")
        await friday.known(2)
        for page in (friday.path, f"{friday.path}/csv"):
            assert "ann" in (await who.get(page)).text, page
        assert (await who.get(f"{friday.path}/lablets/warm-1")).status_code == 200
        assert f"{friday.namespace}</a></th><td>2</td>" in (await who.get("/classes")).text
        late = await world.replica(VKPROVIDER_PORTAL_COOKIE_KEY=KEY)
        assert [pod.metadata.name for pod in late.replica.lablets.of(friday.namespace)] == ["warm-1", "warm-2"]
        await ask(world, has.running, "carl", has.family, class_=friday.namespace)
        await world.until_phase("carl", "complete")
        assert friday.namespace in replica.lablets.namespaces()
        assert not [each for each in replica.lablets.namespaces() if each.startswith("nublado-")]


async def test_the_list_of_classes_takes_few_reviews(world: PortalWorld) -> None:
    """A learner who opens it has no class; who may teach everywhere is asked for once."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as has,
        AsyncExitStack() as stack,
        Browsing(has.client.url) as alice,
        Browsing(has.client.url) as chief,
    ):
        rooms = [await stack.enter_async_context(classroom(has, f"course-{at:02}")) for at in range(14)]
        for room in rooms:
            await room.lablet("warm-1")
            await room.known(1)
        await alice.log_in(has.alice)
        await alice.get("/labs/alice")
        has.running.api.asked.clear()
        assert "You teach no class" in (await alice.get("/classes")).text
        assert len([each for each in has.running.api.asked if "subjectaccessreviews" in each.path]) <= 12
        await chief.log_in(await has.people.person("chief"))
        path, name = f"{RBAC}/clusterrolebindings", f"chief-{has.people.namespace}"
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": INSTRUCTOR_ROLE}
        subject = {"kind": "ServiceAccount", "name": "chief", "namespace": has.people.namespace}
        await world.admin.create(path, {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]})
        try:

            async def listed() -> bool:
                text = (await chief.get("/classes")).text
                return all(f">{room.namespace}<" in text for room in rooms)

            await eventually(listed, "all classes are listed")
        finally:
            await world.admin.delete(f"{path}/{name}")
