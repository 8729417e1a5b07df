"""Labs in time: boots, the launch queue, stops, crashes, restarts of the host."""

from typing import Any

import msgspec
import pytest

from tests.simulators.cml.bench import TWO_HOSTS, Bench
from vkpsim.cml.simulation import Snapshot
from vkpsim.cml.world.definitions import BOOTED_TEXT


def start(bench: Bench, lab: str) -> None:
    assert bench.request("PUT", f"/labs/{lab}/start") == (204, None)


def converged(bench: Bench, lab: str) -> bool:
    return bool(bench.request("GET", f"/labs/{lab}/check_if_converged")[1])


def lab_state(bench: Bench, lab: str) -> str:
    return str(bench.request("GET", f"/labs/{lab}/state")[1])


def test_a_lab_is_started_at_once_and_converges_when_its_last_node_has_booted() -> None:
    bench = Bench(boot_seconds_by_definition={"alpine": (10, 10)})
    lab = bench.load()
    assert (lab_state(bench, lab), converged(bench, lab)) == ("DEFINED_ON_CORE", True)
    start(bench, lab)
    assert (lab_state(bench, lab), converged(bench, lab)) == ("STARTED", False)
    bench.now += 9.9
    assert bench.states(lab) == {"h0": "STARTED", "h1": "STARTED"}
    bench.now += 0.1
    assert bench.states(lab) == {"h0": "BOOTED", "h1": "BOOTED"}
    assert (lab_state(bench, lab), converged(bench, lab)) == ("STARTED", True)


def test_links_and_interfaces_follow_their_nodes() -> None:
    bench = Bench()
    lab = bench.load()
    h0 = bench.node(lab, "h0")

    def wires() -> tuple[set[str], set[str]]:
        _, states = bench.request("GET", f"/labs/{lab}/lab_element_state")
        return set(states["links"].values()), set(states["interfaces"].values())

    assert wires() == ({"DEFINED_ON_CORE"}, {"DEFINED_ON_CORE"})
    bench.request("PUT", f"/labs/{lab}/nodes/{h0}/state/start")
    assert wires() == ({"DEFINED_ON_CORE"}, {"DEFINED_ON_CORE", "STARTED"})
    start(bench, lab)
    assert wires() == ({"STARTED"}, {"STARTED"})
    bench.request("PUT", f"/labs/{lab}/nodes/{h0}/state/stop")
    assert wires() == ({"STOPPED"}, {"STARTED", "STOPPED"})
    bench.request("PUT", f"/labs/{lab}/stop")
    bench.request("PUT", f"/labs/{lab}/wipe")
    assert wires() == ({"DEFINED_ON_CORE"}, {"DEFINED_ON_CORE"})


def test_start_after_a_partial_stop_starts_only_the_stopped_nodes() -> None:
    bench = Bench()
    lab = bench.load()
    start(bench, lab)
    bench.now += 20
    bench.request("PUT", f"/labs/{lab}/nodes/{bench.node(lab, 'h0')}/state/stop")
    start(bench, lab)
    assert bench.states(lab) == {"h0": "STARTED", "h1": "BOOTED"}


@pytest.mark.parametrize(
    "scarce",
    [{"licence_nodes": 2}, {"cpus": 2}, {"memory_gib": 1}],
    ids=["licences", "CPU", "memory"],
)
def test_a_node_that_does_not_fit_stays_queued_until_resources_are_freed(scarce: dict[str, Any]) -> None:
    bench = Bench(**scarce)
    first, second = bench.load(), bench.load()
    start(bench, first)
    start(bench, second)
    bench.now += 20
    assert bench.states(first) == {"h0": "BOOTED", "h1": "BOOTED"}
    assert bench.states(second) == {"h0": "QUEUED", "h1": "QUEUED"}
    assert (lab_state(bench, second), converged(bench, second)) == ("STARTED", False)
    assert len(bench.request("GET", "/diagnostics/node_launch_queue")[1]) == 2
    bench.request("PUT", f"/labs/{first}/nodes/{bench.node(first, 'h0')}/state/stop")
    assert bench.states(second) == {"h0": "STARTED", "h1": "QUEUED"}
    bench.request("PUT", f"/labs/{first}/stop")
    bench.now += 20
    assert bench.states(second) == {"h0": "BOOTED", "h1": "BOOTED"}


def test_nodes_that_need_no_licence_start_without_one() -> None:
    bench = Bench(licence_nodes=0)
    lab = bench.load()
    bench.request(
        "POST", f"/labs/{lab}/nodes", {"label": "nat", "node_definition": "external_connector", "x": 0, "y": 0}
    )
    start(bench, lab)
    assert bench.states(lab) == {"h0": "QUEUED", "h1": "QUEUED", "nat": "STARTED"}


