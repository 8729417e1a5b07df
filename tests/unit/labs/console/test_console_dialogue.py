"""A command at a console: prompts, echoes, pages, questions, time-outs, whatever the size of the pieces."""

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.console.dialogue import (
    DOUBT_S,
    SETTLE_S,
    WAKE_AGAIN_S,
    Dialogue,
    DialogueEnd,
    Output,
    Print,
    Type,
)
from vkprovider.labs.pure.console.history import shown
from vkprovider.labs.pure.console.manners import KINDS, Manners, read_manners
from vkprovider.platform.errors import InputError

ERASED = "\b" * 9 + " " * 8 + "\b" * 9


class Talk:
    """A dialogue with a device that answers what is typed by a table, in pieces of a size."""

    def __init__(self, kind: str, command: str, answers: dict[str, str], *, piece: int = 1000, first: str = "") -> None:
        self.now_s = 100.0
        self.dialogue = Dialogue(KINDS[kind], command, device="r1", timeout_s=30.0, now_s=self.now_s)
        self.answers = answers
        self.piece = piece
        self.typed: list[str] = []
        self.printed = ""
        self.end: DialogueEnd | None = None
        self.said = bytearray(first.encode())
        self.does(self.dialogue.begin())

    def does(self, outputs: object) -> None:
        for output in outputs:  # type: ignore[attr-defined]
            self.do(output)

    def do(self, output: Output) -> None:
        match output:
            case Type():
                self.typed.append(output.keys)
                self.said += self.answers.get(output.keys, "").encode()
            case Print():
                self.printed += output.text
            case DialogueEnd():
                assert self.end is None
                self.end = output

    def run(self, seconds: float = 200.0) -> DialogueEnd:
        end_s = self.now_s + seconds
        while self.end is None and self.now_s < end_s:
            while self.said:
                part, self.said = bytes(self.said[: self.piece]), self.said[self.piece :]
                self.does(self.dialogue.received(part, self.now_s))
                self.now_s += 0.001
            due_s = self.dialogue.due_s(self.now_s)
            assert due_s > self.now_s or self.dialogue.is_over
            self.now_s = max(due_s, self.now_s)
            self.does(self.dialogue.tick(self.now_s))
        assert self.end is not None
        return self.end


IOS = {"\r": "\r\nr1#", "show version\r": "show version\r\nCisco IOS Software\r\nuptime is 1 minute\r\nr1#"}


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize(
    ("kind", "prompt"),
    [
        ("ios", "r1#"),
        ("ios", "r1>"),
        ("iosxe", "Router-1.lab#"),
        ("iosxr", "RP/0/RP0/CPU0:r1#"),
        ("nxos", "switch# "),
        ("asa", "ciscoasa> "),
        ("asa", "fw/act/pri# "),
        ("linux", "alpine:~$ "),
        ("linux", "cisco@ubuntu:/var/log$ "),
        ("linux", "[root@h0 ~]# "),
        ("linux", "/ # "),
        ("linux", "\x1b[01;32mcisco@ubuntu\x1b[00m:\x1b[01;34m~\x1b[00m$ "),
    ],
)
def test_output_stands_between_the_echo_and_the_next_prompt(kind: str, prompt: str, piece: int) -> None:
    answers = {"\r": f"\r\n{prompt}", "show version\r": f"show version\r\none\r\n\r\n two\r\n{prompt}"}
    talk = Talk(kind, "show version", answers, piece=piece)
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "one\n\n two\n"
    assert talk.typed == ["\r", "show version\r"]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_the_size_of_the_pieces_changes_nothing(sizes: list[int]) -> None:
    lines = [f"line {number} of a long output" for number in range(60)]
    pages = [lines[:23], lines[23:46], lines[46:]]
    first = "\r\n".join(["show tech", *pages[0]]) + "\r\n --More-- "
    more = iter([ERASED + "\r\n".join(pages[1]) + "\r\n --More-- ", ERASED + "\r\n".join(pages[2]) + "\r\nr1#"])
    talk = Talk("ios", "show tech", {"\r": "\r\nr1#", "show tech\r": first})
    sized = itertools.cycle(sizes)
    while talk.end is None:
        while talk.said:
            talk.piece = next(sized)
            part, talk.said = bytes(talk.said[: talk.piece]), talk.said[talk.piece :]
            before = len(talk.typed)
            talk.does(talk.dialogue.received(part, talk.now_s))
            if " " in talk.typed[before:]:
                talk.said += next(more).encode()
        talk.now_s += SETTLE_S
        talk.does(talk.dialogue.tick(talk.now_s))
    assert talk.end == DialogueEnd(0)
    assert talk.printed.splitlines() == lines
    assert talk.typed == ["\r", "show tech\r", " ", " "]


