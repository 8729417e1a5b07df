"""What simulated Cisco devices understand: short forms, filters, submodes, commits."""

from collections.abc import Callable

import pytest

from tests.simulators.cml.bench import Bench
from vkpsim.cml.consoles.commands import passed_on
from vkpsim.cml.consoles.shell import Shell
from vkpsim.cml.world.model import Node

CISCO = ("iosv", "iol-xe", "cat8000v", "nxosv9000", "iosxrv9000", "asav")
TEXT = ["interface Ethernet0/0", " mtu 9000", " shutdown", "interface Ethernet0/1", " mtu 1500", "end"]


@pytest.fixture
def device() -> Callable[[str], tuple[Shell, Node]]:
    """Return a function that boots a device of a definition."""

    def boot(definition: str) -> tuple[Shell, Node]:
        bench = Bench()
        lab = bench.load()
        node = bench.world.labs[lab].nodes[bench.node(lab, "h0")]
        node.node_definition = definition
        return Shell(node, 0), node

    return boot


def typed(shell: Shell, *lines: str) -> list[str]:
    """Type lines; return the prompt after each."""
    return [shell.press(0.0, f"{line}\r").rpartition("\r\n")[2].strip() for line in lines]


@pytest.mark.parametrize("definition", CISCO)
def test_a_command_may_be_cut_short_as_long_as_it_is_one(
    device: Callable[[str], tuple[Shell, Node]], definition: str
) -> None:
    shell, _ = device(definition)
    unknown = shell.answer("nonsense")
    assert shell.answer("sh ver") == shell.answer("show version") != unknown
    assert shell.answer("SHOW RUNN") == shell.answer("show running-config") != unknown
    for wrong in ("show", "shw version", "sh ver now", "terminal width wide", "e", "show version | nonsense x"):
        assert shell.answer(wrong) == shell.answer("nonsense"), wrong
    assert shell.answer("term wid 0") == []
    assert typed(shell, "ena", "config term")[-1].endswith("(config)#")


def test_each_kind_turns_its_pager_off_by_its_own_command(device: Callable[[str], tuple[Shell, Node]]) -> None:
    for definition in CISCO:
        shell, _ = device(definition)
        own, other = ("term pager", "term length") if definition == "asav" else ("term length", "term pager")
        assert shell.answer(f"{other} 0") != []
        assert "ore" in typed(shell, "show tech")[0]
        shell.press(0.0, "q")
        assert shell.press(0.0, "show tech | no-more\r").count("line ") == 120
        assert shell.answer(f"{own} 0") == []
        assert shell.press(0.0, "show tech\r").count("line ") == 120


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("include mtu", [" mtu 9000", " mtu 1500"]),
        ("i mtu (9|8)000", [" mtu 9000"]),
        ("exc Ethernet", [" mtu 9000", " shutdown", " mtu 1500", "end"]),
        ("begin 0/1", ["interface Ethernet0/1", " mtu 1500", "end"]),
        ("begin nothing", []),
        ("sec 0/0", ["interface Ethernet0/0", " mtu 9000", " shutdown"]),
        ("count mtu", ["Number of lines which match regexp = 2"]),
        ("no-more", TEXT),
        ("include [", []),
        ("include", None),
        ("tee file", None),
    ],
)
def test_a_filter_passes_lines_on(condition: str, expected: list[str] | None) -> None:
    assert passed_on(TEXT, condition) == expected


def test_configuration_has_submodes_that_one_leaves_one_by_one(device: Callable[[str], tuple[Shell, Node]]) -> None:
    shell, node = device("iosv")
    prompts = typed(shell, "en", "conf t", "int lo3", "ip address 10.0.0.3 255.255.255.255", "line con 0", "exit")
    assert prompts == ["h0#", "h0(config)#", "h0(config-if)#", "h0(config-if)#", "h0(config-line)#", "h0(config)#"]
    assert shell.answer("do sh ver | inc IOSv") == shell.answer("do show version")[:1]
    assert typed(shell, "hostname core-1", "router ospf 1", "end") == [
        "core-1(config)#",
        "core-1(config-router)#",
        "core-1#",
    ]
    assert node.learned == [
        "int lo3",
        "ip address 10.0.0.3 255.255.255.255",
        "line con 0",
        "hostname core-1",
        "router ospf 1",
    ]


@pytest.mark.parametrize(
    ("reply", "prompt", "learned"),
    [
        ("yes", "RP/0/RP0/CPU0:h0#", ["interface Loopback1", "shutdown"]),
        ("no", "RP/0/RP0/CPU0:h0#", []),
        ("cancel", "RP/0/RP0/CPU0:h0(config-if)#", []),
        ("", "RP/0/RP0/CPU0:h0(config-if)#", []),
    ],
)
@pytest.mark.parametrize("leave", ["end\r", "\x1a"])
def test_an_ios_xr_asks_for_what_is_not_committed(
    device: Callable[[str], tuple[Shell, Node]], leave: str, reply: str, prompt: str, learned: list[str]
) -> None:
    shell, node = device("iosxrv9000")
    typed(shell, "configure", "interface Loopback1", "shutdown")
    assert node.learned == []
    assert "Uncommitted changes found" in shell.press(0.0, leave)
    assert typed(shell, reply) == [prompt]
    assert node.learned == learned


def test_a_commit_of_an_ios_xr_takes_effect(device: Callable[[str], tuple[Shell, Node]]) -> None:
    shell, node = device("iosxrv9000")
    assert typed(shell, "configure", "hostname xr-1", "commit", "end")[1:] == [
        "RP/0/RP0/CPU0:h0(config)#",
        "RP/0/RP0/CPU0:xr-1(config)#",
        "RP/0/RP0/CPU0:xr-1#",
    ]
    assert node.learned == ["hostname xr-1"]
    typed(shell, "configure", "interface Loopback9")
    assert typed(shell, "abort") == ["RP/0/RP0/CPU0:xr-1#"]
    assert node.learned == ["hostname xr-1"]


def test_show_works_in_the_configuration_of_an_nx_os_and_needs_do_on_an_ios(
    device: Callable[[str], tuple[Shell, Node]],
) -> None:
    nexus, nexus_node = device("nxosv9000")
    router, router_node = device("iosv")
    for shell in (nexus, router):
        typed(shell, "enable", "configure terminal")
    assert "NX-OS" in nexus.answer("show version")[0]
    assert "Invalid input" in router.answer("show version")[1]
    assert router.answer("do show version")[0].startswith("Cisco IOS Software")
    assert (nexus_node.learned, router_node.learned) == ([], [])


def test_a_linux_shell_knows_no_short_forms(device: Callable[[str], tuple[Shell, Node]]) -> None:
    shell, _ = device("alpine")
    assert shell.answer("sh ver") == ["-sh: sh: not found"]
    assert shell.answer("uname -a")[0].startswith("Linux h0 ")
