"""Each command on a lablet by the portal, and whom it is refused to: the table of docs/security.md, on real devices.

Those who may not: another learner of the class, an instructor of another class, a user without a role, a link that
leads elsewhere or was taken back, and who is not logged in. Those who may are then answered by the provider.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.component.controllers.looking import eventually
from tests.component.controllers.running import SHORT
from tests.component.portal.people import INSTRUCTOR_ROLE, RBAC
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_captures import link_up
from tests.component.portal.site.test_portal_links import given, lets_in, shows
from tests.component.portal.site.test_portal_links_used import LinkedBench, opened
from tests.component.portal.site.test_portal_site_rights import BY_LINK, OWN, SOCKET
from tests.support import topologies
from tests.support.apiserver import ApiServer
from vkprovider.classroom import access, links
from vkprovider.classroom.pods import pods_in
from vkprovider.lablet import names
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.portal.web.lab.given import ACTS

GIVEN: Final = "/lablets/{namespace}/{pod}/"
"""What the paths begin with by which learners and links reach a lablet."""
TAUGHT: Final = "/classes/{namespace}/lablets/{pod}/"
"""The same for instructors."""


class Command(NamedTuple):
    """What is asked of a lablet.

    Attributes:
        route: Its path below that of the lablet, as the portal has it.
        path: The same, filled in.
        form: What is posted; None where a page, a file or a stream is asked for.
    """

    route: str
    path: str
    form: dict[str, str] | None = None

    @property
    def streams(self) -> bool:
        """Whether it opens a WebSocket."""
        return self.path.endswith("/stream")


COMMANDS: Final = (
    Command("consoles/{device}", "consoles/h0"),
    Command("consoles/{device}/stream", "consoles/h0/stream"),
    Command("screens/{device}", "screens/h0"),
    Command("screens/{device}/stream", "screens/h0/stream"),
    Command("configurations", "configurations"),
    Command("captures/start", "captures/start", {"link": "r1-h0", "packets": "1", "seconds": "5"}),
    Command("captures/stop", "captures/stop", {}),
    *(Command("devices/{act}", f"devices/{act}", {"device": "h0"}) for act in DeviceAct),
    *(Command("{action}", act, {}) for act in ACTS),
)


class Doors(NamedTuple):
    """A lablet that bob has, with devices, and by which paths it is reached.

    Attributes:
        linked: The lablet, and bob who came by a link.
        other: The name of carol's, in the same class.
        link: The path of bob's by a link.
        mine: That for who has logged in.
        taught: That of the class.
    """

    linked: LinkedBench
    other: str
    link: str
    mine: str
    taught: str

    @property
    def bench(self) -> Bench:
        return self.linked.bench


@pytest.fixture
async def doors(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Doors]:
    async with AsyncExitStack() as stack:
        bench = await stack.enter_async_context(console_bench(portal_server, tmp_path, SHORT, 0, None, "open"))
        admin, lablet = bench.portal.admin, bench.site.lablet
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names.ROLE_INSTRUCTOR}
        note = {names.ANNOTATION_USERNAME_PREFIX: bench.people.prefix}
        body = {"metadata": {"name": names.ROLE_INSTRUCTOR, "annotations": note}, "roleRef": ref, "subjects": []}
        await admin.create(f"{RBAC}/namespaces/{lablet.namespace}/rolebindings", body)
        link_up(bench)
        linked = await stack.enter_async_context(opened(bench))
        pod: Any = await admin.get(linked.pod)
        other = topologies.pod("other-0", pod["spec"]["runtimeClassName"], devices=["r1", "h0"])
        other["metadata"]["annotations"] = {names.ANNOTATION_USERNAME: "carol"}
        await admin.create(linked.pod.rpartition("/")[0], other)
        yield Doors(linked, "other-0", linked.mine, linked.mine.removeprefix("/link"), bench.lablet)


async def asked(browser: Browsing, lab: str, command: Command) -> tuple[int, str]:
    """Ask for a command as a page does; return the status, and where the answer leads."""
    where = f"{lab}/{command.path}"
    if command.form is not None:
        fields = {"csrf": browser.csrf, **command.form}
        answer = await browser.ask("POST", where, {"Origin": browser.url}, data=fields)
    else:
        answer = await browser.get(where, **(SOCKET if command.streams else OWN))
    return answer.status_code, answer.headers.get("location", "").partition("?")[0]


async def is_hidden(browser: Browsing, *labs: str) -> None:
    """Check that each command is answered as if there were no such lablet."""
    for command in COMMANDS:
        for lab in labs:
            assert await asked(browser, lab, command) == (404, ""), (lab, command)


async def is_nobody(browser: Browsing, *labs: str) -> None:
    """Check that each page leads to the login, and that each other command says that nobody is logged in."""
    for command in COMMANDS:
        for lab in labs:
            is_page = command.form is None and not command.streams
            login = "/link/login" if lab.startswith(BY_LINK) else "/login"
            expected = (303, login) if is_page else (401, "")
            assert await asked(browser, lab, command) == expected, (lab, command)


async def is_answered(bench: Bench, browser: Browsing, lab: str, commands: Iterable[Command]) -> None:
    """Have each command be done, or the provider say why not."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    for command in commands:
        if command.streams:
            sent = {"Origin": bench.url, "Cookie": cookie}
            await (await bench.http.ws_connect(f"{bench.url}{lab}/{command.path}", headers=sent)).close()
        else:
            status, led = await asked(browser, lab, command)
            assert status in {200, 303, 409}, (lab, command, status)
            assert (status, led) in {(200, ""), (303, lab), (409, "")}, (lab, command)


