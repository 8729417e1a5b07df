"""The client against the CML simulator: the life of labs, and what goes wrong in it."""

import asyncio
import datetime as dt
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.component.cml.conftest import Secret
from tests.support.cmlapi.simulator import CmlSimulator
from vkprovider.cml.factory import open_labs, open_session
from vkprovider.cml.operations import BASE, CONSOLES, LABS, LABS_API, MORE, STATS_API
from vkprovider.cml.spi import DeviceFact
from vkprovider.cml.stats import CmlWorkerStats
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import DeadlineExceeded, Fenced, Invalid, NotFound, TlsFailed, Unauthorized, Unavailable
from vkprovider.rest.operations import allow_list
from vkpsim.cml.simulation import Settings
from vkpsim.http.faults import Fault
from vkpsim.http.tls import self_signed, server_context

TOPOLOGY = """
lab:
  version: 0.1.0
  title: two-devices
  description: ''
  notes: vkprovider installation=u1
nodes:
  - {id: n0, label: r1, node_definition: iosv, x: 0, y: 0, configuration: hostname r1, tags: ['serial:5041'],
     interfaces: [{id: i0, label: GigabitEthernet0/0, slot: 0, type: physical}]}
  - {id: n1, label: d1, node_definition: desktop, x: 9, y: 0, configuration: '', tags: ['vnc:5044', 'serial:5042:1'],
     interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
links:
  - {id: l0, n1: n0, i1: i0, n2: n1, i2: i0, label: x}
"""


@pytest.fixture
async def sim() -> AsyncIterator[CmlSimulator]:
    async with CmlSimulator(Settings(password="right", boot_seconds=(0.05, 0.05))) as server:
        yield server


@pytest.fixture
def secret() -> Secret:
    return Secret()


@pytest.fixture
async def labs(sim: CmlSimulator, secret: Secret) -> AsyncIterator[CmlLabs]:
    opened = CmlLabs(open_session(sim.url, secret.read), sim.url)
    yield opened
    await opened.close()


@pytest.fixture
async def more(sim: CmlSimulator, secret: Secret) -> AsyncIterator[CmlLabs]:
    """All that the clients offer, beyond what the program itself sends."""
    opened = CmlLabs(open_session(sim.url, secret.read, allow=allow_list((*LABS, *CONSOLES, *MORE), BASE)), sim.url)
    yield opened
    await opened.close()


async def until(read: Callable[[], Awaitable[tuple[DeviceFact, ...]]], *states: str) -> tuple[DeviceFact, ...]:
    async with asyncio.timeout(10):
        while True:
            facts = await read()
            if {fact.state for fact in facts} == set(states):
                return facts
            await asyncio.sleep(0.01)


def fault(sim: CmlSimulator, **fields: object) -> None:
    sim.faults.add(Fault(**fields), sim.now())  # type: ignore[arg-type]  # (fields of the struct)


async def test_r000_036_to_041_the_whole_life(labs: CmlLabs, sim: CmlSimulator) -> None:
    assert (await labs.version()).startswith("2.9.1")
    assert await labs.list_lab_ids() == []
    assert await labs.list_all_devices() == {}
    lab = (await labs.import_lab(TOPOLOGY, "netlab-0123abcd")).id
    detail = await labs.get_lab(lab)
    assert (detail.lab_title, detail.lab_notes, detail.state, detail.node_count) == (
        "netlab-0123abcd",
        "vkprovider installation=u1",
        "DEFINED_ON_CORE",
        2,
    )
    assert [(info.id, info.lab_title) for info in await labs.list_labs()] == [(lab, "netlab-0123abcd")]
    await labs.start_lab(lab)
    facts = await until(lambda: labs.list_devices(lab), "BOOTED")
    assert {(fact.label, fact.definition) for fact in facts} == {("r1", "iosv"), ("d1", "desktop")}
    assert await labs.list_all_devices() == {lab: facts}
    await labs.stop_lab(lab)
    await until(lambda: labs.list_devices(lab), "STOPPED")
    await labs.wipe_lab(lab)
    await until(lambda: labs.list_devices(lab), "DEFINED_ON_CORE")
    await labs.delete_lab(lab)
    assert await labs.list_lab_ids() == []
    foreign = [entry for entry in sim.log.since(0) if not LABS_API.allows(entry.method, entry.path)]
    assert not foreign


