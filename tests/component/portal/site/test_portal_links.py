"""A link per learner: what it opens in the portal, what it does not, how it ends, and who finds its secret later."""

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import httpx
import structlog

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import SPAWNER, Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import RBAC
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import ClassRoom, classroom, pool
from tests.component.portal.site.test_live_streams import stream
from vkprovider.classroom import access, links
from vkprovider.classroom.links import LinkCode
from vkprovider.classroom.pods import pods_in
from vkprovider.lablet import names
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings
from vkprovider.portal.web.cookie import expiry
from vkprovider.portal.web.links import TOKEN_S, LinkTokens

KEY: Final = b64encode(os.urandom(32)).decode()
OPENS_NOTHING: Final = "This link opens nothing"
Json = dict[str, Any]


class LinkedClass(NamedTuple):
    """A class whose learner bob has a link.

    Attributes:
        kube: An administrator, who assigns.
        code: Of bob's link.
    """

    made: Setting
    room: ClassRoom
    kube: KubeClient
    code: LinkCode

    @property
    def mine(self) -> str:
        return f"/link/lablets/{self.room.namespace}/warm-1"

    async def given(self, *pods: str, again: bool = False) -> links.LinkRound:
        """Assign lablets with links, as `kubectl lablet assign --links` does."""
        return await given(self.kube, self.room.namespace, *pods, again=again)


async def given(kube: KubeClient, namespace: str, *pods: str, again: bool = False) -> links.LinkRound:
    found = [each for each in await pods_in(kube, namespace).list() if each.metadata.name in pods]
    done = await links.make_links(kube, namespace, found, again=again)
    assert done.faults == ()
    assert await access.open_access(kube, namespace, [*found, *done.left]) == ()
    return done


async def allow(world: PortalWorld, namespace: str, value: str | None) -> None:
    await world.admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {names.LABEL_LINKS: value}}})


@asynccontextmanager
async def assigning(world: PortalWorld) -> AsyncIterator[KubeClient]:
    """Yield the client of an administrator."""
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(world.server.kubeconfig)))
    try:
        yield kube
    finally:
        await kube.close()


@asynccontextmanager
async def linked_class(world: PortalWorld) -> AsyncIterator[LinkedClass]:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        assigning(world) as kube,
    ):
        await allow(world, room.namespace, names.LINKS_ALLOWED)
        for name, learner in (("warm-1", "bob"), ("warm-2", "ann"), ("warm-3", "")):
            await room.lablet(name, learner, state="READY", devices="2/2")
        await room.known(3)
        code = (await given(kube, room.namespace, "warm-1", "warm-2")).codes["bob"]
        yield LinkedClass(made, room, kube, code)


async def opened(browser: Browsing, code: str) -> httpx.Response:
    """Open a link as the page does, or by hand."""
    page = await browser.get("/link")
    assert page.status_code == 200
    return await browser.post("/link", code=code)


async def lets_in(browser: Browsing, code: str) -> bool:
    """Return whether a link opens; a policy takes a moment."""
    return (await opened(browser, code)).status_code == 303


