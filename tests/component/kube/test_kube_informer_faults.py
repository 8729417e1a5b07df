"""Informers when the API server refuses, falls silent, or its answers arrive damaged."""

import asyncio

import msgspec
import pytest

from tests.component.kube.conftest import until
from tests.component.kube.pods import Pods, following
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import ALERT

FUTURE = "4611686018427387904"
"""A resourceVersion that the API server has not reached."""


async def test_410_lists_again_and_reports_what_vanished(pods: Pods, client: KubeClient) -> None:
    await pods.add("stays", "goes", "again")
    former = pods.uid("again")
    async with following(client, pods) as (informer, heard):
        heard.changes.clear()
        heard.uids.clear()

        async def meanwhile() -> None:
            await pods.remove("goes")
            await pods.remove("again")
            await pods.add("again")

        pods.api.fault("watch=", status=410)
        pods.api.fault("limit=", first=lambda _: meanwhile())  # the list shows all three changes at once
        pods.api.finish_watches()
        await until(lambda: informer.relists_total == 1)
        goes, again = heard.uids[0], heard.uids[1:]
        assert heard.changes == [("goes", None), ("again", None), (None, "again")]
        assert goes[1] is None
        assert again == [(former, None), (None, pods.uid("again"))]
        assert set(informer.items) == pods.keys("stays", "again")


@pytest.mark.parametrize(
    ("code", "message"),
    [(410, "too old resource version: 1 (2)"), (500, "etcd event received with PrevKv=nil")],
)
async def test_an_error_event_lists_again(pods: Pods, client: KubeClient, code: int, message: str) -> None:
    async with following(client, pods) as (informer, heard):
        pods.inject("ERROR", {"kind": "Status", "code": code, "message": message})
        await until(lambda: informer.relists_total == 1)
        await pods.add("a")
        await until(lambda: heard.changes == [(None, "a")])


async def test_could_not_list_is_not_empty(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        lists = len(pods.lists())
        pods.api.fault("limit=", status=500, message="etcdserver: request timed out", count=3)
        pods.refuse_watch(410)
        await until(lambda: len(pods.lists()) == lists + 4)
        await until(lambda: informer.relists_total == 1)
        assert heard.changes == [(None, "a")]


@pytest.mark.parametrize("body", [b"<html>", b'{"items":{}}', b"", b'{"metadata":{},"items":[', b"\xff\xfe"])
async def test_a_response_that_is_not_a_list_is_not_empty(pods: Pods, client: KubeClient, body: bytes) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        pods.api.fault("limit=", answer=body, count=2)
        pods.refuse_watch(410)
        await until(lambda: informer.relists_total == 1)
        assert heard.changes == [(None, "a")]


async def test_the_first_list_may_fail_for_long(pods: Pods, client: KubeClient) -> None:
    pods.api.fault("limit=", status=403, message='pods is forbidden: User "x" cannot list')
    pods.api.fault("limit=", status=404, message="the server could not find the requested resource")
    pods.api.fault("limit=", status=429, message="too many requests", headers={"Retry-After": "0"})
    async with following(client, pods):
        assert len(pods.lists()) == 4


async def test_a_version_from_another_life_of_etcd_is_given_up(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, _):
        pods.refuse_watch(504, times=3, message="Timeout: Too large resource version: 9, current: 1")
        await until(lambda: informer.relists_total == 1)
        await until(lambda: pods.api.watching == 1)


async def test_watches_that_are_over_at_once_and_empty_lead_to_a_list(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, _):
        pods.api.fault("watch=", answer=b"", count=3)
        pods.api.finish_watches()
        await until(lambda: informer.relists_total == 1)
        await until(lambda: pods.api.watching == 1)


async def test_a_silent_watch_is_opened_again(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods, inactivity_s=0.3) as (informer, heard):
        await until(lambda: informer.restarts_total == 1)
        assert informer.relists_total == 0
        await pods.add("a")
        await until(lambda: heard.changes == [(None, "a")])


async def test_a_watch_that_stays_silent_leads_to_a_list(pods: Pods, client: KubeClient) -> None:
    """As after a restore of etcd: the version is of the future, and the API server (1.37.2) waits for it in silence."""
    await pods.add("a", "b")

    def of_the_future(body: bytes) -> bytes:
        found = msgspec.json.decode(body)
        found["metadata"]["resourceVersion"] = FUTURE
        return msgspec.json.encode(found)

    pods.api.fault("limit=", alter=of_the_future)
    async with following(client, pods, inactivity_s=0.2) as (informer, heard):
        assert pods.watches()[-1].params["resourceVersion"] == FUTURE
        pods.api.fault("limit=", first=lambda _: pods.remove("b"))
        await until(lambda: informer.relists_total == 1)
        assert heard.changes[-1] == ("b", None)
        await until(lambda: pods.watches()[-1].params["resourceVersion"] != FUTURE)


async def test_an_alert_watch_lists_at_its_first_silence(pods: Pods, client: KubeClient) -> None:
    """Its way is dead, and that of other requests is not: what happened meanwhile is known after one silence."""
    await pods.add("a", "b")
    async with following(client, pods, inactivity_s=0.3, patience=ALERT) as (informer, heard):
        assert informer.silent_s == 0.0
        pods.api.silence_watches()
        await pods.remove("b")
        await until(lambda: informer.relists_total >= 1)
        assert informer.restarts_total <= 1
        assert heard.changes[-1] == ("b", None)


async def test_a_watch_that_has_missed_something_is_trusted_for_less_time(pods: Pods, client: KubeClient) -> None:
    """What follows from what a list found is found after a third of a silence, until a list finds nothing."""
    await pods.add("a", "b", "c")
    silence_s = 3.0
    async with following(client, pods, inactivity_s=silence_s, patience=ALERT) as (informer, heard):
        pods.api.silence_watches()
        await pods.remove("b")
        await until(lambda: informer.relists_total == 1)
        began_s = asyncio.get_running_loop().time()
        await pods.remove("c")
        await until(lambda: informer.relists_total == 2)
        assert heard.changes[-2:] == [("b", None), ("c", None)]
        assert asyncio.get_running_loop().time() - began_s < silence_s
        # The list after this one finds nothing: the watch is silent because nothing happens, and is trusted again.
        await until(lambda: informer.relists_total == 3)
        began_s = asyncio.get_running_loop().time()
        await until(lambda: informer.relists_total == 4)
        assert asyncio.get_running_loop().time() - began_s >= silence_s


async def test_bookmarks_move_the_place_to_resume(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        await pods.admin.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"moved": pods.namespace}}})
        later = (await pods.admin.request("GET", "/api/v1/namespaces/default"))["metadata"]["resourceVersion"]
        listed_s = informer.last_event_monotonic_s
        pods.inject("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": later}, "spec": {}})
        await until(lambda: informer.last_event_monotonic_s > listed_s)
        pods.api.finish_watches()
        await until(lambda: len(pods.watches()) == 2)
        assert pods.watches()[-1].params["resourceVersion"] == later
        assert heard.changes == [(None, "a")]
        assert informer.decode_errors_total == 0


