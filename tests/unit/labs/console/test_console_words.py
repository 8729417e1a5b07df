"""The words of `kubectl exec`: quoted or refused, and told from shells and from `kubectl cp`."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.console.words import COMMAND_CHARS_MAX, is_shell, line_of, moves_files
from vkprovider.platform.errors import InputError


@pytest.mark.parametrize("quotes", [True, False])
@pytest.mark.parametrize("line", ["show version", "echo 'a   b' | wc", 'banner motd "hello"', "x"])
def test_one_word_is_typed_as_it_is(line: str, quotes: bool) -> None:  # noqa: FBT001 (a column)
    assert line_of([line], quotes=quotes) == line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["uname", "-a"], "uname -a"),
        (["sh", "-c", "date; uptime"], "sh -c 'date; uptime'"),
        (["printf", "%s", "a   b"], "printf %s 'a   b'"),
        (["grep", "it's", "/etc/motd"], """grep 'it'"'"'s' /etc/motd"""),
        (["ls", "*.cfg"], "ls '*.cfg'"),
        (["echo", ""], "echo ''"),
    ],
)
def test_a_shell_is_given_the_same_words(words: list[str], expected: str) -> None:
    assert line_of(words, quotes=True) == expected


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8), min_size=2, max_size=5))
def test_a_shell_finds_the_words_again(words: list[str]) -> None:
    assert shlex.split(line_of(words, quotes=True)) == words


def test_other_devices_are_given_words_that_they_cannot_take_apart() -> None:
    assert line_of(["show", "ip", "route", "|", "include", "10.0.0.0/8"], quotes=False).endswith("| include 10.0.0.0/8")
    for word in ("two words", "", 'a"b', "it's", "tab\there"):
        with pytest.raises(InputError, match=r"CommandInvalid: the device would take the word .* as one word"):
            line_of(["show", "run", "|", "include", word], quotes=False)


@pytest.mark.parametrize("words", [[""], ["  "], ["a\nb"], ["x" * (COMMAND_CHARS_MAX + 1)], ["echo", "a\nb"]])
def test_what_is_no_line_is_refused(words: list[str]) -> None:
    with pytest.raises(InputError, match="CommandInvalid"):
        line_of(words, quotes=True)


@pytest.mark.parametrize(
    "words",
    [
        ["sh"],
        ["/bin/ash", "-l"],
        ["bash", "-i", "--login"],
        ["powershell.exe"],
        ["env", "TERM=xterm-256color", "/bin/zsh"],
        ["sh", "-c", "command -v zsh >/dev/null && exec zsh || exec ash"],
        ["sh", "-c", "clear; (zsh || ash || sh)"],
        ["/bin/sh", "-i", "-c", "TERM=xterm bash 2>/dev/null || sh"],
        ["/bin/sh", "-c", "export TERM=vt100; [ -x /bin/ksh ] && ([ -x /usr/bin/script ] && exec /bin/ksh) || exec sh"],
        ["/usr/bin/env", "bash", "-lc", "cd /tmp\nexec dash"],
    ],
)
def test_the_button_of_a_user_interface_asks_for_a_shell(words: list[str]) -> None:
    assert is_shell(words)


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "ver"],
        ["sh", "-c", "ls -l"],
        ["sh", "-c", "echo bash"],
        ["bash", "setup.sh"],
        ["sh", "-c", "sh /root/setup.sh; ps | grep bash"],
        ["sh", "-c", "echo 'open"],
        ["show", "version"],
        ["env"],
        [],
    ],
)
def test_a_command_is_no_shell(words: list[str]) -> None:
    assert not is_shell(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["test", "-d", "/flash"], True),
        (["tar", "-xmf", "-", "-C", "/flash"], True),
        (["tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-"], True),
        (["tar", "cf", "-", "/etc/motd"], True),
        (["/bin/tar", "czf-", "x"], True),
        (["sh", "-c", "tar cf - /etc/motd | tail -c+10"], True),
        (["rsync", "--server", "--sender", "."], True),
        (["tar", "tf", "backup.tar"], False),
        (["test", "crypto", "self"], False),
        (["rsync", "--version"], False),
        (["show", "tar", "-"], False),
    ],
)
def test_what_copies_files_is_known(words: list[str], expected: bool) -> None:  # noqa: FBT001 (a column)
    assert moves_files(words) is expected
