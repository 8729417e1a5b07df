"""The work and the grades of a class: of lablets that run and of those that are gone, by the visitor's own right."""

import asyncio
import csv
import io
import ssl
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from aiohttp import web

from tests.component.controllers.looking import eventually, when
from tests.component.controllers.running import SHORT
from tests.component.portal.people import INSTRUCTOR_ROLE, RBAC
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import token_of
from tests.component.portal.site.consolebench import KEY, Bench, console_bench
from tests.support.apiserver import CONFIG_MAPS, SYSTEM, ApiServer
from tests.support.page import visiting
from tests.support.scripted import Handler, ScriptedServer, answer, refuse
from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.lablet.names import ANNOTATION_SHOWN_NAME, ANNOTATION_USERNAME
from vkprovider.lablet.shownname import shown_in
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.portal.web.consoles.routes import FAILURES
from vkpsandbox.controlplane.components import ISSUER
from vkpsandbox.processes.ports import free_ports

PATHS = ("", "/grades.csv", "/now.zip", "/left.zip")
SETTING = "VKPROVIDER_PORTAL_PROVIDER_URL"


async def store(bench: Bench, number: int, learner: str, **fields: Any) -> str:
    """Store what a learner of the class left in a lablet that is gone; return the name of its object."""
    at, uid = int(bench.running.replica.ctx.wall()) + 10 + number, f"{number:08d}-0000-4000-8000-000000000000"
    gone = Leftovers(bench.site.lablet.namespace, f"gone-{number}", uid, "netlab", "1.0.0", **fields)
    gone = msgspec.structs.replace(gone, username=learner, at=at)
    body = leftovers.build(gone, namespace=SYSTEM, installation="i")
    await bench.portal.admin.create(CONFIG_MAPS, body)
    return str(body["metadata"]["name"])


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    """A class of which a provider has a page that takes the tokens of the cluster, and the portal knows it."""
    [port] = free_ports(1)
    accepting = {"VKPROVIDER_HTTP_AUDIENCES": f"vkprovider.io {ISSUER}"}
    async with (
        console_bench(
            portal_server,
            tmp_path,
            SHORT,
            0,
            accepting,
            VKPROVIDER_PORTAL_PROVIDER_URL=f"http://127.0.0.1:{port}",
        ) as bench,
        bench.site.running.page(port),
    ):
        yield bench


async def give(bench: Bench, learner: str, shown: str = "") -> None:
    """Give the lablet to a learner, and wait until the portal knows."""
    pod = bench.site.lablet
    notes = {ANNOTATION_USERNAME: learner, ANNOTATION_SHOWN_NAME: shown}
    await bench.portal.admin.patch(pod.path, {"metadata": {"annotations": notes}})
    lablets = bench.running.replica.lablets
    await when(
        lambda: (seen := lablets.pod(pod.namespace, pod.name)) is not None and shown_in(seen) == shown, "it is given"
    )