async def test_r000_041_a_device_reports_its_state(more: CmlLabs) -> None:
    lab = (await more.import_lab(TOPOLOGY, "t")).id
    first, _ = await more.list_devices(lab)
    assert (await more.get_node_state(lab, first.id)).state == "DEFINED_ON_CORE"
    await more.start_lab(lab)
    await until(lambda: more.list_devices(lab), "BOOTED")
    assert (await more.get_node_state(lab, first.id)).state == "BOOTED"


async def test_the_program_itself_asks_for_less_than_the_clients_offer(labs: CmlLabs, sim: CmlSimulator) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    device, _ = await labs.list_devices(lab)
    before = len(sim.log.since(0))
    with pytest.raises(Invalid, match="allow-list"):
        await labs.get_node_state(lab, device.id)
    assert len(sim.log.since(0)) == before


async def test_r000_042_consoles_and_screens(more: CmlLabs) -> None:
    lab = (await more.import_lab(TOPOLOGY, "t")).id
    ids = {fact.label: fact.id for fact in await more.list_devices(lab)}
    assert await more.get_console_ports(lab) == {"r1": 5041, "d1:1": 5042}
    assert await more.get_vnc_url(lab, ids["d1"]) == "vnc://127.0.0.1:5044"


async def test_a_screen_without_a_port_of_its_own(more: CmlLabs, sim: CmlSimulator) -> None:
    lab = (await more.import_lab(TOPOLOGY.replace("'vnc:5044', ", ""), "t")).id
    ids = {fact.label: fact.id for fact in await more.list_devices(lab)}
    with pytest.raises(NotFound):
        await more.get_vnc_url(lab, ids["d1"])
    await more.start_lab(lab)
    await until(lambda: more.list_devices(lab), "BOOTED")
    url = await more.get_vnc_url(lab, ids["d1"])
    assert url.startswith(f"ws://127.0.0.1:{sim.port}/ws/")
    with pytest.raises(NotFound):
        await more.get_vnc_url(lab, ids["r1"])


async def test_r000_041_a_configuration_is_extracted(labs: CmlLabs) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    node = next(fact.id for fact in await labs.list_devices(lab) if fact.label == "r1")
    with pytest.raises(Invalid):
        await labs.extract_config(lab, node)
    await labs.start_lab(lab)
    await until(lambda: labs.list_devices(lab), "BOOTED")
    assert "hostname r1" in await labs.extract_config(lab, node)


async def test_what_the_state_forbids_is_invalid(labs: CmlLabs) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    await labs.start_lab(lab)
    for action in (labs.wipe_lab, labs.delete_lab):
        with pytest.raises(Invalid, match="must be stopped"):
            await action(lab)


async def test_a_missing_lab_is_not_found(labs: CmlLabs) -> None:
    lab = "00000000-0000-4000-8000-000000000000"
    for action in (labs.start_lab, labs.stop_lab, labs.wipe_lab, labs.delete_lab, labs.get_lab, labs.list_devices):
        with pytest.raises(NotFound, match="Lab not found"):
            await action(lab)


@pytest.mark.parametrize("topology", ["", "[", "lab: {version: '0.1'}\nnodes: []\nlinks: []", "nodes: []"])
async def test_a_bad_topology_is_invalid(labs: CmlLabs, topology: str) -> None:
    with pytest.raises(Invalid):
        await labs.import_lab(topology, "t")
    assert await labs.list_lab_ids() == []


async def test_a_title_that_is_too_long_is_invalid(labs: CmlLabs) -> None:
    with pytest.raises(Invalid):
        await labs.import_lab(TOPOLOGY, "t" * 65)


async def test_a_lost_answer_may_leave_a_lab(labs: CmlLabs, sim: CmlSimulator) -> None:
    fault(sim, kind="lost_answer", route="POST .*/import", count=1)
    with pytest.raises(Unavailable):
        await labs.import_lab(TOPOLOGY, "t")
    assert len(await labs.list_lab_ids()) == 1


async def test_lost_tokens_go_unnoticed(labs: CmlLabs, sim: CmlSimulator, secret: Secret) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    reads = secret.reads
    fault(sim, kind="lost_token", count=1)
    assert await asyncio.gather(*(labs.list_lab_ids() for _ in range(10))) == [[lab]] * 10
    assert secret.reads == reads + 1


