"""What the doctor says of tunnels, as functions of what was seen."""

import msgspec

from tests.unit.cli.test_doctor_checks import check, seen
from tunnels.mqtt.broker import Broker, BrokerFault
from vkprovider.doctor.findings import Level
from vkprovider.labs.checks.tunnels import BrokerSeen, check_broker, check_unseen
from vkprovider.labs.checks.workers import WorkerProbe
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason

BROKER = Broker("broker.example.com", 8883, login=lambda: ("vkprovider", "secret"))


def test_round_trips_are_one_line_however_many_workers_there_are() -> None:
    probes = {f"w{number}": WorkerProbe("2.9.1") for number in range(9)} | {"away": WorkerProbe(unheard_s=15)}
    taken_s = {f"w{number}": 0.010 * (number + 1) for number in range(9)}
    [finding] = check_broker(BROKER, BrokerSeen(None, probes, taken_s))
    assert finding.line == (
        "(note) Broker/broker.example.com:8883: RoundTrip: 9 of 10 workers answered through agents; "
        "median 50 ms, slowest w8 90 ms"
    )


def test_a_broken_connection_is_a_fault_without_the_password() -> None:
    [finding] = check_broker(BROKER, BrokerSeen(BrokerFault("broker.example.com:8883: the connection ended")))
    assert (finding.level, finding.reason) == (Level.FAULT, "BrokerUnreachable")
    assert "secret" not in finding.line


def test_tunnels_that_cannot_be_examined_are_noted_with_the_reason() -> None:
    assert check_unseen({"direct": ["a"], "None": ["b"]}, None, "ns") == []
    mqtt, http = check_unseen({"mqtt": [f"w{n}" for n in range(7)], "http": ["h"]}, None, "ns")
    assert (mqtt.level, mqtt.object, mqtt.reason) == (Level.NOTE, "Tunnel/mqtt", "TunnelNotExamined")
    assert mqtt.message.startswith("the broker of CMLWorker w0, w1, w2, w3, w4 and 2 more is not examined: ")
    assert mqtt.remedy == "kubectl -n ns exec deploy/vkprovider -- vkprovider doctor"
    assert (http.level, http.object, http.reason) == (Level.NOTE, "Tunnel/http", "TunnelNotExamined")
    assert "see the condition Ready" in http.message
    assert "vkprovider_tunnel_agents" in http.remedy


def test_settings_that_cannot_be_used_leave_mqtt_unchecked() -> None:
    [finding] = check_unseen({"mqtt": ["w"]}, InputError(StartReason.SETTING_INVALID, "no such file"), "ns")
    assert (finding.level, finding.object, finding.reason) == (Level.UNCHECKED, "Tunnel/mqtt", "SettingInvalid")


def test_an_agent_that_is_turned_away_is_a_fault_of_a_ready_worker() -> None:
    said = {"type": "AgentTurnedAway", "status": "True", "reason": "AgentConflict", "message": "m"}
    good = seen(tunnel="mqtt")
    status = {**good.resource.status, "conditions": [*good.resource.status["conditions"], said]}
    conflict = msgspec.structs.replace(good, resource=msgspec.structs.replace(good.resource, status=status))
    assert check(conflict) == [("fault", "AgentConflict")]


def test_an_agent_that_only_the_provider_hears_is_no_fault() -> None:
    unheard = WorkerProbe(unheard_s=15)
    assert check(seen(probe=unheard, tunnel="mqtt")) == [("note", "UnreachableFromHere")]
    assert check(seen(probe=unheard, lives=False, tunnel="mqtt")) == [("fault", "AgentAway")]
