"""What `vkprovider doctor` finds at a real broker, and of agents there; and that owners do not notice it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trustme

from tests.component.cml.conftest import MiniCml
from tests.support.mosquitto import CALLER, PASSWORD, Mosquitto
from tests.support.tunnels import Heard, agent_over, broker, eventually, hub_over, running
from tunnels.agent.core import Agent
from tunnels.base import AllowList
from tunnels.direct import DirectTransport
from tunnels.link.hub import TunnelTransport
from tunnels.mqtt.broker import Broker
from vkprovider.cli.doctor import broker_from
from vkprovider.doctor.findings import Finding, Level
from vkprovider.doctor.reasons import DOCTOR
from vkprovider.labs.checks.agents import look
from vkprovider.labs.checks.tunnels import check_broker
from vkprovider.platform.errors import InputError, Unavailable

ALLOW = AllowList([("GET", "/api/v0/system_information"), ("POST", "/api/v0/import")])
HEARTBEAT_S = 20.0
"""Far more than the agents' own, for a loaded machine."""


@pytest.fixture
async def direct(mini: MiniCml) -> AsyncIterator[DirectTransport]:
    transport = DirectTransport(mini.url, allow=ALLOW)
    yield transport
    await transport.close()


async def found(at: Broker, workers: Sequence[str] = (), heartbeat_s: float = HEARTBEAT_S) -> list[Finding]:
    """Return the findings about the broker."""
    findings = check_broker(at, await look(at, workers, heartbeat_s=heartbeat_s))
    assert {finding.reason for finding in findings} <= DOCTOR.keys()
    assert all(finding.object == f"Broker/{at}" for finding in findings)
    return findings


def from_settings(mosquitto: Mosquitto, **other: str) -> Broker:
    """Return the broker as the command finds it in its environment."""
    given = {"URL": f"mqtt://127.0.0.1:{mosquitto.port}", "USERNAME": CALLER, "PASSWORD": PASSWORD, **other}
    made = broker_from({f"VKPROVIDER_TUNNEL_MQTT_{name}": value for name, value in given.items()})
    assert isinstance(made, Broker)
    return made


async def test_a_broker_that_replicas_can_use_has_no_finding(mosquitto: Mosquitto) -> None:
    assert await found(from_settings(mosquitto)) == []


async def test_an_old_broker_is_used_as_the_settings_say(mosquitto: Mosquitto) -> None:
    """Mosquitto notes the protocol's level: 2 for MQTT 3.1.1, 5 for MQTT 5."""
    for version, level in (("5", "p5"), ("3.1.1", "p2")):
        assert await found(from_settings(mosquitto, VERSION=version)) == []
        await eventually(lambda level=level: f"({level}, " in mosquitto.log())  # type: ignore[misc]


async def test_an_agent_that_is_there_is_asked_and_its_owner_notices_nothing(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport
) -> None:
    """Neither the epoch nor the owner of the agent changes, and no replica hears an agent introduce itself again."""
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    owner = TunnelTransport(hub, "w1", allow=ALLOW, epoch=lambda: 7)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        await owner.request("POST", "/api/v0/import", deadline_s=30)
        await heard.until(lambda: hub.view("w1").epoch == 7)
        before = len(heard.views)
        seen = await look(from_settings(mosquitto), ["w1"], heartbeat_s=HEARTBEAT_S)
        assert seen.fault is None
        assert (seen.probes["w1"].version, seen.probes["w1"].error) == ("2.9.1+build.7", None)
        assert 0 < seen.round_trips_s["w1"] < HEARTBEAT_S
        [finding] = check_broker(from_settings(mosquitto), seen)
        assert (finding.level, finding.reason) == (Level.NOTE, "RoundTrip")
        assert finding.message.startswith("1 of 1 worker answered through agents; median ")
        agent.push("lab", b"")
        await heard.until(lambda: ("w1", "lab", b"", False) in heard.events)
        await owner.request("POST", "/api/v0/import", deadline_s=30)
        assert hub.view("w1").epoch == 7
        assert len(heard.views) == before
    assert agent.refused == {}
    assert agent.counts["malformed"] == 0
    assert mini.count("GET /system_information") == 1


async def test_an_agent_that_is_away_is_told_from_one_that_is_there(
    mosquitto: Mosquitto, direct: DirectTransport
) -> None:
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    at = from_settings(mosquitto)
    async with running(agent.run):
        await beats(mosquitto, agent)
        seen = await look(at, ["w1", "w2"], heartbeat_s=4)
        assert seen.probes["w1"].unheard_s is None
        assert seen.probes["w2"].unheard_s == 6
        assert [(finding.level, finding.reason) for finding in check_broker(at, seen)] == [(Level.NOTE, "RoundTrip")]
    [finding] = await found(at, ["w1", "w2"], heartbeat_s=0.1)
    assert (finding.level, finding.reason) == (Level.FAULT, "NoAgentHeard")
    assert "nothing was heard of 2 agents" in finding.message