async def test_a_link_opens_the_lablet_of_its_learner_and_nothing_else(world: PortalWorld) -> None:
    async with linked_class(world) as the, Browsing(the.made.client.url) as bob:
        await eventually(lambda: lets_in(bob, the.code.text), "the link opens")
        typed = await opened(bob, f" {the.code.text.upper()} ")
        assert (typed.status_code, typed.headers["location"]) == (303, the.mine)
        await eventually(lambda: shows(bob, the.mine, "consoles/r1"), "the role counts")
        page = (await bob.get(the.mine)).text
        assert "Your lab is ready" in page
        for act in ("reset", "hand-in"):
            assert f'formaction="{the.mine}/{act}"' in page
        assert f'href="{the.mine}/configurations"' in page
        assert "<nav" not in page
        assert ">My labs<" not in page
        for path in ("/link/", "/link/labs"):
            assert (await bob.get(path)).headers["location"] == the.mine
        missing = (await bob.get(f"/link/lablets/{the.room.namespace}/warm-9")).text
        other = f"/lablets/{the.room.namespace}/warm-2"
        for path in (other, f"{other}/consoles/r1", f"{other}/configurations", the.room.path, "/labs/bob", "/classes"):
            answer = await bob.get(f"/link{path}")
            assert (answer.status_code, answer.text) == (404, missing), path
        for path in (f"{other}/reset", f"{other}/hand-in", f"{the.mine.removeprefix('/link')}/stop"):
            assert (await bob.post(f"/link{path}")).status_code == 404
        for topic in (f"given:{the.room.namespace}/warm-2", f"class:{the.room.namespace}", "mine:bob", "lab:bob"):
            async with stream(f"{the.made.client.url}/link", topic, Cookie=cookies(bob)) as found:
                assert found.answer.status_code in {400, 404}, topic
        # And of the rest of the portal the cookie opens nothing.
        for path in ("/labs", the.mine.removeprefix("/link"), "/classes", the.room.path, "/labs/bob"):
            answer = await bob.get(path)
            assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login"), path


async def shows(browser: Browsing, path: str, text: str) -> bool:
    return text in (await browser.get(path)).text


def cookies(browser: Browsing) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def test_it_survives_another_device_a_restart_and_another_lablet(world: PortalWorld) -> None:
    async with linked_class(world) as the, Browsing(the.made.client.url) as bob:
        await eventually(lambda: lets_in(bob, the.code.text), "the link opens")
        second = await world.replica(
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY, VKPROVIDER_PORTAL_USERNAME_PREFIX=the.made.people.prefix
        )
        there = f"http://127.0.0.1:{second.page.port}"
        async with Browsing(there, bob.cookies) as later, Browsing(there) as phone:

            async def works(browser: Browsing, path: str) -> bool:
                return (await browser.get(path)).status_code == 200

            await eventually(lambda: works(later, the.mine), "the cookie opens it at another replica")
            assert (await opened(phone, the.code.text)).headers["location"] == the.mine
            # The lablet is gone, and bob gets another one.
            pods = f"/api/v1/namespaces/{the.room.namespace}/pods"
            await world.admin.delete(f"{pods}/warm-1", grace_s=0)
            await world.admin.patch(f"{pods}/warm-3", {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}})
            assert (await the.given("warm-3")).kept == ("bob",)
            new = the.mine.replace("warm-1", "warm-3")
            await eventually(lambda: leads(bob, new), "the cookie leads there")
            await eventually(lambda: works(bob, new), "the page is there")
            assert (await opened(phone, the.code.text)).headers["location"] == new


async def leads(browser: Browsing, path: str) -> bool:
    return bool((await browser.get("/link/")).headers.get("location") == path)


async def test_it_ends_when_it_is_taken_back_made_again_or_over(world: PortalWorld) -> None:
    async with linked_class(world) as the, Browsing(the.made.client.url) as bob:
        await eventually(lambda: lets_in(bob, the.code.text), "the link opens")

        async def is_out() -> bool:
            answer = await bob.get(the.mine)
            return answer.status_code == 303 and answer.headers["location"].startswith("/link/login?")

        async def refuses(code: LinkCode) -> bool:
            answer = await opened(bob, code.text)
            return answer.status_code == 403 and OPENS_NOTHING in answer.text

        again = (await the.given("warm-1", again=True)).codes["bob"]
        await eventually(is_out, "the cookie of the link before is over")
        await eventually(lambda: refuses(the.code), "and so is the link")
        await eventually(lambda: lets_in(bob, again.text), "the new one opens")
        # The lablet is another learner's: its annotation is enough, whatever else there still is.
        pods = f"/api/v1/namespaces/{the.room.namespace}/pods"
        note = {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "carol"}}}
        await world.admin.patch(f"{pods}/warm-1", note)
        await eventually(is_out, "the cookie is over")
        note = {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}}
        await world.admin.patch(f"{pods}/warm-1", note)
        await eventually(lambda: lets_in(bob, again.text), "it is his again")
        await allow(world, the.room.namespace, None)
        await links.take_back(
            the.kube, the.room.namespace, (await links.links_in(the.kube, the.room.namespace)).values()
        )
        await eventually(is_out, "the cookie is over")
        assert await refuses(again)


