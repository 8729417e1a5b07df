"""The process that parses untrusted content: what costs too much is refused, and nothing else suffers."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.s3 import package
from tests.support.topologies import topology
from tests.support.waiting import until
from vkprovider.labs.content import parser as child
from vkprovider.labs.content.parsing import ContentParser
from vkprovider.labs.pure.definition import package as packages
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import InputError, Unavailable

TEXT = topology({"R1": "iosv"}, tags={"R1": ["serial:5001"]})
MANY_VALUES = "[" + "1," * 2_000_000 + "1]"


@pytest.fixture
def parser() -> Iterator[ContentParser]:
    found = ContentParser()
    yield found
    found.close()


def processes() -> list[int]:
    """List the parser processes of this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            mine, zombie = int(fields[1]) == os.getpid(), fields[0] == "Z"
            if mine and not zombie and b"vkprovider.labs.content.parser" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:  # it ended meanwhile
            continue
    return found


def is_over(pid: int) -> bool:
    """Return whether a process has ended, so that its exit code can be read; its command line goes earlier."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def of_process(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


async def test_content_is_what_it_is_without_the_process(parser: ContentParser) -> None:
    data = package({"cml.yaml": TEXT, "version": "1.2", "devices.yaml": "- {label: R1, is_user_visible: false}\n"})
    unpacked = await parser.package(data, PackageSettings(), "")
    assert unpacked == packages.read(data, PackageSettings())
    found = await parser.topology(unpacked)
    assert found == packages.validate(unpacked)
    ports = {"R1_serial": 10001}
    expected = packages.validate(unpacked).render(title="t: 'x'", notes='n\n"', ports=ports)
    assert found.render(title="t: 'x'", notes='n\n"', ports=ports) == expected


async def test_a_refusal_has_the_same_reason_and_message(parser: ContentParser) -> None:
    with pytest.raises(InputError) as here:
        packages.validate(Package("1", "nodes: 5"))
    with pytest.raises(InputError) as there:
        await parser.topology(Package("1", "nodes: 5"))
    assert str(there.value) == str(here.value)
    with pytest.raises(InputError, match="PackageInvalid: it is not a zip"):
        await parser.package(b"x", PackageSettings(), "1")


async def test_too_much_memory_is_refused_once_and_the_next_document_is_parsed(parser: ContentParser) -> None:
    before = set(processes())
    with pytest.raises(InputError, match="TopologyInvalid: the topology cannot be read: it needs more than 256 MiB"):
        await parser.topology(Package("1", MANY_VALUES))
    for pid in set(processes()) - before:
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_over(pid), 30)  # type: ignore[misc]
    with pytest.raises(InputError, match="it needs more than 256 MiB"):
        await parser.topology(Package("1", MANY_VALUES))
    assert set(processes()) <= before, "what was refused is not parsed again"
    assert (await parser.topology(Package("1", TEXT))).devices[0].label == "R1"


async def test_too_much_cpu_time_is_refused(parser: ContentParser) -> None:
    """The kernel ends the process; here by the signal itself, because the limit is half a minute."""
    assert child.CPU_S_MAX == 30
    before = set(processes())
    await parser.topology(Package("1", TEXT))
    (pid,) = set(processes()) - before
    parsing = asyncio.create_task(parser.topology(Package("1", MANY_VALUES)))
    await asyncio.sleep(0.5)  # it takes some ten seconds
    os.kill(pid, signal.SIGXCPU)
    with pytest.raises(InputError, match="needs more than 30 s of CPU time"):
        await parsing
    assert (await parser.topology(Package("2", TEXT))).devices[0].label == "R1"


async def test_an_end_that_is_not_the_documents_fault_refuses_nothing(parser: ContentParser) -> None:
    before = set(processes())
    await parser.topology(Package("1", TEXT))
    (pid,) = set(processes()) - before
    parsing = asyncio.create_task(parser.topology(Package("1", MANY_VALUES)))
    await asyncio.sleep(0.5)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(Unavailable, match="ended by signal 9"):
        await parsing
    await parser.topology(Package("1", TEXT + "\n"))
    (other,) = set(processes()) - before
    os.kill(other, signal.SIGTERM)  # idle: the next request starts another one
    await asyncio.to_thread(until, lambda: is_over(other), 30)
    await asyncio.sleep(0.2)
    assert (await parser.topology(Package("2", TEXT))).devices[0].label == "R1"


async def test_the_process_has_no_secret_and_ends_with_its_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKPROVIDER_EVENTS_SECRET", "very secret")
    before = set(processes())
    parser = ContentParser()
    await parser.topology(Package("1", TEXT))
    (pid,) = set(processes()) - before
    assert b"very secret" not in of_process(pid, "environ")
    limits = of_process(pid, "limits").decode()
    assert str(child.MEMORY_BYTES_MAX) in next(line for line in limits.splitlines() if "address space" in line)
    parser.close()
    for _ in range(50):
        if pid not in processes():
            break
        await asyncio.sleep(0.1)
    assert pid not in processes()