@pytest.mark.parametrize(
    ("kind", "pager", "erased"),
    [
        ("ios", " --More-- ", ERASED),
        ("iosxr", " --More-- ", "\r          \r"),
        ("nxos", "--More--", "\r        \r"),
        ("asa", "<--- More --->", "\r              \r"),
        ("linux", "--More--(42%)", "\r\x1b[K"),
    ],
)
def test_pages_are_turned_and_the_pager_is_not_printed(kind: str, pager: str, erased: str) -> None:
    prompt = "r1:~# " if kind == "linux" else "r1#"
    more = {" ": f"{erased}the end\r\n{prompt}"}
    talk = Talk(kind, "x y", {"\r": f"\r\n{prompt}", "x y\r": f"x y\r\nthe beginning\r\n{pager}", **more}, piece=3)
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "the beginning\nthe end\n"


def test_what_the_console_showed_before_is_not_output() -> None:
    first = "r1: power on\r\nPress RETURN to get started\r\nr1#show clock\r\n12:00\r\nr1#"
    talk = Talk("ios", "show version", IOS, first=first)
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "Cisco IOS Software\nuptime is 1 minute\n"


def test_a_page_that_someone_left_open_is_closed_first() -> None:
    talk = Talk("ios", "show version", {**IOS, "\r": "", "q": ERASED + "r1#"}, first=" --More-- ")
    assert talk.run() == DialogueEnd(0)
    assert talk.typed == ["\r", "q", "show version\r"]


def test_a_device_that_needs_a_second_return_gets_it() -> None:
    talk = Talk("ios", "show version", IOS)
    talk.said.clear()  # the first one is lost: the device was still asleep
    began_s = talk.now_s
    assert talk.run() == DialogueEnd(0)
    assert talk.typed == ["\r", "\r", "show version\r"]
    assert talk.now_s - began_s < WAKE_AGAIN_S + 5 * SETTLE_S


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("ios", "r1(config)#", r"r1 is in a configuration mode \(r1\(config\)#\), in which someone may be at work"),
        ("ios", "r1(config-if)#", "configuration mode"),
        ("iosxr", "RP/0/RP0/CPU0:r1(config-if)#", "configuration mode"),
        ("nxos", "switch(config)# ", "configuration mode"),
        ("asa", "ciscoasa(config)# ", "configuration mode"),
        ("ios", "Username: ", "r1 asks 'Username:', which only a person can answer"),
        ("ios", "Password: ", "asks 'Password:'"),
        ("nxos", "switch login: ", "asks 'switch login:'"),
        ("linux", "alpine login: ", "asks 'alpine login:'"),
        ("linux", "[sudo] password for cisco: ", "asks"),
        ("ios", "Would you like to enter the initial configuration dialog? [yes/no]: ", "asks 'Would you like"),
    ],
)
def test_where_a_command_would_do_harm_none_is_typed(kind: str, line: str, expected: str) -> None:
    talk = Talk(kind, "reload", {"\r": f"\r\n{line}"})
    end = talk.run()
    assert end.code == 1
    assert re.search(expected, end.message), end.message
    assert "kubectl lablet console" in end.message
    assert talk.typed == ["\r"]
    assert talk.printed == ""


