"""What a simulated device says, and what becomes of what one types."""

import pytest

from tests.simulators.cml.bench import Bench
from vkpsim.cml.consoles import consoles
from vkpsim.cml.consoles.shell import ENDLESS, Shell
from vkpsim.cml.world.model import Node


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
    shell = Shell(node, 0)
    assert shell.press(bench.now, "echo hello\r") == "echo hello\r\nhello\r\nh0:~# "
    assert shell.press(bench.now, "uname -a\r\n").startswith("uname -a\r\nLinux h0 ")
    assert shell.press(bench.now, "nonsense\r") == "nonsense\r\n-sh: nonsense: not found\r\nh0:~# "
    assert [line.split("|")[2] for line in log(bench, lab, "6")] == [
        "h0:~# echo hello",
        "hello",
        "h0:~# uname -a",
        "Linux h0 6.6.31-0-virt #1-Alpine SMP x86_64 Linux",
        "h0:~# nonsense",
        "-sh: nonsense: not found",
    ]


def test_extraction_finds_lines_configured_on_the_device() -> None:
    bench, lab, node = booted()
    node.node_definition = "iosv"
    path = f"/labs/{lab}/nodes/{node.id}"
    shell = Shell(node, 0)
    for text in ("enable", "configure terminal", "interface eth0", " description mine", "end", "show version"):
        shell.press(bench.now, f"{text}\r")
    assert bench.request("GET", path)[1]["configuration"] == "hostname h0"
    assert bench.request("PUT", f"{path}/extract_configuration")[0] == 200
    extracted = bench.request("GET", path)[1]["configuration"]
    assert extracted == "hostname h0\ninterface eth0\ndescription mine\n"
    bench.request("PUT", f"{path}/extract_configuration")
    assert bench.request("GET", path)[1]["configuration"] == extracted


@pytest.mark.parametrize(
    ("definition", "user", "enabled", "config"),
    [
        ("iosv", "h0>", "h0#", "h0(config)#"),
        ("ioll2-xe", "h0>", "h0#", "h0(config)#"),
        ("cat8000v", "h0>", "h0#", "h0(config)#"),
        ("iosxrv9000", "RP/0/RP0/CPU0:h0#", "RP/0/RP0/CPU0:h0#", "RP/0/RP0/CPU0:h0(config)#"),
        ("nxosv9000", "h0# ", "h0# ", "h0(config)# "),
        ("asav", "h0> ", "h0# ", "h0(config)# "),
    ],
)
def test_prompts_and_modes_are_those_of_the_kind(definition: str, user: str, enabled: str, config: str) -> None:
    bench, _, node = booted()
    node.node_definition = definition
    shell = Shell(node, 0)
    found = [("\r\n" + shell.press(bench.now, f"{text}\r")).rpartition("\r\n")[2] for text in ("", "enable", "conf t")]
    assert found == [user if definition not in {"iosxrv9000", "nxosv9000"} else enabled, enabled, config]
    assert shell.press(bench.now, "\x1a") == f"\r\n{enabled}"


def test_each_key_is_echoed_and_can_be_rubbed_out() -> None:
    bench, _, node = booted()
    shell = Shell(node, 0)
    assert [shell.press(bench.now, key) for key in ("e", "x", "\x7f", "\t", "\r")] == [
        "e",
        "x",
        "\b \b",
        "",
        "\r\n-sh: e: not found\r\nh0:~# ",
    ]
    assert shell.press(bench.now, "never mind\x03") == "never mind^C\r\nh0:~# "


def test_long_output_stops_at_each_page() -> None:
    bench, _, node = booted()
    node.node_definition = "iosv"
    shell = Shell(node, 0)
    page = shell.press(bench.now, "show tech\r")
    assert page.endswith("line 23 of 120: h0\r\n --More-- ")
    assert shell.press(bench.now, "\r").endswith("\bline 24 of 120: h0\r\n --More-- ")
    assert shell.press(bench.now, " ").endswith("line 47 of 120: h0\r\n --More-- ")
    assert shell.press(bench.now, "q").endswith("\bh0>")
    shell.press(bench.now, "terminal length 0\r")
    assert shell.press(bench.now, "show tech\r").endswith("line 120 of 120: h0\r\nh0>")


def test_output_without_end_comes_piece_by_piece_until_somebody_interrupts_it() -> None:
    bench, _, node = booted()
    line = consoles.Line(node, 0)
    line.press(bench.now, "yes\r")
    for _ in range(3):
        before = line.printed
        bench.now += consoles.NOISY_S
        line.look(bench.now)
        assert line.since(before) == ENDLESS
        line.look(bench.now)
        assert line.printed == before + len(ENDLESS), "not faster than a cable"
    line.press(bench.now, "q\x03")
    assert line.output.endswith("y\r\n^C\r\nh0:~# ")
    line.press(bench.now, "ls\r")
    assert "\x1b[31mbackup.tgz\x1b[0m" in line.output


def test_a_line_with_a_speed_carries_so_many_keys_a_second_and_drops_what_finds_no_room() -> None:
    bench, _, node = booted()
    line = consoles.Line(node, 0, baud=9600)
    line.press(bench.now, "echo " + "x" * 300 + "\r")
    seen = line.printed
    assert line.follow_s == consoles.CARRIED_S
    bench.now += 0.0505
    line.look(bench.now)
    assert line.since(seen) == "echo " + "x" * 43, "48 keys in 50 ms"
    bench.now += 1
    line.press(bench.now, "\r")
    assert line.since(seen) == "echo " + "x" * 123, "the rest, and Return, was dropped"
    bench.now += 0.0015
    line.look(bench.now)
    assert line.output.endswith("x" * 123 + "\r\n" + "x" * 123 + "\r\nh0:~# ")
    assert line.follow_s == consoles.FOLLOW_S


def test_a_device_with_a_login_asks_for_it() -> None:
    bench, _, node = booted()
    node.node_definition = "iosv"
    node.configuration[0].content += "\nline con 0\n login local"
    shell = Shell(node, 0)
    shell.wake()
    assert shell.press(bench.now, "\r") == "\r\nUsername: "
    assert shell.press(bench.now, "cisco\r") == "cisco\r\nPassword: "
    assert shell.press(bench.now, "secret\r") == "\r\nh0>"


def test_the_prompt_of_a_label_with_a_space_is_a_host_name() -> None:
    _, _, node = booted()
    node.label = "sw 1"
    assert Shell(node, 0).prompt == "sw-1:~# "


def test_sessions_see_each_other_and_the_device() -> None:
    bench, _, node = booted()
    line = consoles.Line(node, 0)
    line.look(bench.now)
    assert line.output.endswith("Press RETURN to get started\r\nh0:~# ")
    seen = line.printed
    line.press(bench.now, "echo hi\r")
    assert line.since(seen) == "echo hi\r\nhi\r\nh0:~# "
    assert line.since(line.printed) == ""


def test_a_device_that_boots_does_not_listen() -> None:
    bench = Bench()
    lab = bench.load()
    bench.request("PUT", f"/labs/{lab}/start")
    line = consoles.Line(bench.world.labs[lab].nodes[bench.node(lab, "h0")], 0)
    line.press(bench.now, "echo hi\r")
    assert line.output == "h0: power on\r\n"
