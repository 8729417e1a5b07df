"""Informers on the real API server: lists, watches, and what their handlers hear."""

import asyncio
import random
from functools import partial

import msgspec
import pytest

from tests.component.kube.conftest import until
from tests.component.kube.pods import Heard, Pods, following
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import Pod, PodSpec


async def test_lists_then_follows(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        assert set(informer.items) == pods.keys("a")
        await pods.add("b")
        await pods.bind("a", "n1")
        await pods.remove("b")
        await until(lambda: heard.changes[-1] == ("b", None))
        assert heard.changes == [(None, "a"), (None, "b"), ("a", "a"), ("b", None)]
        assert informer.items[pods.key("a")].spec.node_name == "n1"
        assert informer.relists_total == 0


async def test_lists_in_pages(pods: Pods, client: KubeClient) -> None:
    await pods.add(*(f"p{number}" for number in range(7)))
    async with following(client, pods, page_size=3) as (informer, heard):
        assert len(informer.items) == len(heard.changes) == 7
    assert ["continue" in asked.params for asked in pods.lists()] == [False, True, True]


async def test_a_page_whose_continuation_expired_starts_the_list_again(pods: Pods, client: KubeClient) -> None:
    await pods.add(*(f"p{number}" for number in range(4)))
    pods.api.fault("continue=", status=410, message="the provided continue parameter is too old")
    async with following(client, pods, page_size=2) as (informer, heard):
        assert len(informer.items) == len(heard.changes) == 4
    assert ["continue" in asked.params for asked in pods.lists()] == [False, True, False, True]


@pytest.mark.parametrize("how", ["end", "cut"])
async def test_a_watch_that_ends_is_resumed_without_a_list(pods: Pods, client: KubeClient, how: str) -> None:
    async with following(client, pods) as (informer, heard):
        for number in range(5):
            await until(lambda: pods.api.watching == 1)
            await pods.add(f"p{number}")
            await until(partial(lambda wanted: len(heard.changes) == wanted, number + 1))
            if how == "end":
                pods.api.finish_watches()
            else:
                pods.api.end_watches()
            await until(partial(lambda wanted: len(pods.watches()) == wanted, number + 2))
            assert pods.watches()[-1].params["resourceVersion"] == pods.version(f"p{number}")
        assert informer.relists_total == 0
        assert informer.restarts_total == 5


async def test_nothing_is_lost_while_the_watch_is_down(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, heard):
        pods.api.fault("watch=", status=503, count=2)
        pods.api.end_watches()
        await pods.add("a", "b", "c")
        await until(lambda: len(heard.changes) == 3)
        assert informer.relists_total == 0


async def test_selectors_and_bookmarks_are_asked_for(pods: Pods, client: KubeClient) -> None:
    await pods.add("none")
    await pods.add("bound", nodeName="n1")
    await pods.change("bound", a="b", c="e")
    informer = Informer(
        client, pods.path, Pod, name="pods", label_selector="a=b,c in (d,e)", field_selector="spec.nodeName!="
    )
    task = asyncio.create_task(informer.run())
    await until(lambda: pods.api.watching == 1)
    assert set(informer.items) == pods.keys("bound")
    task.cancel()
    asked = pods.watches()[0].params
    assert asked["labelSelector"] == pods.lists()[0].params["labelSelector"] == "a=b,c in (d,e)"
    assert asked["fieldSelector"] == "spec.nodeName!="
    assert asked["allowWatchBookmarks"] == "true"
    assert 240 <= int(asked["timeoutSeconds"]) <= 300


async def test_foreign_objects_are_not_decoded(pods: Pods, client: KubeClient) -> None:
    """A foreign Pod would not decode: the proxy changes the type of its containers in what the API server says."""
    await pods.add("foreign", nodeName="foreign")
    await pods.add("ours", "leaves")
    pods.api.fault("limit=", alter=partial(_spoil, b"foreign"), count=None)
    async with following(client, pods, keep=lambda head: head.spec.node_name != "foreign") as (informer, heard):
        assert set(informer.items) == pods.keys("ours", "leaves")
        pods.inject("ADDED", {"metadata": {"name": "odd"}, "spec": {"nodeName": "foreign", "containers": "odd"}})
        await pods.bind("leaves", "foreign")
        await until(lambda: ("leaves", None) in heard.changes)
        assert set(informer.items) == pods.keys("ours")
        assert informer.decode_errors_total == 0
        pods.api.finish_watches()
        await until(lambda: len(pods.watches()) == 2)
        assert pods.watches()[-1].params["resourceVersion"] == pods.version("leaves")


def _spoil(name: bytes, body: bytes) -> bytes:
    """Make the containers of one Pod of a list something that is not a list."""
    found = msgspec.json.decode(body)
    for item in found.get("items", []):
        if item["metadata"]["name"] == name.decode():
            item["spec"]["containers"] = "odd"
    return msgspec.json.encode(found)


async def test_only_what_is_wanted_of_an_object_is_kept(pods: Pods, client: KubeClient) -> None:
    ours = pods.keys("a", "b")

    def slim(item: Pod) -> Pod:
        return item if item.key in ours else msgspec.structs.replace(item, spec=PodSpec([]))

    await pods.add("a", "c")
    async with following(client, pods, slim=slim) as (informer, heard):
        await pods.add("b", "d")
        await until(lambda: len(informer.items) == 4)
        assert {key for key, item in informer.items.items() if item.spec.containers} == ours
        ours.remove(pods.key("a"))
        await pods.change("a")
        await until(lambda: len(heard.changes) == 5)
        assert {key for key, item in informer.items.items() if item.spec.containers} == ours


async def test_another_object_of_the_same_name_is_a_deletion_and_an_addition(pods: Pods, client: KubeClient) -> None:
    """Also when the informer hears of neither: the Pod is replaced while no watch is open."""
    await pods.add("a")
    one = pods.uid("a")
    async with following(client, pods) as (_, heard):
        await pods.remove("a")
        await pods.add("a")
        two = pods.uid("a")
        await until(lambda: heard.uids == [(None, one), (one, None), (None, two)])
        pods.refuse_watch(410)
        await pods.remove("a")
        await pods.add("a")
        three = pods.uid("a")
        await until(lambda: heard.uids[3:] == [(two, None), (None, three)])


async def test_a_late_deletion_of_the_former_object_is_ignored(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    former = dict(pods.found["a"])
    await pods.remove("a")
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        pods.inject("DELETED", former)
        await pods.add("b")
        await until(lambda: len(heard.changes) == 2)
        assert set(informer.items) == pods.keys("a", "b")


async def test_a_version_already_known_is_not_passed_on(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (_, heard):
        pods.inject("MODIFIED", pods.found["a"])
        await pods.add("b")
        await until(lambda: heard.changes == [(None, "a"), (None, "b")])


async def test_a_handler_that_raises_stops_no_other(pods: Pods, client: KubeClient) -> None:
    def broken(_old: Pod | None, _new: Pod | None) -> None:
        raise RuntimeError("boom")

    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        informer.add_handler(broken)
        late = Heard()
        informer.add_handler(late)
        assert late.changes == [(None, "a")]
        await pods.add("b")
        await until(lambda: len(late.changes) == len(heard.changes) == 2)
        assert informer.handler_errors_total == 2


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_the_copy_becomes_true(pods: Pods, client: KubeClient, seed: int) -> None:
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

    async with following(client, pods, page_size=3, keep=lambda head: head.spec.node_name != "foreign") as (
        informer,
        _,
    ):
        informer.add_handler(listen)
        for _step in range(120):
            name = f"p{dice.randrange(8)}"
            match dice.randrange(10):
                case 0 | 1 | 2 | 3 if name not in pods.found:
                    await pods.add(name)
                case 0 | 1:
                    await pods.change(name)
                case 2 | 3 if "nodeName" not in pods.found[name]["spec"]:
                    await pods.bind(name, dice.choice(["ours", "foreign"]))
                case 4 | 5 if name in pods.found:
                    await pods.remove(name)
                case 6:
                    pods.api.end_watches()
                case 7:
                    pods.api.finish_watches()
                case 8:
                    status = dice.choice([410, 429, 500, 503, 504])
                    pods.api.fault("", status=status, headers={"Retry-After": "0"})
                case 9:
                    pods.inject("ERROR", {"kind": "Status", "code": dice.choice([410, 500]), "message": "no"})
                case _:
                    pass
            await asyncio.sleep(dice.choice([0, 0, 0.001, 0.01]))
        ours = {
            pods.key(name): pods.uid(name)
            for name, found in pods.found.items()
            if found["spec"].get("nodeName") != "foreign"
        }
        await until(lambda: {key: pod.metadata.uid for key, pod in informer.items.items()} == ours, within_s=20)
        assert heard == ours
        assert informer.handler_errors_total == informer.decode_errors_total == 0
