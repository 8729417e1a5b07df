"""Consoles through the portal: the stream of a page, with real devices, a provider and an API server behind it."""

import asyncio
import io
import json
import re
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.component.controllers.looking import eventually, when
from tests.component.portal.site.consolebench import USER_ROLE, Bench, Screen, console_bench
from tests.support.apiserver import ApiServer
from vkprovider.labs.controllers.console.devices import LabletDevices
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand, Target
from vkprovider.portal.web.consoles import routes
from vkprovider.portal.web.consoles.frames import UNSHOWN_BYTES_MAX
from vkpsim.http.faults import Fault


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def told(screen: Screen) -> list[dict[str, Any]]:
    """Return the messages that a page received, without those that only say that the connection is alive."""
    return [message for message in screen.messages if message["type"] != "alive"]


async def test_one_types_others_watch_and_somebody_takes_over(bench: Bench) -> None:
    ann, ben = [await bench.cookie(await bench.teacher(name)) for name in ("ann", "ben")]
    async with await bench.screen(ann, "r1") as first:
        await first.shows("Escape character is '^]'.")
        await first.type("\r")
        await first.shows("r1>")
        await first.type("show version\r")
        await first.shows("Cisco IOS Software")
        opened, you = told(first)
        assert (opened["type"], opened["watches"], you["type"], you["you"]) == ("open", False, "typist", True)
        refused = await bench.screen(ben, "r1")
        code, why, text = await refused.ends()
        assert (code, why) == (4409, "in-use")
        assert text.startswith("ann types at the console of r1 since "), text
        async with await bench.screen(ben, "r1", "watch") as watcher:
            await watcher.shows("You watch.")
            await watcher.type("this is never typed\r")
            await first.type("show version\r")
            await watcher.shows("Cisco IOS Software")
            assert "never typed" not in watcher.out
            opened, typist = told(watcher)
            assert (opened["type"], opened["watches"]) == ("open", True)
            assert typist == {**you, "you": False, "who": "ann"}, "also who watches is told who types, and since when"
        async with await bench.screen(ben, "r1", "take-over") as second:
            await second.shows("you have taken over")
            await first.shows("another session has taken over")
            await second.type("\r")
            await first.shows("r1>")
            await second.type("\x1d")
            assert (await second.ends())[:2] == (1000, "ended")
        await first.shows("you type again")
        await first.type("show version\r")
        await first.shows("Cisco IOS Software")


async def test_who_watches_at_one_replica_is_told_that_who_typed_at_another_one_has_left(bench: Bench) -> None:
    ann, eve = [await bench.cookie(await bench.teacher(name)) for name in ("ann", "eve")]
    other = await bench.another_replica()
    async with await bench.screen(eve, "r1", "watch") as near, await other.screen(eve, "r1", "watch") as far:
        async with await bench.screen(ann, "r1") as typing:
            await typing.shows("Escape character is '^]'.")
            await near.shows("You watch.")
            await far.shows("You watch.")
            await near.hears("ann types", lambda told: told["who"] == "ann")
            assert far.typist["who"] == "", "the sessions of the first replica have no name at this one"
        for watcher in (near, far):
            await watcher.shows("[the session that typed has left: nobody types now]")
            await watcher.hears("nobody types", lambda told: (told["who"], bool(told["left"])) == ("", True))
        async with await other.screen(ann, "r1") as typing:
            await typing.shows("Escape character is '^]'.")
            await far.hears("ann types", lambda told: (told["who"], told["left"]) == ("ann", ""))