def test_a_command_that_leads_to_configuration_is_left_again() -> None:
    talk = Talk("ios", "conf t", {"\r": "\r\nr1#", "conf t\r": "conf t\r\nEnter commands.\r\nr1(config)#"})
    end = talk.run()
    assert (end.code, talk.typed[-1], talk.printed) == (1, "end\r", "Enter commands.\n")
    assert "leads to a configuration mode" in end.message


def test_a_command_that_asks_is_interrupted() -> None:
    talk = Talk("ios", "enable", {"\r": "\r\nr1>", "enable\r": "enable\r\nPassword: "})
    end = talk.run()
    assert (end.code, talk.typed[-1]) == (1, "\x1e")
    assert "asks 'Password:'" in end.message


def test_another_prompt_ends_a_command_after_a_longer_silence() -> None:
    talk = Talk("ios", "enable", {"\r": "\r\nr1>", "enable\r": "enable\r\nr1#"})
    began_s = talk.now_s
    assert talk.run() == DialogueEnd(0)
    assert talk.now_s - began_s >= DOUBT_S


def test_output_that_looks_like_a_prompt_does_not_end_a_command() -> None:
    talk = Talk("linux", "slow", {"\r": "\r\nh0:~# ", "slow\r": "slow\r\nroot@elsewhere:~# "})
    while talk.typed[-1] != "slow\r" or talk.said:
        talk.does(talk.dialogue.received(bytes(talk.said), talk.now_s))
        talk.said.clear()
        talk.now_s += SETTLE_S
        talk.does(talk.dialogue.tick(talk.now_s))
    talk.now_s += DOUBT_S / 2
    talk.does(talk.dialogue.received(b"\r\nand on\r\nh0:~# ", talk.now_s))
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "root@elsewhere:~# \nand on\n"


def test_a_message_of_the_device_behind_its_prompt_does_not_hide_the_end() -> None:
    late = "show version\r\none\r\nr1#*Mar 1 00:00:01: %SYS-5-CONFIG_I: Configured\r\n"
    talk = Talk("ios", "show version", {"\r": "\r\nr1#", "show version\r": late})
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "one\n*Mar 1 00:00:01: %SYS-5-CONFIG_I: Configured\n\n"
    assert talk.typed == ["\r", "show version\r", "\r"]


def test_a_silent_device_times_out() -> None:
    talk = Talk("ios", "show version", {})
    end = talk.run()
    assert end.code == 124
    assert "r1 shows no prompt within 30 s: use its console" in end.message
    assert set(talk.typed) == {"\r"}


def test_a_device_that_boots_is_quoted() -> None:
    end = Talk("ios", "show version", {"\r": "Loading kernel"}).run()
    assert (end.code, "its last line is 'Loading kernel" in end.message) == (124, True)


def test_what_came_before_the_time_out_is_printed_and_the_command_interrupted() -> None:
    talk = Talk("linux", "sleep", {"\r": "\r\nh0:~# ", "sleep\r": "sleep\r\none\r\ntwo"})
    end = talk.run()
    assert (end.code, talk.printed, talk.typed[-1]) == (124, "one\ntwo\n", "\x03")


def test_output_that_goes_on_does_not_time_out() -> None:
    talk = Talk("linux", "ping", {"\r": "\r\nh0:~# ", "ping\r": "ping\r\n"})
    while "ping\r" not in talk.typed or talk.said:
        talk.does(talk.dialogue.received(bytes(talk.said), talk.now_s))
        talk.said.clear()
        talk.now_s += SETTLE_S
        talk.does(talk.dialogue.tick(talk.now_s))
    for number in range(20):
        talk.now_s += 25
        talk.does(talk.dialogue.tick(talk.now_s))
        talk.does(talk.dialogue.received(b"reply %d\r\n" % number, talk.now_s))
    talk.does(talk.dialogue.received(b"h0:~# ", talk.now_s))
    assert talk.run() == DialogueEnd(0)
    assert talk.printed.count("reply") == 20