async def beats(mosquitto: Mosquitto, agent: Agent) -> None:
    """Wait until an agent says at the broker that it is there."""
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard, "looks")
    async with running(hub.run):
        await heard.until(lambda: hub.view(agent.name).boot)


async def test_cml_that_the_agent_cannot_reach_is_the_workers_fault(mosquitto: Mosquitto, unused_tcp_port: int) -> None:
    direct = DirectTransport(f"http://127.0.0.1:{unused_tcp_port}", allow=ALLOW)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    at = from_settings(mosquitto)
    async with running(agent.run):
        seen = await look(at, ["w1"], heartbeat_s=HEARTBEAT_S)
    await direct.close()
    error = seen.probes["w1"].error
    assert isinstance(error, Unavailable)
    assert f"127.0.0.1:{unused_tcp_port}" in error.message
    assert seen.round_trips_s == {}
    assert check_broker(at, seen) == []


async def test_a_wrong_password_is_named(mosquitto: Mosquitto) -> None:
    [finding] = await found(from_settings(mosquitto, PASSWORD="wrong"))
    assert (finding.level, finding.reason) == (Level.FAULT, "BrokerLoginRefused")
    assert "does not accept user vkprovider" in finding.message
    assert "wrong" not in finding.line
    assert "VKPROVIDER_TUNNEL_MQTT_USERNAME" in finding.remedy


async def test_rights_that_replicas_need_are_missed(mosquitto: Mosquitto) -> None:
    """An agent's account may not speak to agents: mosquitto grants every subscription, and refuses messages."""
    [finding] = await found(from_settings(mosquitto, USERNAME="w2"))
    assert (finding.level, finding.reason) == (Level.FAULT, "BrokerTopicRefused")
    assert "vkprovider/doctor/down/doctor/doctor-" in finding.message
    assert finding.remedy == "Give user w2 the rights of manifests/mosquitto/aclfile."


async def test_a_broker_that_is_not_there_is_named(mosquitto: Mosquitto) -> None:
    await mosquitto.stop()
    [finding] = await found(from_settings(mosquitto), ["w1"])
    assert (finding.level, finding.reason) == (Level.FAULT, "BrokerUnreachable")
    assert finding.message == f"127.0.0.1:{mosquitto.port}: Connection refused"


async def test_a_broker_of_an_unknown_authority_is_not_trusted(mosquitto: Mosquitto) -> None:
    authority, foreign = trustme.CA(), trustme.CA()
    folder = mosquitto.folder
    authority.cert_pem.write_to_path(folder / "ca.pem")
    foreign.cert_pem.write_to_path(folder / "foreign.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "broker.pem")
    await mosquitto.stop()
    mosquitto.lines = (f"certfile {folder}/broker.pem", f"keyfile {folder}/broker.pem")
    await mosquitto.start()
    secured = {"URL": f"mqtts://127.0.0.1:{mosquitto.port}"}
    [finding] = await found(from_settings(mosquitto, **secured, CA_FILE=str(folder / "foreign.pem")))
    assert (finding.level, finding.reason) == (Level.FAULT, "BrokerNotTrusted")
    assert "certificate cannot be trusted" in finding.message
    assert await found(from_settings(mosquitto, **secured, CA_FILE=str(folder / "ca.pem"))) == []


async def test_agents_that_may_not_be_heard_are_missed(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    """Mosquitto says nothing when a user may not read a topic."""
    rules = mosquitto.folder / "aclfile"
    rules.write_text(f"user {CALLER}\ntopic write vkprovider/#\npattern write vkprovider/%u/up/#\n")
    rules.chmod(0o600)
    await mosquitto.stop()
    mosquitto.acl = rules
    await mosquitto.start()
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    async with running(agent.run):
        await eventually(lambda: "as agent-w1" in mosquitto.log())
        [finding] = await found(from_settings(mosquitto), ["w1"], heartbeat_s=2)
    assert (finding.level, finding.reason) == (Level.FAULT, "NoAgentHeard")
    assert "may read vkprovider/+/up/#" in finding.remedy


def test_settings_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    assert broker_from({}) is None
    wrong = broker_from({"VKPROVIDER_TUNNEL_MQTT_URL": "ftp://broker"})
    assert isinstance(wrong, InputError)
    assert (wrong.reason, "mqtts://broker.example.com:8883" in wrong.message) == ("SettingInvalid", True)
    missing = str(tmp_path / "ca.pem")
    url = {"VKPROVIDER_TUNNEL_MQTT_URL": "mqtts://broker"}
    unread = broker_from({**url, "VKPROVIDER_TUNNEL_MQTT_CA_FILE": missing})
    assert isinstance(unread, InputError)
    assert missing in unread.message