async def test_a_noisy_device_waits_for_the_page_and_disturbs_no_other(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    async with await bench.screen(ann, "h0") as noisy, await bench.screen(ann, "h1") as quiet:
        await noisy.shows("h0:~# ")
        await quiet.shows("h1:~# ")
        noisy.acks = False
        before = noisy.got_bytes
        await noisy.type("yes\r")

        async def full() -> bool:
            return noisy.got_bytes > UNSHOWN_BYTES_MAX - 16 * 1024

        await eventually(full, "the page has what it may have")
        printed = bench.site.simulator.consoles._line(bench.site.node("h0"), 0).printed
        for number in range(20):
            await quiet.type(f"echo {number}.\r")
            await quiet.shows(f"\r\n{number}.\r\n")
        assert noisy.got_bytes <= before + UNSHOWN_BYTES_MAX, "nothing is sent that was not shown"
        assert bench.site.simulator.consoles._line(bench.site.node("h0"), 0).printed > printed, "it goes on"
        noisy.acks = True
        await noisy.ack()
        await noisy.type("\x03")
        await noisy.shows("^C")
        await noisy.shows("h0:~# ")


async def test_who_may_not_is_refused_before_anything_is_opened(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    stranger = await bench.cookie(await bench.people.person("eve", USER_ROLE))
    before = bench.site.sockets()
    for cookie, headers, status in (
        (ann, {"Origin": "https://evil.example"}, 403),
        (ann, {"Sec-Fetch-Site": "cross-site"}, 403),
        ("", {}, 401),
        (f"{ann[:-5]}AAAAA", {}, 401),
        (stranger, {}, 404),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await bench.dial(cookie, "r1", **headers)
        assert refused.value.status == status, headers
    assert bench.site.sockets() == before


async def test_a_teacher_without_the_right_to_exec_reads_why(bench: Bench) -> None:
    """The portal may see the lab; the API server refuses the console all the same, for it asks with the own token."""
    path, namespace = "/apis/rbac.authorization.k8s.io/v1", bench.site.lablet.namespace
    header = await bench.people.person("tim")
    rules = [{"apiGroups": ["vkprovider.io"], "resources": ["userlabs"], "verbs": ["teach"]}]
    await bench.portal.admin.create(f"{path}/namespaces/{namespace}/roles", {"metadata": {"name": "t"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "tim", "namespace": bench.people.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "t"}
    body = {"metadata": {"name": "t"}, "roleRef": role, "subjects": [subject]}
    await bench.portal.admin.create(f"{path}/namespaces/{namespace}/rolebindings", body)
    cookie = await bench.cookie(header)

    async def refused() -> bool:
        try:
            screen = await bench.screen(cookie, "r1")
        except aiohttp.WSServerHandshakeError:
            return False  # the role takes a moment
        code, why, text = await screen.ends()
        assert (code, why) == (4403, "withdrawn")
        assert "the cluster gives you no right to it in this lab" in text
        assert "pods/exec" in text
        return True

    await eventually(refused, "it is refused")


async def test_a_link_takes_no_console_over(bench: Bench) -> None:
    """Whoever follows a link, also one of another site, has not asked for it as who presses the button has."""
    ann = await bench.cookie(await bench.teacher("ann"))
    page = f"{bench.url}{bench.lablet}/consoles/r1"
    for query, status, modes in (
        ("", 200, ["watch"]),  # nobody looks over a shoulder and holds the keyboard by it
        ("?panel", 200, ["watch"]),
        ("?as=type", 200, ["type"]),
        ("?as=watch", 200, ["watch"]),
        ("?as=take-over", 200, ["type"]),
        ("?as=take-over&panel", 200, ["type"]),
        ("?as=take%2Dover", 200, ["type"]),
        ("?as=take-over&as=watch", 200, ["type"]),
        ("?as=TAKE-OVER", 400, []),
        ("?as=", 400, []),
    ):
        headers = {"Cookie": ann, "Sec-Fetch-Site": "cross-site"}
        async with bench.http.get(URL(page + query, encoded=True), headers=headers) as answer:
            found = re.findall(r'data-mode="([^"]*)"', await answer.text())
            assert (answer.status, found) == (status, modes), query


async def test_other_refusals_are_sentences(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    for device, said in (
        ("r9", "device 'r9' of pod"),
        ("sw", "CML has no console for sw"),
    ):
        code, why, text = await (await bench.screen(ann, device)).ends()
        assert (code, why) == (4400, "refused"), text
        assert text.startswith(said), text


async def test_a_right_or_a_token_that_is_withdrawn_ends_the_console_within_a_minute(bench: Bench) -> None:
    ann, ben, cat = [await bench.cookie(await bench.teacher(name)) for name in ("ann", "ben", "cat")]
    async with (
        await bench.screen(ann, "r1") as first,
        await bench.screen(ben, "h0") as second,
        await bench.screen(cat, "h1") as third,
    ):
        for screen in (first, second, third):
            await screen.shows("Escape character")
        namespace = bench.site.lablet.namespace
        bound = f"{bench.people.namespace}-ann-vkprovider-instructor"
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{bound}"
        await bench.portal.admin.delete(path)
        await bench.portal.admin.delete(f"/api/v1/namespaces/{bench.people.namespace}/serviceaccounts/ben")
        ends = await asyncio.gather(first.ends(62), second.ends(62))
        assert [end[:2] for end in ends] == [(4403, "withdrawn")] * 2
        await third.type("echo still here\r")
        await third.shows("\r\nstill here\r\n")


async def test_a_replica_that_ends_says_that_the_lab_goes_on(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    async with await bench.screen(ann, "r1") as screen:
        await screen.shows("Escape character")
        stopping = asyncio.create_task(bench.running.stop())
        assert await screen.ends() == (1012, "lost", "This portal restarts; your lab goes on.")
        await stopping


async def test_a_provider_that_hands_over_makes_the_page_try_again(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    async with await bench.screen(ann, "r1") as screen:
        await screen.shows("Escape character")
        await bench.site.running.stop()
        code, why, text = await screen.ends()
        assert (code, why) == (1012, "lost")
        assert "run the command again" not in text


async def test_the_configurations_of_all_devices_in_one_archive(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    async with bench.http.get(f"{bench.url}{bench.lablet}/configurations", headers={"Cookie": ann}) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/zip")
        assert f"{bench.site.lablet.name}-configurations.zip" in answer.headers["Content-Disposition"]
        packed = zipfile.ZipFile(io.BytesIO(await answer.read()))
    assert packed.testzip() is None
    assert {"r1.cfg", "h0.cfg", "not-read.txt"} <= set(packed.namelist())
    assert b"r1" in packed.read("r1.cfg")
    assert b"sw: A device of the kind unmanaged_switch, such as sw, has no configuration.\n" in packed.read(
        "not-read.txt"
    )
    stranger = await bench.cookie(await bench.people.person("eve", USER_ROLE))
    async with bench.http.get(f"{bench.url}{bench.lablet}/configurations", headers={"Cookie": stranger}) as answer:
        assert answer.status == 404


@pytest.fixture
def one_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "DOWNLOADS_MAX", 1)


@pytest.mark.usefixtures("one_download")
async def test_one_visitor_downloads_once_at_a_time_and_not_after_leaving(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_AT_ONCE", 1)
    executed: list[str] = []
    execute = LabletDevices.execute

    async def recorded(self: LabletDevices, target: Target, words: Sequence[str], command: RemoteCommand) -> Exit:
        executed.append(" ".join(words))
        return await execute(self, target, words, command)

    monkeypatch.setattr(LabletDevices, "execute", recorded)
    simulator = bench.site.simulator
    simulator.faults.add(Fault(kind="silence", route="/extract_configuration$"), simulator.now())
    headers = {"Cookie": await bench.cookie(await bench.teacher("ann")), "Accept": "application/json"}

    async def download(headers: dict[str, str]) -> tuple[int, str]:
        async with bench.http.get(f"{bench.url}{bench.lablet}/configurations", headers=headers) as answer:
            body = await answer.read()
            return answer.status, "" if answer.status == 200 else json.loads(body)["message"]

    first = asyncio.create_task(download(headers))
    await when(lambda: executed == ["config r1"], "the first one reads")
    async with asyncio.timeout(20):
        others = await asyncio.gather(*(download(headers) for _ in range(9)))
    assert others == [(429, "another download of yours goes on: wait for its end, and try again")] * 9
    ben = {**headers, "Cookie": await bench.cookie(await bench.teacher("ben"))}
    assert await download(ben) == (429, "too many others download configurations now: try again in some seconds")
    assert executed == ["config r1"], "who is refused reads nothing"

    first.cancel()  # closes its connection
    await asyncio.wait([first])
    simulator.faults.clear()

    async def again() -> bool:
        return (await download(headers))[0] == 200

    await eventually(again, "the place is free")
    assert executed == ["config r1"] + [f"config {device}" for device in ("r1", "h0", "fw", "sw")]


async def test_an_archive_has_no_more_than_fits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Cookie": await bench.cookie(await bench.teacher("ann"))}

    async def download() -> zipfile.ZipFile:
        async with bench.http.get(f"{bench.url}{bench.lablet}/configurations", headers=headers) as answer:
            return zipfile.ZipFile(io.BytesIO(await answer.read()))

    monkeypatch.setattr(routes, "_AT_ONCE", 1)  # in their order
    whole = await download()
    first, second = (len(whole.read(name)) for name in ("r1.cfg", "h0.cfg"))
    for room, left_out in (
        (first + second, set()),
        (first + second - 1, {"h0.cfg"}),
        (min(first, second) - 1, {"r1.cfg", "h0.cfg"}),
    ):
        monkeypatch.setattr(routes, "_ARCHIVE_BYTES_MAX", room)
        packed = await download()
        assert set(whole.namelist()) - set(packed.namelist()) == left_out
        for name in left_out:
            assert f"{name.removesuffix('.cfg')}: It does not fit: ".encode() in packed.read("not-read.txt")


async def test_who_has_no_token_here_sees_the_command_and_opens_nothing(
    portal_server: ApiServer, tmp_path: Path
) -> None:
    secret = "a-secret-of-the-ingress-0123456789abcdef"
    given = {"VKPROVIDER_PORTAL_CALLERS": "headers", "VKPROVIDER_PORTAL_INGRESS_SECRET": secret}
    async with console_bench(portal_server, tmp_path, **given) as bench:
        header = await bench.teacher("ann")
        named = {"X-Portal-Ingress-Secret": secret, "X-Auth-Request-User": "ann"}
        pod = bench.site.lablet
        async with bench.http.get(f"{bench.url}{bench.lablet}/consoles/r1", headers=named) as answer:
            page = await answer.text()
        assert answer.status == 200
        assert f"kubectl exec -it -n {pod.namespace} {pod.name} -c lab -- console r1" in page
        assert "xterm" not in page
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await bench.dial("", "r1", **named)
        assert refused.value.status == 401
        async with bench.http.get(f"{bench.url}{bench.lablet}/configurations", headers=named) as answer:
            assert answer.status == 401
        given_token = {**named, "X-Auth-Request-Token": header["Authorization"].removeprefix("Bearer ")}
        async with Screen(await bench.dial("", "r1", **given_token)) as screen:
            await screen.shows("Escape character")
        foreign = {**named, "X-Auth-Request-Token": "not-a-token-of-the-cluster"}
        code, why, _ = await Screen(await bench.dial("", "r1", **foreign)).ends()
        assert (code, why) == (4401, "signed-out")
