"""What clients of the kubelet API may do to its parsers and its sessions: a million inputs, and hours in short."""

import asyncio
import contextlib
import hashlib
import itertools
import os
import random
import resource
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from tests.support.apiserver import ApiServer, running
from tests.support.kubectlsessions import WITHOUT_WEBSOCKETS, Stage, staged
from tests.support.kubeletwire import endure, frames, mutated, write
from tests.support.tcp import digest, echo, port_of, there_and_back
from vkprovider.labs.kubelet.streams.inlets import SessionLimits

INPUTS: Final = 1_000_000
PARTS: Final = 4
EACH: Final = 250
"""Inputs that are made of one example of Hypothesis."""
GROWTH_KIB_MAX: Final = 64 * 1024
SEED: Final = int(os.environ.get("VKPROVIDER_TEST_SEED") or random.randrange(10**9))
WAYS: Final = {"websocket": {}, "spdy": WITHOUT_WEBSOCKETS}
IDLE_S: Final = 90.0
"""kubectl leaves after 61 s in which nobody has answered its pings."""


def try_inputs(part: int, seeded: int) -> tuple[int, int]:
    """Try a part of the inputs; return how many they are, and by how many KiB this process has grown."""
    tried = 0

    @settings(
        max_examples=INPUTS // PARTS // EACH,
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(frames, min_size=1, max_size=8), st.lists(st.integers(0, 5000), max_size=6), st.integers(0, 2**32))
    def fuzz(described: list[tuple[str, int, object]], cuts: list[int], seed: int) -> None:
        nonlocal tried
        chance, written = random.Random(f"{seeded} {part} {seed}"), write(described)
        for _ in range(EACH):
            endure(mutated(written, chance), cuts)
            tried += 1

    endure(bytes(1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz()
    return tried, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def draw_text() -> None:
    """Make Hypothesis cache its table of Unicode; once in a checkout, it takes 200 MB for that."""
    find(st.text(), lambda _: True)


@pytest.fixture(scope="module")
def unicode_table() -> None:
    """In a process of its own, because a new process inherits the peak of the one that starts it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        fresh.submit(draw_text).result()


@pytest.mark.usefixtures("unicode_table")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_million_inputs(part: int) -> None:
    """In a process of its own, so that nothing but the inputs makes it grow."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        tried, grown = fresh.submit(try_inputs, part, SEED).result()
    print(f"part {part}: {tried} inputs, {grown} KiB more at the most, seed {SEED}")  # noqa: T201 (the figures)
    assert tried >= INPUTS // PARTS
    assert grown <= GROWTH_KIB_MAX


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture
async def stage(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(apiserver, tmp_path, SessionLimits()) as stage:
        yield stage


@pytest.mark.parametrize(("kubectl", "way", "pod"), list(itertools.product(["own", "other"], WAYS, ["new", "old"])))
async def test_fifty_megabytes_there_and_back(stage: Stage, kubectl: str, way: str, pod: str) -> None:
    if kubectl not in stage.kubectls:
        pytest.skip("there is one kubectl")
    sent = os.urandom(50_000_000)
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, stage.forwarding(pod, port_of(server), kubectl=kubectl, environ=WAYS[way]) as port:
        assert await there_and_back(port, sent) == digest(sent)


@pytest.mark.parametrize("way", WAYS)
async def test_fifty_sessions_of_all_kinds(stage: Stage, way: str) -> None:
    """Half of them forward ports and half run commands, and each has its own bytes."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)

    async def forward(number: int) -> None:
        sent = random.Random(number).randbytes(1_000_000)
        async with stage.forwarding("new", port_of(server), kubectl="own", environ=WAYS[way]) as port:
            assert await there_and_back(port, sent) == digest(sent)

    async def run(number: int) -> None:
        typed = random.Random(number).randbytes(1_000_000)
        arguments = ("exec", "-i", "new", "-c", "c", "--", "cat")
        result = await stage.run(*arguments, kubectl="own", stdin=typed, environ=WAYS[way])
        assert (result.code, hashlib.sha256(result.out).digest()) == (0, digest(typed)), result.err

    async with server, asyncio.TaskGroup() as sessions:
        for number in range(25):
            sessions.create_task(forward(number))
            sessions.create_task(run(number))
    assert stage.server.sessions == 0


@pytest.mark.parametrize("way", WAYS)
async def test_session_without_a_byte_for_a_while(stage: Stage, way: str) -> None:
    """Neither an exec session nor a forwarded connection ends because nothing is said."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    process = await stage.start("exec", "-i", "new", "-c", "c", "--", "cat", kubectl="own", environ=WAYS[way])
    try:
        async with server, stage.forwarding("new", port_of(server), kubectl="own", environ=WAYS[way]) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(IDLE_S)
            writer.write(b"still there")
            writer.write_eof()
            assert await reader.read() == b"still there"
            writer.close()
        out, err = await process.communicate(b"still there")
        assert (process.returncode, out) == (0, b"still there"), err
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.parametrize("way", WAYS)
async def test_input_that_nobody_reads_for_a_while(stage: Stage, way: str) -> None:
    """kubectl goes on although its pings stand behind what is not read."""
    process = await stage.start(
        "exec", "-i", "new", "-c", "c", "--", "late", str(IDLE_S), kubectl="own", environ=WAYS[way]
    )
    try:
        out, err = await process.communicate(bytes(400_000))
        assert (process.returncode, out) == (0, b"400000"), err
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
