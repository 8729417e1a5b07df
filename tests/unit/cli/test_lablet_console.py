"""What `kubectl lablet console`, `forward` and `screen` ask kubectl for."""

import click
import pytest

from vkprovider.classroom.pods import LabletPod, LabletSpec
from vkprovider.cli.lablet.console import console_command, forward_command, screen_command
from vkprovider.cli.shared.pods import exec_arguments
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.lablet.devices import Port
from vkprovider.platform.objects import Container, Metadata


def pod(*containers: str) -> LabletPod:
    return LabletPod(Metadata("p", "team"), LabletSpec([Container(name) for name in containers]))


@pytest.mark.parametrize(
    ("containers", "device", "take_over", "expected"),
    [
        (("lab", "r1"), "r1", False, "-c lab -- console r1"),
        (("lab", "iosv-0"), "IOSv 0", True, "-c lab -- console IOSv 0 --take-over"),
        (("lab", "r1", "r1-2"), "R1", False, "-c lab -- console R1"),
        (("lab",), "r1", False, "-c lab -- console r1"),
        (("lab", "r1"), "R 2", True, "-c lab -- console R 2 --take-over"),
        (("r1",), "r1", False, "-c r1 -- console r1"),
    ],
)
def test_the_console_of_a_device(containers: tuple[str, ...], device: str, take_over: bool, expected: str) -> None:  # noqa: FBT001 (a column)
    found = console_command(pod(*containers), device, take_over=take_over, tty=True)
    assert " ".join(found) == f"exec -i -t -n team p {expected}"


def test_input_that_is_not_typed_needs_no_terminal() -> None:
    assert console_command(pod("lab"), "r1", take_over=False, tty=False)[:2] == ["exec", "-i"]


def test_who_watches_sends_no_input() -> None:
    for tty in (True, False):
        found = console_command(pod("lab", "r1"), "r1", take_over=False, watch=True, tty=tty)
        assert found == ["exec", "-n", "team", "p", "-c", "lab", "--", "console", "r1"]


def test_a_capture_gets_neither_input_nor_a_terminal() -> None:
    words = CaptureRequest("r1:eth0", "icmp or arp", 5).words()
    found = " ".join(exec_arguments(pod("lab", "r1"), words))
    assert found == "exec -n team p -c lab -- capture r1:eth0 --packets=5 --seconds=60 --filter=icmp or arp"


def port(name: str, number: int, *, transport: str = "tcp", opened: bool = True) -> Port:
    return Port(name, "r1", "serial", "198.51.100.1", number, "r1", 5000, None, transport, opened, "")


PORTS = [port("r1_serial", 10000), port("r1_patudp53", 10001, transport="udp"), port("r1_http", 10002, opened=False)]


@pytest.mark.parametrize(("local", "pair"), [(None, "10000:10000"), (5000, "5000:10000"), (0, ":10000")])
def test_a_port_by_its_name(local: int | None, pair: str) -> None:
    assert forward_command(pod("lab"), PORTS, "r1_serial", local, None) == [
        *("port-forward", "-n", "team", "pod/p"),
        pair,
    ]
    assert "--address" in forward_command(pod("lab"), PORTS, "r1_serial", local, "0.0.0.0")  # noqa: S104 (as a user writes)


@pytest.mark.parametrize("name", ["r1_patudp53", "r1_http", "r2_serial"])
def test_a_port_that_cannot_be_forwarded(name: str) -> None:
    with pytest.raises(click.ClickException, match=f"no port '{name}' that can be forwarded; it has: r1_serial"):
        forward_command(pod("lab"), PORTS, name, None, None)


def test_a_screen_of_a_device_by_its_label_or_container_and_of_no_other() -> None:
    shown = [*PORTS, Port("PC_1_vnc", "PC 1", "vnc", "198.51.100.1", 10003, "pc-1", 5002, None, "tcp", True, "")]  # noqa: FBT003 (as it is)
    for name in ("PC 1", "pc-1"):
        found = screen_command(pod("lab", "pc-1"), shown, name)
        assert found == ["exec", "-i", "-n", "team", "p", "-c", "lab", "--", "screen", name]
    for name in ("r1", "PC_1_vnc", ""):
        with pytest.raises(click.ClickException, match=rf"no device '{name}' with a tag .*; with one: PC 1$"):
            screen_command(pod("lab"), shown, name)
    with pytest.raises(click.ClickException, match=r"with one: none$"):
        screen_command(pod("lab"), PORTS, "r1")