async def test_a_line_of_ten_megabytes_passes(pods: Pods, client: KubeClient) -> None:
    """Larger than etcd accepts, so the proxy sends it."""
    async with following(client, pods) as (informer, heard):
        metadata = {"name": "big", "namespace": pods.namespace, "uid": "u", "annotations": {"x": "y" * 10_000_000}}
        pods.inject("ADDED", {"metadata": metadata, "spec": {"containers": []}})
        await pods.add("after")
        await until(lambda: len(heard.changes) == 2, within_s=30)
        assert len(informer.items[pods.key("big")].metadata.annotations["x"]) == 10_000_000
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
async def test_what_cannot_be_decoded_is_skipped(pods: Pods, client: KubeClient, line: bytes) -> None:
    async with following(client, pods) as (informer, heard):
        pods.api.inject(line)
        await pods.add("after")
        await until(lambda: heard.changes == [(None, "after")])
        assert informer.restarts_total == informer.relists_total == 0
        assert informer.decode_errors_total == (line != b"\n" and b'"NEW"' not in line)


async def test_an_object_of_a_list_that_cannot_be_decoded_hides_no_other(pods: Pods, client: KubeClient) -> None:
    await pods.add("a", "b")

    def spoil(body: bytes) -> bytes:
        found = msgspec.json.decode(body)
        found["items"][0]["spec"]["containers"] = "odd"
        return msgspec.json.encode(found)

    async with following(client, pods) as (informer, heard):
        pods.api.fault("limit=", alter=spoil)
        pods.api.fault("watch=", status=410)
        await pods.add("c")
        pods.api.finish_watches()
        await until(lambda: informer.relists_total == 1)
        assert set(informer.items) == pods.keys("a", "b", "c")  # it is there, so it is not deleted
        assert ("a", None) not in heard.changes
        assert informer.decode_errors_total == 1


async def test_a_deletion_needs_no_more_than_a_name(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        pods.inject("DELETED", {"metadata": pods.found["a"]["metadata"], "spec": {"containers": "odd"}})
        await until(lambda: heard.changes[-1] == ("a", None))
        assert not informer.items


async def test_a_stream_cut_within_a_line_repeats_that_event(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, heard):
        pods.api.inject(b'{"type":"ADDED","object":{"metadata":{"name":"half')
        await asyncio.sleep(0.05)  # no handler hears of half a line
        pods.api.end_watches()
        await pods.add("half")
        await until(lambda: heard.changes == [(None, "half")])
        assert informer.decode_errors_total == 0


async def test_a_server_that_is_gone_for_a_while(pods: Pods, client: KubeClient) -> None:
    await pods.add("a")
    async with following(client, pods) as (informer, heard):
        pods.api.cut()
        await until(lambda: client.errors.get("none", 0) >= 3)
        assert set(informer.items) == pods.keys("a")
        await pods.add("b")
        assert heard.changes == [(None, "a")]
        pods.api.heal()
        await until(lambda: heard.changes == [(None, "a"), (None, "b")])