def files(content: bytes) -> dict[str, str]:
    """Return the files of an archive, which `unzip -t` would find whole."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.testzip() is None
        return {name: packed.read(name).decode() for name in packed.namelist()}


async def test_work_and_grades_of_now_and_before(bench: Bench) -> None:
    await give(bench, "ben", "Berg, Ben")
    passed, failed = Verdict(passed=True, message="score 9 of 10"), Verdict(passed=False, message="score 2 of 10: =1+1")
    await store(bench, 1, "ann", configs={"r1": "hostname of-ann"}, grade=passed, shown="Adler, Zoe")
    await store(bench, 2, "cid", configs={"r1": "hostname old"})
    await store(bench, 3, "cid", configs={"r1": "hostname new", "../R 2": "x"}, faults={"fw": "was off"}, grade=failed)
    work = f"/classes/{bench.site.lablet.namespace}/work"
    async with Browsing(bench.url) as teacher:
        await teacher.log_in(await bench.teacher("kim"))
        assert f'href="{work}"' in (await teacher.get(work.removesuffix("/work"))).text
        shown = (await teacher.get(work)).text
        assert "1 learner with a lab: Berg, Ben" in shown
        assert "of 2 learners whose work was collected" in shown
        assert "Adler, Zoe, cid" in shown
        table = (await teacher.get(f"{work}/grades.csv")).content.decode("utf-8-sig")
        [head, *rows] = csv.reader(io.StringIO(table))
        assert [row[:4] for row in rows] == [
            ["ann", "Adler, Zoe", "yes", "9"],
            ["cid", "", "no", "2"],
            ["cid", "", "", ""],
        ]
        assert (head[5], [row[5] for row in rows]) == ("lablet", ["gone-1", "gone-3", "gone-2"])

        left = await teacher.get(f"{work}/left.zip")
        assert left.headers["Content-Disposition"].endswith("-left.zip")
        assert left.headers["X-Content-Type-Options"] == "nosniff"
        assert files(left.content) == {
            "ann/r1.cfg": "hostname of-ann",
            "cid/r1.cfg": "hostname new",
            "cid/R-2.cfg": "x",
            FAILURES: "cid, fw: was off\n",
        }
        now = files((await teacher.get(f"{work}/now.zip")).content)
        assert {"ben/r1.cfg", "ben/h0.cfg"} <= now.keys()
        assert "hostname" in now["ben/r1.cfg"]


async def test_who_may_not_gets_nothing_of_it(bench: Bench) -> None:
    await give(bench, "ben")
    secret = "hostname only-for-this-class"
    await store(bench, 1, "ann", configs={"r1": secret})
    namespace, people = bench.site.lablet.namespace, bench.people
    work = f"/classes/{namespace}/work"
    other = await people.person("other")
    await people.allow("other", INSTRUCTOR_ROLE, SYSTEM)
    for person in (other, await people.person("ben"), await people.person("stranger")):
        async with Browsing(bench.url) as who:
            await who.log_in(person)
            for path in PATHS:
                assert (await who.get(work + path)).status_code == 404, path
    async with Browsing(bench.url) as nobody:
        for path in PATHS:
            assert (await nobody.get(work + path)).headers["Location"].startswith("/login"), path

    # Who teaches by a role of the admin's own, which reads neither devices nor the archive.
    looks = await people.person("looks")
    rules = [{"apiGroups": ["vkprovider.io"], "resources": ["userlabs"], "verbs": ["teach"]}]
    subject = {"kind": "ServiceAccount", "name": "looks", "namespace": people.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"}
    base, admin = f"{RBAC}/namespaces/{namespace}", bench.portal.admin
    await admin.create(f"{base}/roles", {"metadata": {"name": "looks"}, "rules": rules})
    await admin.create(f"{base}/rolebindings", {"metadata": {"name": "looks"}, "roleRef": ref, "subjects": [subject]})
    user = f"{people.prefix}looks"
    await eventually(lambda: admin.may(user, "teach", "userlabs", namespace, group="vkprovider.io"), "she teaches")
    async with Browsing(bench.url) as who:
        await who.log_in(looks)
        shown = await who.get(work)
        assert shown.status_code == 200
        assert "You may read nothing of the devices of 1 learner with a lab." in shown.text
        assert "You may not see what learners of this class have left" in shown.text
        assert "now.zip" not in shown.text
        assert (await who.get(f"{work}/now.zip")).status_code == 403
        for path in ("/left.zip", "/grades.csv"):
            refused = await who.get(work + path)
            assert (refused.status_code, "You may not see" in refused.text) == (503, True), path
        assert all(secret not in text for text in who.texts)


async def breaks_off(request: web.Request) -> web.StreamResponse:
    """Answer with the beginning of an answer."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"items": [')
    assert request.transport is not None
    request.transport.close()
    return response


async def hangs(_: web.Request) -> web.StreamResponse:
    """Answer nothing."""
    await asyncio.Event().wait()
    raise AssertionError


async def no_page(request: web.Request) -> web.StreamResponse:
    """Answer as something else does."""
    return web.Response(text=f"<h1>{request.path}</h1>")


@asynccontextmanager
async def portal_at(
    bench: Bench, server: ScriptedServer, times: Mapping[str, float] | None = None, **env: str
) -> AsyncIterator[str]:
    """Start one more replica of the portal, which asks a server that answers as it is told; yield its URL.

    Args:
        bench: The class.
        server: Is started, and ends with the block.
        times: Intervals that no setting names; by default those of the world.
        env: Settings.
    """
    await server.start()
    given = {"VKPROVIDER_PORTAL_USERNAME_PREFIX": bench.people.prefix, "VKPROVIDER_PORTAL_COOKIE_KEY": KEY}
    asking = {**given, SETTING: server.url, **env}
    running = await bench.portal.replica(times=times, **asking)  # type: ignore[arg-type]  # (settings alone)
    pod = bench.site.lablet
    await when(lambda: running.replica.lablets.pod(pod.namespace, pod.name) is not None, "the lablet is known")
    try:
        yield f"http://127.0.0.1:{running.page.port}"
    finally:
        await server.stop()


async def test_a_page_that_fails_is_one_sentence_and_no_file(bench: Bench) -> None:
    work = f"/classes/{bench.site.lablet.namespace}/work"
    server = ScriptedServer()
    teacher = await bench.teacher("kim")

    async def fails(kim: Browsing, handler: Handler, words: str) -> None:
        for path, status in (("", 200), ("/grades.csv", 503), ("/left.zip", 503)):
            server.next(handler)
            shown = await kim.get(work + path)
            assert (shown.status_code, words in shown.text) == (status, True), (path, words, shown.text)

    impatient = {**bench.portal.times, "page_s": 1.0}
    async with portal_at(bench, server, impatient) as url, Browsing(url) as kim:
        await kim.log_in(teacher)
        await fails(kim, hangs, "cannot be asked: no answer within 1 s; try again later.")
    async with portal_at(bench, server) as url, Browsing(url) as kim:
        await kim.log_in(teacher)
        for handler, words in (
            (breaks_off, "cannot be asked: its answer breaks off; try again later."),
            (refuse(401, "the token is not accepted"), "The provider&#39;s page does not accept your login: "),
            (refuse(403, "you may not get lablets/archive"), "You may not see what learners of this class have left: "),
            (refuse(503, "the archive cannot be listed now"), "the archive cannot be listed now."),
            (no_page, "The provider&#39;s page does not say what learners have left: "),
        ):
            await fails(kim, handler, words)
        tokens = {seen.headers["Authorization"] for seen in server.seen}
        assert tokens == {teacher["Authorization"]}, "it is asked in the visitor's name alone"
        await server.stop()
        assert "cannot be asked: " in (await kim.get(work)).text