def check_table(doors: Doors) -> None:
    """Have a row for each path below that of a lablet: who adds one says here who is refused."""
    routes = [route.path for part in doors.bench.running.replica.process.parts for route in part.routes]
    wanted = {command.route for command in COMMANDS}
    assert {path.removeprefix(GIVEN) for path in routes if path.startswith(GIVEN)} == wanted
    assert {path.removeprefix(TAUGHT) for path in routes if path.startswith(TAUGHT)} >= wanted


async def test_who_may_not_is_refused_each_and_who_may_is_answered(doors: Doors) -> None:
    bench, lablet = doors.bench, doors.bench.site.lablet
    people, admin, kube = bench.people, bench.portal.admin, doors.linked.kube
    check_table(doors)
    other = f"/lablets/{lablet.namespace}/{doors.other}"
    elsewhere = f"{people.namespace}-other"
    await admin.create("/api/v1/namespaces", {"metadata": {"name": elsewhere}})
    async with AsyncExitStack() as stack:

        async def browser() -> Browsing:
            return await stack.enter_async_context(Browsing(bench.url))

        carol, tim, nora, nobody, hers, bob, ann = [await browser() for _ in range(7)]

        # Another learner of the class, by a login and by the own link, which open the own lablet.
        await carol.log_in(await people.person("carol"))
        code = (await given(kube, lablet.namespace, doors.other)).codes["carol"]
        await eventually(lambda: shows(carol, other, "Lab of"), "carol has a lablet")
        await eventually(lambda: lets_in(hers, code.text), "her link opens")
        await eventually(lambda: shows(hers, f"/link{other}", "Lab of"), "her link opens hers")
        await is_hidden(carol, doors.mine, doors.taught)
        await is_hidden(hers, doors.link)

        # An instructor of another class, and a user without a role.
        await tim.log_in(await people.person("tim"))
        await people.allow("tim", INSTRUCTOR_ROLE, elsewhere)
        await nora.log_in(await people.person("nora"))
        for stranger in (tim, nora):
            await stranger.get("/nowhere")
            await is_hidden(stranger, doors.mine, doors.taught)

        # Nobody, and people who came by a link, outside the pages of links.
        await is_nobody(nobody, doors.mine, doors.taught, doors.link)
        for by_link in (hers, doors.linked.bob):
            await is_nobody(by_link, doors.mine, doors.taught)

        # The cookie of a link that was taken back.
        await links.take_back(kube, lablet.namespace, (await links.links_in(kube, lablet.namespace)).values())
        found = [pod for pod in await pods_in(kube, lablet.namespace).list() if pod.user]
        assert await access.open_access(kube, lablet.namespace, found) == ()
        thief = doors.linked.bob

        async def is_out() -> bool:
            return (await thief.get(doors.link)).status_code == 303

        await eventually(is_out, "the link is over")
        await is_nobody(thief, doors.link)

        # Of all this nothing was done.
        pod: Any = await admin.get(doors.linked.pod)
        notes = pod["metadata"]["annotations"].keys()
        assert not notes & {names.ANNOTATION_RESET, names.ANNOTATION_DESIRED_STATE, names.ANNOTATION_DEVICE_REQUESTS}
        for label in ("r1", "h0"):
            assert (len(bench.site.node(label).boots), bench.site.node(label).wipes) == (1, 0)
        [lab] = bench.site.simulator.simulation.world.labs.values()
        assert [link.capture for link in lab.links.values()] == [None]

        # An instructor of the class, and then the learner, who ends it.
        await ann.log_in(await bench.teacher("ann"))
        await ann.get(doors.taught)
        await is_answered(bench, ann, doors.taught, [each for each in COMMANDS if each.route != "{action}"])
        await bob.log_in(await people.person("bob"))
        await eventually(lambda: shows(bob, doors.mine, "formaction"), "it is his")
        await is_answered(bench, bob, doors.mine, COMMANDS)