def test_a_larger_quota_lets_queued_nodes_start() -> None:
    bench = Bench(licence_nodes=1)
    lab = bench.load()
    start(bench, lab)
    assert bench.states(lab) == {"h0": "STARTED", "h1": "QUEUED"}
    bench.world.set_quota(bench.now, 2)
    assert bench.states(lab) == {"h0": "STARTED", "h1": "STARTED"}
    assert bench.request("GET", "/diagnostics/licensing")[1]["started"] == 2


def test_a_stop_that_takes_time_ends_the_run_only_then() -> None:
    bench = Bench(stop_seconds=5.0, licence_nodes=2)
    lab, waiting = bench.load(), bench.load()
    start(bench, lab)
    start(bench, waiting)
    bench.now += 20
    bench.request("PUT", f"/labs/{lab}/stop")
    assert (lab_state(bench, lab), converged(bench, lab)) == ("STARTED", False)
    assert bench.request("PUT", f"/labs/{lab}/wipe")[0] == 400
    bench.now += 15
    assert (lab_state(bench, lab), converged(bench, lab)) == ("STOPPED", True)
    assert bench.states(waiting) == {"h0": "BOOTED", "h1": "BOOTED"}, "launched when the stop ended, 10 s ago"


def test_unlicensed_or_without_host_nothing_starts() -> None:
    bench = Bench()
    lab = bench.load()
    bench.world.registered = False
    status, text = bench.request("PUT", f"/labs/{lab}/start")
    assert status == 400
    assert "Cannot start lab" in text
    bench.world.registered = True
    host = bench.request("GET", "/system/compute_hosts")[1][0]["id"]
    bench.request("PATCH", f"/system/compute_hosts/{host}", {"admission_state": "ONLINE"})
    assert bench.request("PUT", f"/labs/{lab}/start")[0] == 400
    assert bench.request("GET", "/system_information")[1]["ready"] is False
    bench.request("PATCH", f"/system/compute_hosts/{host}", {"admission_state": "READY"})
    start(bench, lab)


def test_a_device_that_powers_itself_off_is_stopped_and_so_is_a_lab_whose_last_one_did() -> None:
    bench = Bench()
    lab = bench.load()
    start(bench, lab)
    bench.now += 20
    nodes = bench.world.labs[lab].nodes.values()
    for node in nodes:
        assert lab_state(bench, lab) == "STARTED"
        bench.world.crash(bench.now, node)
    assert (lab_state(bench, lab), converged(bench, lab)) == ("STOPPED", True)


def test_a_host_that_restarts_stops_everything_and_frees_all() -> None:
    bench = Bench(licence_nodes=1)
    lab = bench.load()
    start(bench, lab)
    bench.world.reboot(bench.now)
    assert bench.states(lab) == {"h0": "STOPPED", "h1": "STOPPED"}
    assert bench.world.host.used.licences == 0
    assert bench.world.queued() == []


def test_nodes_of_a_lost_host_are_disconnected_and_go_on_when_it_returns() -> None:
    bench = Bench(licence_nodes=1)
    lab = bench.load()
    start(bench, lab)
    bench.world.set_connected(bench.now, connected=False)
    assert bench.states(lab) == {"h0": "DISCONNECTED", "h1": "QUEUED"}
    bench.now += 20
    bench.world.set_connected(bench.now, connected=True)
    assert bench.states(lab) == {"h0": "BOOTED", "h1": "QUEUED"}


def test_boot_times_are_drawn_by_seed() -> None:
    def drawn(seed: int) -> list[float]:
        bench = Bench(boot_seconds=(5.0, 20.0), seed=seed)
        lab = bench.load()
        start(bench, lab)
        return [node.booted_at - bench.now for node in bench.world.labs[lab].nodes.values()]

    assert drawn(1) == drawn(1) != drawn(2)
    assert all(5 <= seconds <= 20 for seconds in drawn(1))


def test_a_stored_state_goes_on_where_it_was() -> None:
    bench = Bench(licence_nodes=3)
    running, queued = bench.load(), bench.load()
    start(bench, running)
    start(bench, queued)
    raw = msgspec.json.encode(bench.sim.snapshot())
    again = Bench(licence_nodes=3)
    again.sim.restore(msgspec.json.decode(raw, type=Snapshot))
    again.now = bench.now + 5
    assert again.states(running) == {"h0": "STARTED", "h1": "STARTED"}
    assert again.states(queued) == {"h0": "STARTED", "h1": "QUEUED"}
    assert again.world.host.used == bench.world.host.used
    again.now += 5
    assert again.states(running) == {"h0": "BOOTED", "h1": "BOOTED"}
    again.request("PUT", f"/labs/{running}/stop")
    again.now += 10
    assert again.states(queued) == {"h0": "BOOTED", "h1": "BOOTED"}
    assert msgspec.json.encode(bench.sim.snapshot()) == raw


