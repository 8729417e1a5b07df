import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec
import pytest
from aiohttp import web

from tests.component.kube.apiserver import PODS, ApiServer, pod, refuse
from tests.component.kube.conftest import until
from vkprovider.api.objects import Pod, PodSpec
from vkprovider.kube.client import KubeClient
from vkprovider.kube.informer import Head, Informer

Change = tuple[str | None, str | None]


class Told:
    """What handlers hear, as uids."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def __call__(self, old: Pod | None, new: Pod | None) -> None:
        self.changes.append((old.metadata.uid if old else None, new.metadata.uid if new else None))


def _watched(server: ApiServer, times: int) -> bool:
    return len(server.watches()) == times


def _long(changes: list[Change], length: int) -> bool:
    return len(changes) == length


@asynccontextmanager
async def following(
    client: KubeClient,
    *,
    keep: Callable[[Head], bool] | None = None,
    slim: Callable[[Pod], Pod] | None = None,
    page_size: int = 500,
    inactivity_s: float = 30.0,
    synced: bool = True,
) -> AsyncIterator[tuple[Informer[Pod], Told]]:
    informer = Informer(
        client,
        PODS,
        Pod,
        name="pods",
        keep=keep,
        slim=slim,
        page_size=page_size,
        inactivity_s=inactivity_s,
        backoff_s=(0.02, 0.1),
        outage_cap_s=0.1,
    )
    told = Told()
    informer.add_handler(told)
    task = asyncio.create_task(informer.run())
    try:
        if synced:
            await asyncio.wait_for(informer.synced.wait(), 5)
        yield informer, told
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_lists_then_follows(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    async with following(client) as (informer, told):
        assert set(informer.items) == {"default/a"}
        await server.put(pod("b"))
        await server.put(pod("a", nodeName="n1"))
        await server.remove("default/b")
        await until(lambda: len(told.changes) == 4)
        assert told.changes == [(None, "uid-a"), (None, "uid-b"), ("uid-a", "uid-a"), ("uid-b", None)]
        assert informer.items["default/a"].spec.node_name == "n1"
        assert informer.relists_total == 0


async def test_lists_in_pages(server: ApiServer, client: KubeClient) -> None:
    for n in range(7):
        await server.put(pod(f"p{n}"))
    async with following(client, page_size=3) as (informer, told):
        assert len(informer.items) == len(told.changes) == 7
    assert [s.query.get("continue") for s in server.lists()] == [None, "3", "6"]


async def test_a_page_whose_continuation_expired_starts_the_list_again(server: ApiServer, client: KubeClient) -> None:
    for n in range(4):
        await server.put(pod(f"p{n}"))
    server.next(refuse(410, "the provided continue parameter is too old"), when="continue=2")
    async with following(client, page_size=2) as (informer, told):
        assert len(informer.items) == len(told.changes) == 4
    assert [s.query.get("continue") for s in server.lists()] == [None, "2", None, "2"]


@pytest.mark.parametrize("how", ["end", "cut"])
async def test_a_watch_that_ends_is_resumed_without_a_list(server: ApiServer, client: KubeClient, how: str) -> None:
    async with following(client) as (informer, told):
        for n in range(5):
            await until(lambda: server.watching == 1)
            version = await server.put(pod(f"p{n}"))
            await until(partial(_long, told.changes, n + 1))
            await (server.end_watches() if how == "end" else server.cut_watches())
            await until(partial(_watched, server, n + 2))
            assert server.watches()[-1].query["resourceVersion"] == str(version)
        assert informer.relists_total == 0
        assert informer.restarts_total == 5


async def test_nothing_is_lost_while_the_watch_is_down(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        server.next(refuse(503, "starting"), when="watch", times=2)
        await server.cut_watches()
        for n in range(3):
            await server.put(pod(f"p{n}"))
        await until(lambda: len(told.changes) == 3)
        assert informer.relists_total == 0


async def test_410_lists_again_and_tells_what_vanished(server: ApiServer, client: KubeClient) -> None:
    for name in ("stays", "goes", "again"):
        await server.put(pod(name))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        told.changes.clear()
        server.next(refuse(410, "too old"), when="watch")
        server.objects.pop("default/goes")
        server.objects["default/again"] = {**pod("again", uid="other")}
        server.objects["default/again"]["metadata"]["resourceVersion"] = "999"
        await server.end_watches()
        await until(lambda: informer.relists_total == 1)
        assert told.changes == [("uid-goes", None), ("uid-again", None), (None, "other")]
        assert set(informer.items) == {"default/stays", "default/again"}


async def test_410_as_an_event_lists_again(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        await server.say("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version: 1 (2)"})
        await until(lambda: informer.relists_total == 1)
        await server.put(pod("a"))
        await until(lambda: told.changes == [(None, "uid-a")])


async def test_another_error_event_lists_again_after_a_wait(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, _):
        await until(lambda: server.watching == 1)
        await server.say("ERROR", {"kind": "Status", "code": 500, "message": "etcd event received with PrevKv=nil"})
        await until(lambda: informer.relists_total == 1)


async def test_could_not_list_is_not_empty(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        lists = len(server.lists())
        server.next(refuse(410, "too old"), when="watch")
        server.next(refuse(500, "etcdserver: request timed out"), when="limit", times=3)
        await server.end_watches()
        await until(lambda: len(server.lists()) == lists + 4)
        await until(lambda: informer.relists_total == 1)
        assert told.changes == [(None, "uid-a")]


@pytest.mark.parametrize("body", [b"<html>", b'{"items":{}}', b"", b'{"metadata":{},"items":[', b"\xff\xfe"])
async def test_a_list_that_is_none_is_not_empty(server: ApiServer, client: KubeClient, body: bytes) -> None:
    await server.put(pod("a"))

    async def odd(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        server.next(refuse(410, "too old"), when="watch")
        server.next(odd, when="limit", times=2)
        await server.end_watches()
        await until(lambda: informer.relists_total == 1)
        assert told.changes == [(None, "uid-a")]


async def test_the_first_list_may_fail_for_long(server: ApiServer, client: KubeClient) -> None:
    server.next(refuse(403, 'pods is forbidden: User "x" cannot list'), when="limit")
    server.next(refuse(404, "the server could not find the requested resource"), when="limit")
    server.next(refuse(429, "too many requests", Retry_After="0"), when="limit")
    async with following(client, synced=False) as (informer, _):
        await asyncio.wait_for(informer.synced.wait(), 5)
        assert len(server.lists()) == 4


async def test_a_version_from_another_life_of_etcd_is_given_up(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, _):
        await until(lambda: server.watching == 1)
        server.next(refuse(504, "Timeout: Too large resource version: 9, current: 1"), when="watch", times=3)
        await server.end_watches()
        await until(lambda: informer.relists_total == 1)
        await until(lambda: server.watching == 1)


async def test_watches_that_are_over_at_once_and_empty_lead_to_a_list(server: ApiServer, client: KubeClient) -> None:
    async def empty(_: web.Request) -> web.Response:
        return web.Response(body=b"")

    async with following(client) as (informer, _):
        await until(lambda: server.watching == 1)
        server.next(empty, when="watch", times=3)
        await server.end_watches()
        await until(lambda: informer.relists_total == 1)
        await until(lambda: server.watching == 1)


async def test_a_silent_watch_is_opened_again(server: ApiServer, client: KubeClient) -> None:
    async with following(client, inactivity_s=0.3) as (informer, told):
        await until(lambda: informer.restarts_total == 1)
        assert informer.relists_total == 0
        await server.put(pod("a"))
        await until(lambda: told.changes == [(None, "uid-a")])


async def test_a_watch_that_stays_silent_leads_to_a_list(server: ApiServer, client: KubeClient) -> None:
    """As after a restore of etcd: the version is of the future, and the API server (1.36.3) waits for it in silence."""
    await server.put(pod("a"))
    await server.put(pod("b"))
    async with following(client, inactivity_s=0.1) as (informer, told):
        await until(lambda: server.watching == 1)
        server.history.clear()
        server.objects.pop("default/b")
        server.version = 7
        await until(lambda: informer.relists_total == 1)
        assert told.changes[-1] == ("uid-b", None)
        await until(lambda: server.watches()[-1].query["resourceVersion"] == "7")


async def test_bookmarks_move_the_place_to_resume(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        listed_s = informer.last_event_monotonic_s
        bookmark = {"kind": "Pod", "metadata": {"resourceVersion": "500"}, "spec": {}}
        await server.say("BOOKMARK", bookmark, version=500)
        await until(lambda: informer.last_event_monotonic_s > listed_s)
        await server.end_watches()
        await until(lambda: len(server.watches()) == 2)
        assert server.watches()[-1].query["resourceVersion"] == "500"
        assert not told.changes
        assert informer.decode_errors_total == 0


async def test_a_line_of_ten_megabytes_passes(server: ApiServer, client: KubeClient) -> None:
    async with following(client) as (informer, told):
        big = pod("big")
        big["metadata"]["annotations"] = {"x": "y" * 10_000_000}
        await server.put(big)
        await server.put(pod("after"))
        await until(lambda: len(told.changes) == 2, within_s=20)
        assert len(informer.items["default/big"].metadata.annotations["x"]) == 10_000_000
        assert informer.restarts_total == 0


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b'{"type":"ADDED","object":{"metadata":{"name":"bad","resourceVersion":"9"},"spec":{"containers":3}}}\n',
        b'{"type":"ADDED","object":{"metadata":7}}\n',
        b'{"type":"MODIFIED","object":\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff\xfe"}}}\n',
        b'{"type":"NEW","object":{"metadata":{"name":"later"}}}\n',
        b"[]\n",
        b"\n",
    ],
)
async def test_what_cannot_be_decoded_is_skipped(server: ApiServer, client: KubeClient, line: bytes) -> None:
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        await server.say_raw(line)
        await server.put(pod("after"))
        await until(lambda: told.changes == [(None, "uid-after")])
        assert informer.restarts_total == informer.relists_total == 0
        assert informer.decode_errors_total == (line != b"\n" and b'"NEW"' not in line)


async def test_an_object_of_a_list_that_cannot_be_decoded_hides_no_other(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    await server.put(pod("b"))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        server.objects["default/a"]["spec"]["containers"] = "odd"
        server.next(refuse(410, "too old"), when="watch")
        await server.put(pod("c"))
        await server.end_watches()
        await until(lambda: informer.relists_total == 1)
        assert set(informer.items) == {"default/a", "default/b", "default/c"}  # it is there, so it is not deleted
        assert ("uid-a", None) not in told.changes
        assert informer.decode_errors_total == 1


async def test_a_deletion_needs_no_more_than_a_name(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        server.objects["default/a"]["spec"] = {"containers": "odd"}
        await server.remove("default/a")
        await until(lambda: told.changes[-1] == ("uid-a", None))
        assert not informer.items


async def test_foreign_objects_are_not_decoded(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("foreign") | {"spec": {"containers": "would not decode"}})
    await server.put(pod("ours", runtimeClassName="netlab"))
    async with following(client, keep=lambda head: bool(head.spec.runtime_class_name)) as (informer, told):
        assert set(informer.items) == {"default/ours"}
        await server.put(pod("foreign") | {"spec": {"containers": "would not decode"}})
        version = await server.put(pod("ours"))
        await until(lambda: told.changes == [(None, "uid-ours"), ("uid-ours", None)])
        assert not informer.items
        assert informer.decode_errors_total == 0
        await server.end_watches()
        await until(lambda: len(server.watches()) == 2)
        assert server.watches()[-1].query["resourceVersion"] == str(version)


async def test_only_what_is_wanted_of_an_object_is_kept(server: ApiServer, client: KubeClient) -> None:
    ours = {"default/a", "default/b"}

    def slim(item: Pod) -> Pod:
        return item if item.key in ours else msgspec.structs.replace(item, spec=PodSpec([]))

    await server.put(pod("a"))
    await server.put(pod("c"))
    async with following(client, slim=slim) as (informer, told):
        await server.put(pod("b"))
        await server.put(pod("d"))
        await until(lambda: len(informer.items) == 4)
        assert {key for key, item in informer.items.items() if item.spec.containers} == ours
        ours.remove("default/a")
        await server.put(pod("a", uid=informer.items["default/a"].metadata.uid))
        await until(lambda: len(told.changes) == 5)
        assert {key for key, item in informer.items.items() if item.spec.containers} == ours


async def test_another_object_of_the_same_name_is_a_deletion_and_an_addition(
    server: ApiServer, client: KubeClient
) -> None:
    await server.put(pod("a", uid="one"))
    async with following(client) as (_, told):
        await server.put(pod("a", uid="two"))
        await until(lambda: told.changes == [(None, "one"), ("one", None), (None, "two")])


async def test_a_late_deletion_of_the_former_object_is_ignored(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a", uid="two"))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        former = pod("a", uid="one")
        former["metadata"]["resourceVersion"] = str(server.version + 1)
        await server.say("DELETED", former)
        await server.put(pod("b"))
        await until(lambda: len(told.changes) == 2)
        assert set(informer.items) == {"default/a", "default/b"}


async def test_a_version_already_known_is_not_told(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    async with following(client) as (_, told):
        await until(lambda: server.watching == 1)
        await server.say("MODIFIED", server.objects["default/a"])
        await server.put(pod("b"))
        await until(lambda: told.changes == [(None, "uid-a"), (None, "uid-b")])


async def test_a_handler_that_raises_stops_nobody(server: ApiServer, client: KubeClient) -> None:
    def broken(_old: Pod | None, _new: Pod | None) -> None:
        raise RuntimeError("boom")

    await server.put(pod("a"))
    async with following(client) as (informer, told):
        informer.add_handler(broken)
        late = Told()
        informer.add_handler(late)
        assert late.changes == [(None, "uid-a")]
        await server.put(pod("b"))
        await until(lambda: len(late.changes) == len(told.changes) == 2)
        assert informer.handler_errors_total == 2


async def test_selectors_and_bookmarks_are_asked_for(server: ApiServer, client: KubeClient) -> None:
    informer = Informer(
        client, PODS, Pod, name="pods", label_selector="a=b,c in (d,e)", field_selector="spec.nodeName!="
    )
    task = asyncio.create_task(informer.run())
    await until(lambda: server.watching == 1)
    task.cancel()
    asked = server.watches()[0].query
    assert asked["labelSelector"] == server.lists()[0].query["labelSelector"] == "a=b,c in (d,e)"
    assert asked["fieldSelector"] == "spec.nodeName!="
    assert asked["allowWatchBookmarks"] == "true"
    assert 240 <= int(asked["timeoutSeconds"]) <= 300


async def test_a_stream_cut_within_a_line_repeats_that_event(server: ApiServer, client: KubeClient) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"half')
        await asyncio.sleep(0.01)
        assert request.transport is not None
        request.transport.close()
        return response

    server.next(half, when="watch")
    async with following(client) as (informer, told):
        await server.put(pod("half"))
        await until(lambda: told.changes == [(None, "uid-half")])
        assert informer.decode_errors_total == 0


async def test_a_server_that_is_gone_for_a_while(server: ApiServer, client: KubeClient) -> None:
    await server.put(pod("a"))
    async with following(client) as (informer, told):
        await until(lambda: server.watching == 1)
        await server.stop()
        await until(lambda: client.errors.get("none", 0) >= 3)
        assert set(informer.items) == {"default/a"}
        assert told.changes == [(None, "uid-a")]


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_the_copy_becomes_true(server: ApiServer, client: KubeClient, seed: int) -> None:
    """Changes, cuts, refusals and forgotten history in any order; handlers hear a story without contradictions."""
    dice = random.Random(seed)
    heard: dict[str, str] = {}

    def listen(old: Pod | None, new: Pod | None) -> None:
        known = old or new
        assert known is not None
        key = known.key
        assert heard.get(key) == (old.metadata.uid if old else None)
        if new is None:
            del heard[key]
        else:
            heard[key] = new.metadata.uid

    async with following(client, page_size=3, keep=lambda head: head.spec.node_name != "foreign") as (informer, _):
        informer.add_handler(listen)
        for step in range(120):
            key = f"p{dice.randrange(8)}"
            match dice.randrange(10):
                case 0 | 1 | 2 | 3:
                    kept = server.objects.get(f"default/{key}", pod(key, uid=f"uid-{step}"))
                    node = dice.choice(["ours", "ours", "foreign"])
                    await server.put(pod(key, uid=kept["metadata"]["uid"], nodeName=node))
                case 4 | 5:
                    if f"default/{key}" in server.objects:
                        await server.remove(f"default/{key}")
                case 6:
                    await server.cut_watches()
                case 7:
                    await server.end_watches()
                case 8:
                    server.next(refuse(dice.choice([410, 429, 500, 503, 504]), "no", Retry_After="0"))
                case _:
                    await server.say("ERROR", {"kind": "Status", "code": dice.choice([410, 500]), "message": "no"})
            await asyncio.sleep(dice.choice([0, 0, 0.001, 0.01]))
        ours = {key: o["metadata"]["uid"] for key, o in server.objects.items() if o["spec"]["nodeName"] == "ours"}
        await until(lambda: {key: p.metadata.uid for key, p in informer.items.items()} == ours, within_s=20)
        assert heard == ours
        assert informer.handler_errors_total == informer.decode_errors_total == 0