async def test_codes_that_are_wrong_are_few_and_all_alike(world: PortalWorld) -> None:
    async with linked_class(world) as the, Browsing(the.made.client.url) as eve:
        await eventually(lambda: lets_in(eve, the.code.text), "the link opens")
        wrong = links.new_code(the.room.namespace, "bob")
        elsewhere = links.new_code("kube-system", "bob")
        nobody = links.new_code(the.room.namespace, "nobody")
        answers = [await opened(eve, text) for text in (wrong.text, elsewhere.text, nobody.text, "nonsense")]
        assert {each.status_code for each in answers} == {403}
        assert len({sentence(each.text) for each in answers}) == 1
        guesses = [links.new_code(the.room.namespace, "bob").text for _ in range(80)]
        answers = await asyncio.gather(*(eve.post("/link", code=each) for each in guesses))
        assert {each.status_code for each in answers} == {403, 429}
        ann = await opened(eve, links.new_code(the.room.namespace, "ann").text)
        assert ann.status_code == 403, "another learner's link is not shut by that"
        await eve.get("/link")
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await eve.post("/link", headers, code=the.code.text)).status_code == 403
        eve.csrf = "x"
        assert (await eve.ask("POST", "/link", {"Origin": eve.url}, data={"csrf": "x", "code": "y"})).status_code == 403


def sentence(page: str) -> str:
    return page.partition('role="alert">')[2].partition("</p>")[0]


async def test_a_link_leads_to_the_next_lablet_while_that_of_before_is_collected(world: PortalWorld) -> None:
    """Given without `--links`: the learner keeps the link that was handed out."""
    async with linked_class(world) as the:
        namespace = the.room.namespace
        pod = f"/api/v1/namespaces/{namespace}/pods/warm-1"
        await world.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_DESIRED_STATE: "COLLECTING"}}})
        await the.room.lablet("warm-4", "bob", state="READY", devices="2/2")
        [following] = [each for each in await pods_in(the.kube, namespace).list() if each.metadata.name == "warm-4"]
        assert await access.open_access(the.kube, namespace, [following]) == ()
        leads = {each.learner: each.pod for each in await links.all_links_in(the.kube, namespace)}
        assert leads == {"bob": "warm-4", "ann": "warm-2"}


async def test_a_stolen_token_of_a_link_is_worth_one_lablet(world: PortalWorld) -> None:
    """At the API server what its Role says, and at the portal nothing: it logs nobody in."""
    async with linked_class(world) as the, Browsing(the.made.client.url) as thief:
        account = f"/api/v1/namespaces/{the.room.namespace}/serviceaccounts/{the.code.account}"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await world.admin.create(f"{account}/token", asked))["status"]["token"]
        header = {"Authorization": f"Bearer {token}"}
        answer = await thief.log_in(header)
        assert answer.status_code == 403
        assert "token is that of a link" in answer.text
        async with httpx.AsyncClient(base_url=the.made.client.url, timeout=60) as http:
            for method, path, body in (
                ("POST", "/login/code", None),
                ("GET", f"{SPAWNER}/labs", None),
                ("GET", f"{SPAWNER}/labs/bob", None),
                ("POST", f"{SPAWNER}/labs/bob/create", {"options": {}, "env": {}}),
                ("DELETE", f"{SPAWNER}/labs/bob", None),
                ("GET", f"{SPAWNER}/lab-form/bob", None),
            ):
                answer = await http.request(method, path, headers=header, json=body)
                assert answer.status_code == 403, (path, answer.text)
        user = f"system:serviceaccount:{the.room.namespace}:{the.code.account}"
        allowed = await rights(world, user, the.room.namespace)
        reading = {("get", each, "warm-1") for each in ("pods", "pods/log", "pods/exec", "pods/attach")}
        assert allowed == reading | {("create", each, "warm-1") for each in ("pods/exec", "pods/attach")}