def test_who_leaves_interrupts_only_what_was_begun() -> None:
    talk = Talk("ios", "show tech", IOS)
    assert list(talk.dialogue.abandon()) == []
    talk = Talk("ios", "show tech", {"\r": "\r\nr1#"})
    talk.does(talk.dialogue.received(bytes(talk.said), talk.now_s))
    talk.does(talk.dialogue.tick(talk.now_s + SETTLE_S))
    assert talk.typed[-1] == "show tech\r"
    assert list(talk.dialogue.abandon()) == [Type("\x1e")]
    assert list(talk.dialogue.tick(talk.now_s + 1000)) == []


def test_a_long_command_is_known_by_the_end_of_its_echo() -> None:
    command = "show running-config | include " + "x" * 80
    scrolled = command[:70] + "\b" * 60 + "$" + command[40:]
    talk = Talk("ios", command, {"\r": "\r\nr1#", f"{command}\r": f"{scrolled}\r\nfound\r\nr1#"})
    assert talk.run() == DialogueEnd(0)
    assert talk.printed == "found\n"


def test_a_line_without_end_is_passed_on_in_parts() -> None:
    talk = Talk("linux", "yes", {"\r": "\r\nh0:~# ", "yes\r": "yes\r\n" + "y" * 100_000 + "\r\nh0:~# "}, piece=4096)
    assert talk.run() == DialogueEnd(0)
    assert talk.printed.replace("\n", "") == "y" * 100_000


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("plain", "plain"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07text", "text"),
        ("abc\b\bX", "aXc"),
        ("12345\rab", "ab345"),
        (ERASED + "text", "text"),
        ("\a\0x", "x"),
        ("\x1b\x1b[A[2Jhello", "[2Jhello"),
        ("\x9b2Jhello", "2Jhello"),
    ],
)
def test_a_line_is_as_a_terminal_shows_it(raw: str, expected: str) -> None:
    assert shown(raw) == expected


@given(st.text(max_size=200))
def test_nothing_that_a_device_prints_breaks_the_dialogue(text: str) -> None:
    talk = Talk("linux", "x", {"\r": text, "x\r": text}, piece=5)
    assert talk.run(1000).code in {0, 1, 124}


def of(definition: str) -> Callable[[str], bool] | None:
    manner = Manners().of(definition)
    return manner.is_prompt if manner is not None else None


REFERENCE_PLATFORM = (
    *("iosv", "iosvl2", "iol-xe", "ioll2-xe", "iol-xe-serial-4eth", "cat8000v", "cat9000v-q200", "csr1000v"),
    *("iosxrv9000", "nxosv9000", "asav", "alpine", "ubuntu", "server", "desktop"),
    *("frr", "dnsmasq", "radius", "tacplus", "syslog", "nginx", "netflow", "net-tools", "snort", "splunk"),
    *("iosxe-sdwan", "pagent", "viptela-bond", "viptela-edge", "viptela-manage", "viptela-smart"),
    *("cat-sdwan-controller", "cat-sdwan-manager", "cat-sdwan-validator", "cat-sdwan-vedge", "cat-sdwan-edge"),
    *("ftdv", "fmcv", "vwlc", "cat9800", "xrd", "ios-xrd-control-plane", "trex", "wan_emulator", "coreos"),
    *("chrome", "firefox", "thousandeyes-ea"),
)


@pytest.mark.parametrize("definition", REFERENCE_PLATFORM)
def test_the_devices_of_the_reference_platform_are_known(definition: str) -> None:
    assert of(definition) is not None


