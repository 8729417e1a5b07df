"""`/containerLogs` of a lablet as a whole, and what its devices use, through a real port."""

import asyncio
import re
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready, when
from tests.component.kubelet.credentials import Credentials, client

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \S.*")


async def test_the_story_of_a_lablet(world: World, credentials: Credentials) -> None:
    await world.replica()
    worker = await world.worker()
    pod = await world.pod(await world.define(), worker)
    await pod.ready()
    await world.until_event("Ready", pod.name)
    node = await world.node(worker, is_ready)
    async with client(node, credentials.apiserver()) as call:
        path = f"/containerLogs/{world.namespace}/{pod.name}/lab"
        whole = await call(path)
        assert (whole.status, whole.type) == (200, "text/plain")
        lines = whole.text.splitlines()
        assert lines[0].endswith("Pod created")
        assert all(LINE.fullmatch(line) for line in lines)
        assert any("Normal Created: " in line for line in lines)
        assert any("condition Ready is True" in line for line in lines)
        assert (await call(f"{path}?tailLines=2")).text.splitlines() == lines[-2:]
        assert (await call(f"{path}?tailLines=0")).text == ""
        assert (await call(f"{path}?limitBytes=10")).text == whole.text[:10]
        stamped = (await call(f"{path}?timestamps=true&tailLines=1")).text
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z " + re.escape(lines[-1]) + "\n", stamped)
        assert (await call(f"{path}?sinceTime=2999-01-01T00:00:00Z")).text == ""
        previous = await call(f"{path}?previous=true")
        assert (previous.status, "never started again" in previous.text) == (400, True)
        assert (await call(f"{path}?tailLines=-1")).status == 400
        assert (await call(f"/containerLogs/{world.namespace}/{pod.name}/nothing")).status == 404
        assert (await call(f"/containerLogs/{world.namespace}/nobody/lab")).status == 404


async def test_a_story_is_followed_until_its_pod_ends(world: World, credentials: Credentials) -> None:
    running = await world.replica()
    worker = await world.worker()
    node = await world.node(worker, is_ready)
    pod = await world.pod(await world.define(), worker)
    await pod.until(bool)
    async with client(node, credentials.apiserver()) as call:
        url = f"{call.base}/containerLogs/{world.namespace}/{pod.name}/lab?follow=true"

        async def follow() -> str:
            async with call.session.get(url) as answer:
                assert answer.status == 200
                return await answer.text()

        following = [asyncio.create_task(follow()) for _ in range(3)]
        await pod.ready()
        assert not any(task.done() for task in following)
        await pod.delete()
        texts = await asyncio.wait_for(asyncio.gather(*following), 60)
    for text in texts:
        for said in ("Pod created", "condition Ready is True", "Pod to be deleted"):
            assert said in text
        assert len(set(text.splitlines())) == len(text.splitlines())
    assert running.replica.kubelet.sessions.open.total() == 0


async def test_who_leaves_is_forgotten(world: World, credentials: Credentials) -> None:
    running = await world.replica()
    worker = await world.worker()
    pod = await world.pod(await world.define(), worker)
    await pod.ready()
    node = await world.node(worker, is_ready)
    sessions = running.replica.kubelet.sessions
    async with client(node, credentials.apiserver()) as call:
        url = f"{call.base}/containerLogs/{world.namespace}/{pod.name}/lab?follow=true"
        held = [await call.session.get(url) for _ in range(3)]
        for answer in held:
            assert "Pod created" in (await answer.content.readline()).decode()
        assert sessions.open["logs"] == 3
        for answer in held:
            answer.close()
    await when(lambda: sessions.open["logs"] == 0, "sessions end")
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in names if name.startswith(("story of", "log of"))}


async def test_a_node_that_leaves_ends_what_is_followed_with_a_message(world: World, credentials: Credentials) -> None:
    one = await world.replica()
    worker = await world.worker()
    pod = await world.pod(await world.define(), worker)
    await pod.ready()
    node = await world.node(worker, is_ready)
    async with client(node, credentials.apiserver()) as call:
        url = f"{call.base}/containerLogs/{world.namespace}/{pod.name}/lab?follow=true"
        async with call.session.get(url) as answer:
            assert "Pod created" in (await answer.content.readline()).decode()
            await world.replica()
            await one.stop()
            text = await asyncio.wait_for(answer.text(), 60)
    assert text.endswith("this worker moved to another replica: run the command again\n")
    moved = await world.node(worker, lambda found: is_ready(found) and _port(found) not in {0, _port(node)})
    async with client(moved, credentials.apiserver()) as call:
        assert "Pod created" in (await call(f"/containerLogs/{world.namespace}/{pod.name}/lab")).text


def _port(node: dict[str, Any]) -> int:
    return int(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"])


async def test_there_are_not_more_sessions_than_there_may_be(world: World, credentials: Credentials) -> None:
    await world.replica(VKPROVIDER_KUBELET_SESSIONS_MAX="2")
    worker = await world.worker()
    pod = await world.pod(await world.define(), worker)
    await pod.ready()
    node = await world.node(worker, is_ready)
    async with client(node, credentials.apiserver()) as call:
        path = f"/containerLogs/{world.namespace}/{pod.name}/lab"
        held = [await call.session.get(f"{call.base}{path}?follow=true") for _ in range(2)]
        refused = await call(path)
        assert (refused.status, "VKPROVIDER_KUBELET_SESSIONS_MAX" in refused.text) == (500, True)
        assert (await call("/healthz")).status == 200
        for answer in held:
            answer.close()


@pytest.mark.parametrize("path", ["/metrics/resource", "/metrics", "/metrics/cadvisor", "/stats/summary"])
async def test_what_a_node_uses_can_be_read(world: World, credentials: Credentials, path: str) -> None:
    await world.replica()
    worker = await world.worker()
    pod = await world.pod(await world.define(), worker)
    await pod.ready()
    node = await world.node(worker, is_ready)
    async with client(node, credentials.apiserver()) as call:
        answer = await call(path)
        assert answer.status == 200
        if path == "/metrics/resource":
            key = f'{{container="lab",namespace="{world.namespace}",pod="{pod.name}"}}'
            for name in ("cpu_usage_seconds_total", "memory_working_set_bytes", "start_time_seconds"):
                assert f"container_{name}{key} " in answer.text
            assert re.search(r"^node_cpu_usage_seconds_total \S+$", answer.text, re.MULTILINE)
            assert re.search(r"^node_memory_working_set_bytes [1-9]", answer.text, re.MULTILINE)
        if path == "/metrics":
            claimed = node["status"]["nodeInfo"]["kubeletVersion"]
            assert f'kubernetes_build_info{{git_version="{claimed}"}} 1.0' in answer.text


async def test_a_device_has_the_story_until_there_is_a_lab(world: World, credentials: Credentials) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    wanted = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "missing", "key": "password"}}}
    containers = [{"name": "lab", "image": definition, "env": [wanted]}, {"name": "h0", "image": definition}]
    pod = await world.pod(definition, worker, containers=containers)
    await pod.waits("CreateContainerConfigError")
    node = await world.node(worker, is_ready)
    async with client(node, credentials.apiserver()) as call:
        told = await call(f"/containerLogs/{world.namespace}/{pod.name}/h0")
    assert (told.status, "Pod created" in told.text) == (200, True)