VERBS: Final = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "attend",
    "teach",
)
KINDS: Final = (
    ("", "pods"),
    ("", "pods/log"),
    ("", "pods/exec"),
    ("", "pods/attach"),
    ("", "pods/portforward"),
    ("", "pods/status"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("coordination.k8s.io", "leases"),
    ("apps", "deployments"),
    ("vkprovider.io", "lablets/login"),
    ("vkprovider.io", "lablets/archive"),
    ("vkprovider.io", "lablets/download"),
    ("vkprovider.io", "lablets"),
    ("vkprovider.io", "labletdefinitions"),
    ("vkprovider.io", "cmlworkers"),
    ("vkprovider.io", "userlabs"),
)


async def rights(world: PortalWorld, user: str, namespace: str) -> set[tuple[str, str, str]]:
    """Return what an account may do in the class, of everything that the table of tokens names: verb, kind, name."""
    found = set()
    for verb in VERBS:
        for group, kind in KINDS:
            for name in ("warm-1", "warm-2", ""):
                resource, _, part = kind.partition("/")
                attributes = {
                    "verb": verb,
                    "group": group,
                    "resource": resource,
                    "subresource": part,
                    "namespace": namespace,
                    "name": name,
                }
                spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
                made = await world.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
                if made["status"]["allowed"]:
                    found.add((verb, kind, name))
    return found


async def test_nobody_reads_the_secret_afterwards(world: PortalWorld) -> None:
    """Not in a log, in any answer after the form, in the cookie, or in the cluster."""
    with structlog.testing.capture_logs() as logged:
        async with linked_class(world) as the, Browsing(the.made.client.url) as bob:
            await eventually(lambda: lets_in(bob, the.code.text), "the link opens")
            await bob.get(the.mine)
            assert (await opened(bob, f"{the.code.text}x")).status_code == 403
            secret, stored = the.code.secret, []
            for kind in ("serviceaccounts", "pods", "secrets", "configmaps", "events"):
                stored += await world.admin.items(f"/api/v1/namespaces/{the.room.namespace}/{kind}")
            stored += await world.admin.items(f"{RBAC}/namespaces/{the.room.namespace}/rolebindings")
    paths = [line["path"] for line in logged if line.get("event") == "request"]
    assert "/link" in paths
    for text in (str(logged), cookies(bob), *bob.texts):
        assert secret not in text
        assert the.code.digest not in text
    assert secret not in str(stored)


async def test_a_token_is_made_for_an_hour_and_another_one_before_it_ends(world: PortalWorld) -> None:
    """What is open for longer is asked about with the next one; each was made after a look at account and Pod."""
    async with linked_class(world) as the:
        now = 1000.0
        tokens = LinkTokens(the.kube, lambda: now)
        key = (the.code.namespace, the.code.account, the.code.digest)
        first = await tokens.of(*key)
        assert first is not None
        assert (first.learner, first.pod) == ("bob", "warm-1")
        life_s = (expiry(first.token) or 0) - the.made.running.replica.ctx.wall()
        assert 3500 < life_s <= 3605
        now += 1000
        assert await tokens.of(*key) == first._replace(seen_at=now)
        now += 1000
        second = await tokens.of(*key)
        assert second is not None
        assert second.token != first.token
        assert await tokens.of(*key[:2], "0" * 64) is None
        pods = f"/api/v1/namespaces/{the.room.namespace}/pods"
        await world.admin.delete(f"{pods}/warm-1", grace_s=0)
        await the.room.lablet("warm-1", "bob", state="READY")
        assert await tokens.of(*key) == second, "for seconds it is remembered"
        now += 11
        assert await tokens.of(*key) is None, "a later Pod of that name is another one"
        # An account that somebody has made by hand, of a name that only looks like a link's.
        await world.admin.create(
            f"/api/v1/namespaces/{the.room.namespace}/serviceaccounts", by_hand(the, "vkprovider-link-aaaaaaaaaaaaaaaa")
        )
        assert await tokens.of(the.room.namespace, "vkprovider-link-aaaaaaaaaaaaaaaa", the.code.digest) is None


async def test_a_class_that_has_no_links_any_more_has_none_that_are_open(world: PortalWorld) -> None:
    """The account stands, and its token is good for the rest of its hour: the label of the namespace says it."""
    async with linked_class(world) as the:
        now = 1000.0
        tokens = LinkTokens(the.made.running.replica.ctx.kube, lambda: now)
        key = (the.code.namespace, the.code.account, the.code.digest)

        async def opens() -> bool:
            return await tokens.of(*key, now=True) is not None

        await eventually(opens, "the link opens")
        now += 11
        assert await opens()
        await allow(world, the.room.namespace, None)

        async def ended() -> bool:
            nonlocal now
            now += 11
            return await tokens.of(*key) is None

        await eventually(ended, "the link opens nothing")
        assert now < 1000 + TOKEN_S / 2, "not only because its token is too old"
        assert the.code.account in str(await links.links_in(the.kube, the.room.namespace))


def by_hand(the: LinkedClass, name: str) -> Json:
    notes = {
        names.ANNOTATION_USERNAME: "ann",
        names.ANNOTATION_LINK_HASH: the.code.digest,
        names.ANNOTATION_LINK_POD: "warm-2/1",
    }
    labels = {names.LABEL_COMPONENT: names.COMPONENT_LINK}
    return {"metadata": {"name": name, "labels": labels, "annotations": notes}}


async def test_a_link_is_left(world: PortalWorld) -> None:
    """Log out forgets the cookie, and leads to the form; a page of another site is no way in."""
    async with linked_class(world) as the, Browsing(the.made.client.url) as bob:
        await eventually(lambda: lets_in(bob, the.code.text), "the link opens")
        led = await bob.get(the.mine, **{"Sec-Fetch-Site": "cross-site"})
        assert led.status_code in {200, 303}
        await bob.get(the.mine)
        answer = await bob.post("/link/logout")
        assert (answer.status_code, answer.headers["location"]) == (303, "/link")
        assert (await bob.get(the.mine)).status_code == 303


async def test_the_page_of_a_class_gives_links_once(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        pool(room, 2),
        Browsing(made.client.url) as who,
        Browsing(made.client.url) as bob,
    ):
        await room.known(2)
        await who.log_in(room.teacher)
        path = f"{room.path}/assign"
        assert 'name="links"' in (await who.get(path)).text

        async def give(words: str = "", whom: str = "bob") -> str:
            sent = {"csrf": who.csrf, "pool": "warm", "hours": "2", "names": whom, "links": "yes"}
            answer = await who.ask("POST", f"{path}{words}", {"Origin": who.url}, data=sent)
            assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
            return answer.text

        assert 'name="links" value="yes"' in await give("/check"), "asked once, and remembered"
        refused = await give()
        assert "no links were made: " in refused
        assert "An admin allows them once: kubectl lablet grant USER" in refused
        await allow(world, room.namespace, names.LINKS_ALLOWED)

        async def link() -> str:
            found = re.search(r'href="(https?://[^"]+/link)#([a-z0-9.-]+)"', await give())
            if found is None:
                return ""
            assert found[1] == f"{made.client.url}/link"
            return found[2]

        code = ""

        async def given_one() -> bool:
            nonlocal code
            code = code or await link()
            return bool(code)

        await eventually(given_one, "a link is made")
        await eventually(lambda: lets_in(bob, code), "it opens")
        again = await give()
        assert code not in again
        assert "bob: a link of before goes on" in again
        both = await give(whom="bob\nann")
        assert len(set(re.findall(r"/link#[a-z0-9.-]+", both))) == 1, "ann's, beside bob, who keeps his"