def test_only_the_first_answer_after_a_start_that_shows_convergence_counts() -> None:
    bench = Bench()
    lab = bench.world.labs[bench.load()]

    def seen() -> tuple[int, bool]:
        bench.world.advance(bench.now)
        return lab.starts, lab.up

    assert seen() == (0, False), "a defined lab has converged, but not as started"
    start(bench, lab.id)
    assert seen() == (1, False)
    bench.now += 20
    assert seen() == (1, True)
    start(bench, lab.id)
    assert seen() == (1, True), "nothing was started"
    bench.world.crash(bench.now, next(iter(lab.nodes.values())))
    start(bench, lab.id)
    assert seen() == (2, False)


def test_duplicate_titles_are_allowed_and_imports_give_new_ids() -> None:
    bench = Bench()
    first, second = bench.load(), bench.load(TWO_HOSTS)
    assert first != second
    assert set(bench.request("GET", "/labs", query={"show_all": "true"})[1]) == {first, second}
    assert not set(bench.world.labs[first].nodes) & set(bench.world.labs[second].nodes)


def test_an_empty_lab_has_nothing_to_start() -> None:
    bench = Bench()
    _, lab = bench.request("POST", "/labs", {"title": "empty"})
    start(bench, lab["id"])
    assert (lab_state(bench, lab["id"]), converged(bench, lab["id"])) == ("DEFINED_ON_CORE", True)
    assert bench.request("DELETE", f"/labs/{lab['id']}")[0] == 204


def test_a_lab_without_title_gets_one_from_the_clock() -> None:
    assert Bench().request("POST", "/labs", {})[1]["lab_title"] == "Lab at Thu 00:16 AM"


def test_events_record_each_change() -> None:
    bench = Bench()
    lab = bench.load()
    node = bench.node(lab, "h0")
    bench.request("PUT", f"/labs/{lab}/nodes/{node}/state/start")
    bench.now += 60
    _, events = bench.request("GET", f"/labs/{lab}/events")
    told = [(event["event"], event["element_type"], event["data"].get("state")) for event in events]
    assert told == [
        ("CREATED", "Lab", None),
        ("CREATED", "Link", None),
        ("state", "Node", "QUEUED"),
        ("state", "Node", "STARTED"),
        ("state", "Node", "BOOTED"),
    ]
    assert (events[-1]["element_id"], events[-1]["timestamp"]) == (node, "1970-01-01T00:16:50+00:00")


def define(bench: Bench, boot_timeout_s: int) -> None:
    """Add the node definition `slow`, an Alpine to which CML gives so many seconds."""
    _, known = bench.request("GET", "/node_definitions/alpine", query={"json": "true"})
    known |= {"id": "slow", "boot": {**known["boot"], "timeout": boot_timeout_s}}
    assert bench.request("POST", "/node_definitions", known) == (200, "Success")


@pytest.mark.parametrize(
    ("timeout_s", "cpu_limit", "speed", "booted_after_s", "text_after_s"),
    [
        (1800, 100, 1, 1500, 1500),
        (1200, 100, 1, 1200, 1500),  # CML calls it BOOTED, and it goes on
        (600, 40, 1, 1500, 1500),  # with less CPU, CML waits longer
        (600, 80, 1, 750, 1500),
        (1200, 100, 100, 12, 15),
    ],
)
def test_a_device_is_booted_at_its_boot_text_or_at_the_time_out_of_its_definition(
    timeout_s: int, cpu_limit: int, speed: float, booted_after_s: float, text_after_s: float
) -> None:
    bench = Bench(boot_seconds=(1500.0, 1500.0), boot_speed=speed)
    define(bench, timeout_s)
    lab = bench.load(TWO_HOSTS.replace("alpine", f"slow, cpu_limit: {cpu_limit}", 1))
    h0 = bench.node(lab, "h0")
    start(bench, lab)
    began_at = bench.now

    def text() -> str:
        return str(bench.request("GET", f"/labs/{lab}/nodes/{h0}/consoles/0/log")[1])

    bench.now = began_at + booted_after_s - 0.1
    assert bench.states(lab)["h0"] == "STARTED"
    bench.now = began_at + booted_after_s
    assert bench.states(lab)["h0"] == "BOOTED"
    bench.now = began_at + text_after_s - 0.1
    assert BOOTED_TEXT not in text()
    bench.now = began_at + text_after_s
    assert BOOTED_TEXT in text()