async def test_a_page_whose_certificate_is_not_trusted_gets_no_token(bench: Bench, tmp_path: Path) -> None:
    work = f"/classes/{bench.site.lablet.namespace}/work"
    mine, other, file = trustme.CA(), trustme.CA(), tmp_path / "ca.crt"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    mine.issue_cert("127.0.0.1").configure_cert(context)
    server = ScriptedServer(tls=context)
    listed = answer({"items": [], "continue": ""})
    async with portal_at(bench, server, VKPROVIDER_PORTAL_PROVIDER_CA_FILE=str(file)) as url, Browsing(url) as kim:
        await kim.log_in(await bench.teacher("kim"))
        for trusted in (None, other):
            if trusted is not None:
                trusted.cert_pem.write_to_path(file)
            shown = (await kim.get(work)).text
            assert "has a certificate that the portal does not trust" in shown
            assert "VKPROVIDER_PORTAL_PROVIDER_CA_FILE" in shown
        assert server.seen == []
        mine.cert_pem.write_to_path(file)
        server.next(listed)
        assert "No learner of this class has left anything within a week." in (await kim.get(work)).text


async def test_a_zip_says_whom_it_lacks(bench: Bench) -> None:
    """Whose work cannot be read is named in it; after a silence nobody else is asked for."""
    namespace, server = bench.site.lablet.namespace, ScriptedServer()
    at = int(bench.running.replica.ctx.wall())
    entries = [{"id": f"u{n}", "namespace": namespace, "pod": f"p{n}", "at": at, "learner": f"l{n}"} for n in range(5)]

    def whole(number: int) -> dict[str, Any]:
        fields = {"podUid": f"u{number}", "definition": "netlab", "version": "1", "configs": {"r1": f"of l{number}"}}
        return {"namespace": namespace, "pod": f"p{number}", "username": f"l{number}", **fields}

    async with portal_at(bench, server) as url, Browsing(url) as kim:
        await kim.log_in(await bench.teacher("kim"))
        for where, handler in (
            ("/u0", answer(whole(0))),
            ("/u1", refuse(503, "not now")),
            ("/u2", answer({**whole(2), "responses": "x" * (11 * 2**20)})),
            ("/u3", breaks_off),
            ("/archives", answer({"items": entries, "continue": ""})),
        ):
            server.next(handler, when=where)
        found = files((await kim.get(f"/classes/{namespace}/work/left.zip")).content)
        missing = found.pop(FAILURES)
        assert found == {"l0/r1.cfg": "of l0"}
        assert "l2: What was left is more than the 10 MiB that the portal reads at once" in missing
        assert "l1: The provider's page does not say what learners have left: not now." in missing
        assert "l3: The provider's page at" in missing
        assert "Nor is there anything of l4." in missing
        assert [seen.path for seen in server.seen if seen.path.endswith("/u4")] == []


async def test_an_instructor_reads_it_in_a_browser(bench: Bench) -> None:
    await give(bench, "ben", "Berg, Ben")
    name = await store(
        bench,
        1,
        "ann",
        configs={"r1": "x"},
        shown="Adler, Zoe",
        grade=Verdict(passed=True, message="score 9 of 10: <b>=1+1</b>"),
    )
    teacher, work = await bench.teacher("kim"), f"/classes/{bench.site.lablet.namespace}"
    async with visiting(bench.url) as page:
        await page.log_in(token_of(teacher), work)
        await page.press(f'a[href="{work}/work"]')
        await page.shows("Work and grades of")
        assert " ".join((await page.text("#grades")).split()).startswith("ann Adler, Zoe passed")
        assert "<b>=1+1</b>" in await page.text("#grades")
        await page.judge(changed=False)
    await bench.portal.admin.delete(f"{CONFIG_MAPS}/{name}")
    given = {"VKPROVIDER_PORTAL_USERNAME_PREFIX": bench.people.prefix, "VKPROVIDER_PORTAL_COOKIE_KEY": KEY}
    without = await bench.portal.replica(**given)  # type: ignore[arg-type]  # (settings alone)
    pod = bench.site.lablet
    await when(lambda: without.replica.lablets.pod(pod.namespace, pod.name) is not None, "the lablet is known")
    async with visiting(f"http://127.0.0.1:{without.page.port}") as page:
        await page.log_in(token_of(teacher), f"{work}/work")
        await page.shows(f"an administrator names the address of the provider's page in {SETTING}.")
        await page.shows("Download what runs now (zip)")
        assert "Download what learners left" not in await page.text()
        await page.judge(changed=False)
