"""What a login and a command by ssh ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.ssh.logins import device_in, devices_shown, is_copy, is_login_of, mode_of, watching
from vkprovider.portal.web.consoles.frames import Mode

LABS = {"friday", "warm-1"}


@pytest.mark.parametrize(
    ("login", "learner", "devices", "device"),
    [
        ("alice", "alice", ["r1"], ""),
        ("alice+r1", "alice", ["r1"], "r1"),
        ("alice+R1", "alice", ["r1"], "r1"),
        ("alice+r1", "alice", ["R1", "r1"], "r1"),
        ("alice+r1", "alice", ["R1"], "R1"),
        ("alice+friday+r1", "alice", ["r1"], "r1"),
        ("alice+warm-1+R1", "alice", ["r1"], "r1"),
        ("alice+friday", "alice", ["r1"], ""),
        ("alice+friday", "alice", ["friday", "r1"], "friday"),
        ("alice+monday+r1", "alice", ["r1"], "monday+r1"),
        ("alice+r9", "alice", ["r1"], "r9"),
        ("a+net@example.com+r1", "a+net@example.com", ["r1"], "r1"),
        ("alice+a+b", "alice", ["a+b"], "a+b"),
        ("alice+rR", "alice", ["Rr", "RR"], "rR"),
    ],
)
def test_a_login_names_a_device(login: str, learner: str, devices: list[str], device: str) -> None:
    assert is_login_of(login, learner)
    assert device_in(login, learner, LABS, devices) == device


@pytest.mark.parametrize(
    ("login", "learner"), [("bob", "alice"), ("alicer1", "alice"), ("", "alice"), ("+r1", ""), ("", ""), ("a", "a+r1")]
)
def test_a_login_of_somebody_else_is_none(login: str, learner: str) -> None:
    assert not is_login_of(login, learner)


@given(learner=st.text(min_size=1), device=st.text(min_size=1))
def test_every_device_can_be_named(learner: str, device: str) -> None:
    login = f"{learner}+{device}"
    assert is_login_of(login, learner)
    assert device_in(login, learner, LABS, [device]) == device
    assert device_in(f"{learner}+friday+{device}", learner, LABS, [device]) == device


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        ("", Mode.TYPE),
        ("console", Mode.TYPE),
        ("console --watch", Mode.WATCH),
        ("console --take-over", Mode.TAKE_OVER),
        ("console --take-over --watch", None),
        ("show version", None),
        ("scp -t .", None),
        ("console 'r1", None),
        ("sh -c id", None),
    ],
)
def test_a_command_is_a_console_or_refused(command: str, mode: Mode | None) -> None:
    assert mode_of(command) is mode


def test_copies_are_known_by_their_programs() -> None:
    assert [is_copy(each) for each in ("scp -t /tmp", "/usr/bin/rsync --server", "show scp", "")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_list_says_how_to_name_a_device() -> None:
    shown = devices_shown("alice", [("r1", "running"), ("host-2", "off")])
    assert shown.splitlines() == [
        "Say which device you want.",
        "  r1      running",
        "  host-2  off",
        "For example: ssh alice+r1@…",
    ]
    assert devices_shown("alice", [("r1", "")], "r9").startswith("r9 is no device of this lab")
    assert "no device with a console" in devices_shown("alice", [])
    assert "ssh 'a b+r1'@…" in devices_shown("a b", [("r1", "")])


def test_who_is_refused_the_keyboard_reads_how_to_take_it() -> None:
    assert watching("Bob types.", "alice+r1") == "Bob types. Take over: ssh -t alice+r1@… console --take-over"