async def test_a_wrong_password_says_so(labs: CmlLabs, secret: Secret) -> None:
    secret.password = "hush-hush"
    with pytest.raises(Unauthorized, match="refused the login") as caught:
        await labs.list_lab_ids()
    assert not {"admin", "hush-hush"} & set(re.findall(r"[\w-]+", str(caught.value))), "every reader of Pods sees it"
    secret.password = "right"
    assert await labs.list_lab_ids() == []


async def test_errors_of_the_worker_pass(labs: CmlLabs, sim: CmlSimulator) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    fault(sim, kind="status", status=500, count=2)
    for _ in range(2):
        with pytest.raises(Unavailable, match="500"):
            await labs.start_lab(lab)
    await labs.start_lab(lab)


async def test_a_broken_connection_is_repeated_once_if_that_is_harmless(labs: CmlLabs, sim: CmlSimulator) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    fault(sim, kind="drop", route="GET .*/labs", count=1)
    assert await labs.list_lab_ids() == [lab]
    fault(sim, kind="drop", route="GET .*/labs", count=2)
    with pytest.raises(Unavailable, match="connection"):
        await labs.list_lab_ids()


async def test_silence_meets_the_deadline(sim: CmlSimulator, secret: Secret) -> None:
    labs = CmlLabs(open_session(sim.url, secret.read, timeout_s=lambda _: 2.0), sim.url)
    await labs.list_lab_ids()
    sim.endpoint.silence(60)
    with pytest.raises(DeadlineExceeded):
        await labs.list_lab_ids()
    sim.endpoint.release()
    assert await labs.list_lab_ids() == []
    await labs.close()


async def test_a_restarted_worker_is_found_again(labs: CmlLabs, sim: CmlSimulator) -> None:
    await labs.list_lab_ids()
    await sim.listener.refuse(0.05, None)
    with pytest.raises(Unavailable):
        await labs.list_lab_ids()
    async with asyncio.timeout(10):
        while True:
            try:
                assert await labs.list_lab_ids() == []
            except Unavailable:
                await asyncio.sleep(0.01)
            else:
                break


async def test_a_fresh_controller_signs_its_own_certificate(secret: Secret) -> None:
    certificate, key = self_signed("127.0.0.1", dt.datetime.now(dt.UTC))
    async with CmlSimulator(Settings(password="right"), tls=server_context(certificate, key)) as sim:
        labs = open_labs(sim.url, secret.read)
        with pytest.raises(TlsFailed, match="self-signed"):
            await labs.list_lab_ids()
        await labs.close()
        for options in ({"verify": False}, {"ca_bundle": certificate.decode()}):
            labs = open_labs(sim.url, secret.read, **options)
            assert await labs.list_lab_ids() == []
            await labs.close()


async def test_statistics_are_asked_under_the_guard_and_by_name(sim: CmlSimulator, secret: Secret) -> None:
    def fenced() -> None:
        raise Fenced("another replica owns the Node")

    stats = CmlWorkerStats(open_session(sim.url, secret.read, allow=STATS_API, guard=fenced))
    with pytest.raises(Fenced):
        await stats.usage()
    await stats.close()
    assert list(sim.log.since(0)) == []
    session = open_session(sim.url, secret.read, allow=STATS_API, guard=lambda: None, user_agent="vkprovider/r1")
    stats = CmlWorkerStats(session)
    await stats.usage()
    await stats.close()
    assert {entry.agent for entry in sim.log.since(0)} == {"vkprovider/r1"}


async def test_statistics_are_asked_over_their_own_allow_list(sim: CmlSimulator, labs: CmlLabs, secret: Secret) -> None:
    lab = (await labs.import_lab(TOPOLOGY, "t")).id
    await labs.start_lab(lab)
    await until(lambda: labs.list_devices(lab), "BOOTED")
    stats = CmlWorkerStats(open_session(sim.url, secret.read, allow=STATS_API))
    usage = await stats.usage()
    await stats.close()
    assert usage.cpus == 256
    assert usage.memory_bytes == 1024 * 2**30
    assert (usage.licences, usage.licences_started) == (500, 2)
    assert usage.cpus_allocated
    assert usage.memory_allocated_bytes