@pytest.mark.parametrize(
    ("definition", "prompts", "others"),
    [
        ("ftdv", (">", "firepower>", "firepower#", "admin@ftd-1:~$"), ("firepower(config)#", "firepower login:", "")),
        ("fmcv", (">", "admin@fmc:~$", "root@fmc:/Volume/home/admin#"), ("fmc login:", "Password:")),
        ("vwlc", ("(Cisco Controller) >", "(WLC-2) >"), ("(Cisco Controller) config>", "User:", "Password:", ">")),
        ("viptela-edge", ("vedge#", "vedge-1:~$"), ("vedge(config)#", "vedge(config-vpn-0)#", "vedge login:")),
        ("cat-sdwan-manager", ("vmanage#",), ("vmanage(config)#", "Password:")),
        ("frr", ("frr-0#", "frr-0>", "root@frr-0:/#", "bash-5.2#"), ("frr-0(config-router)#",)),
        ("xrd", ("RP/0/RP0/CPU0:xrd#",), ("RP/0/RP0/CPU0:xrd(config)#", "Username:")),
        ("pagent", ("PAGENT>", "PAGENT#"), ("PAGENT(config)#",)),
        ("radius", ("radius-0:/#", "root@radius-0:~#"), ("radius-0 login:",)),
    ],
)
def test_the_prompts_of_other_shipped_kinds(definition: str, prompts: tuple[str, ...], others: tuple[str, ...]) -> None:
    is_prompt = of(definition)
    assert is_prompt is not None
    assert [line for line in prompts if not is_prompt(line)] == []
    assert [line for line in others if is_prompt(line)] == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("aireos", "--More-- or (q)uit"),
        ("aireos", "--More or (q)uit current module or <ctrl-z> to abort"),
        ("firepower", "<--- More --->"),
        ("firepower", "--More--"),
    ],
)
def test_the_pagers_of_other_shipped_kinds(kind: str, line: str) -> None:
    assert KINDS[kind].is_pager(line)


def test_only_a_shell_reads_quotes() -> None:
    assert [kind for kind, manner in KINDS.items() if manner.quotes] == ["linux"]


@pytest.mark.parametrize("definition", ["external_connector", "unmanaged_switch", "acme-os"])
def test_others_are_not(definition: str) -> None:
    assert of(definition) is None


def test_a_setting_adds_and_replaces_manners() -> None:
    manners = read_manners({"acme-os": "ios", "acme-fw": {"like": "asa", "prompt": "fw!"}, "iosv": {"prompt": "x>"}})
    acme, firewall, iosv = manners.of("acme-os"), manners.of("acme-fw"), manners.of("iosv")
    assert acme == KINDS["ios"]
    assert firewall is not None
    assert (firewall.is_prompt("fw!"), firewall.is_prompt("fw#"), firewall.is_pager("<--- More --->")) == (1, 0, 1)
    assert iosv is not None
    assert (iosv.is_prompt("x>"), iosv.is_pager("--More--")) == (True, False)
    assert manners.of("alpine") == KINDS["linux"]


def test_the_line_of_the_shell_is_known_or_set() -> None:
    manners = read_manners(
        {"acme-web": {"like": "linux", "line": 1}, "nginx": "linux", "frr": {"like": "frr", "line": 1}}
    )
    assert {name: manners.line(name) for name in ("acme-web", "nginx", "frr", "chrome", "iosv", "acme-os")} == {
        **dict.fromkeys(("acme-web", "nginx", "frr", "chrome"), 1),
        **dict.fromkeys(("iosv", "acme-os"), 0),
    }


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([], "is not a mapping"),
        ({"a": {"like": "ios", "line": -1}}, "a: .*line"),
        ({"a": 3}, "a is neither"),
        ({"a": "dos"}, "a is like 'dos'; known are ios, "),
        ({"a": {"like": "ios", "promt": "x"}}, "a: .*promt"),
        ({"a": {}}, "a: .*prompt"),
        ({"a": {"prompt": "("}}, r"a: .*missing \)"),
    ],
)
def test_a_wrong_table_is_refused(table: object, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read_manners(table)
