"""What a simulated device says, and what becomes of what one types."""

from tests.unit.vkpsandbox.cml.bench import Bench
from vkpsandbox.cml.consoles import console
from vkpsandbox.cml.world.model import Node


def booted() -> tuple[Bench, str, Node]:
    bench = Bench()
    lab = bench.load()
    bench.request("PUT", f"/labs/{lab}/start")
    bench.now += 60
    bench.world.advance(bench.now)
    return bench, lab, bench.world.labs[lab].nodes[bench.node(lab, "h0")]


def log(bench: Bench, lab: str, lines: str | None = None) -> list[str]:
    path = f"/labs/{lab}/nodes/{bench.node(lab, 'h0')}/consoles/0/log"
    status, text = bench.request("GET", path, query={} if lines is None else {"lines": lines})
    assert status == 200
    return str(text).split("\n") if text else []


def test_boot_lines_appear_as_time_passes_and_end_with_the_one_that_says_booted() -> None:
    bench = Bench()
    lab = bench.load()
    assert log(bench, lab) == []
    bench.request("PUT", f"/labs/{lab}/start")
    assert log(bench, lab) == ["|0|h0: power on"]
    bench.now += 5
    half = log(bench, lab)
    assert half[-1] == "|3000|Loading kernel"
    bench.now += 5
    assert log(bench, lab)[: len(half)] == half
    assert log(bench, lab)[-1] == "|10000|Press RETURN to get started"


def test_exactly_as_many_lines_as_asked_for() -> None:
    bench, lab, _ = booted()
    assert len(log(bench, lab)) == 6
    assert len(log(bench, lab, "5")) == 5
    assert log(bench, lab, "0") == []
    assert log(bench, lab, "50") == log(bench, lab)


def test_a_stopped_node_keeps_its_history_and_a_wiped_one_has_none() -> None:
    bench, lab, _ = booted()
    bench.request("PUT", f"/labs/{lab}/stop")
    assert log(bench, lab)[-1].endswith("|h0: power off")
    bench.request("PUT", f"/labs/{lab}/start")
    assert log(bench, lab)[-1].endswith("|h0: power on")
    bench.request("PUT", f"/labs/{lab}/stop")
    bench.request("PUT", f"/labs/{lab}/wipe")
    assert log(bench, lab) == []


def test_a_device_answers_and_keeps_what_was_typed() -> None:
    bench, lab, node = booted()
    assert console.type_line(node, 0, bench.now, "echo hello") == ["hello"]
    assert console.type_line(node, 0, bench.now, "show run") == ["hostname h0"]
    assert console.type_line(node, 0, bench.now, "nonsense") == []
    assert [line.split("|")[2] for line in log(bench, lab, "5")] == [
        "h0# echo hello",
        "hello",
        "h0# show run",
        "hostname h0",
        "h0# nonsense",
    ]


def test_extraction_finds_lines_configured_on_the_device() -> None:
    bench, lab, node = booted()
    path = f"/labs/{lab}/nodes/{node.id}"
    for text in ("configure terminal", "interface eth0", " description mine", "end", "show clock"):
        console.type_line(node, 0, bench.now, text)
    assert bench.request("GET", path)[1]["configuration"] == "hostname h0"
    assert bench.request("PUT", f"{path}/extract_configuration")[0] == 200
    extracted = bench.request("GET", path)[1]["configuration"]
    assert extracted == "hostname h0\ninterface eth0\ndescription mine\n"
    bench.request("PUT", f"{path}/extract_configuration")
    assert bench.request("GET", path)[1]["configuration"] == extracted


def test_sessions_see_each_other_and_the_device() -> None:
    bench, _, node = booted()
    one, other = console.Terminal(node, 0), console.Terminal(node, 0)
    assert one.greet(bench.now).endswith("Press RETURN to get started\r\nh0# ")
    other.greet(bench.now)
    bench.now += 1
    assert one.enter(bench.now, "echo hi") == "echo hi\r\nhi\r\nh0# "
    bench.now += 1
    assert other.news(bench.now) == "h0# echo hi\r\nhi\r\nh0# "
    assert (one.news(bench.now), other.news(bench.now)) == ("", "")
