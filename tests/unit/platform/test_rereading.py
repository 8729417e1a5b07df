"""Files that are replaced while the program runs: a new password counts, an unusable file does not."""

from pathlib import Path

import pytest
import structlog

from vkprovider.carriers.broker import broker_of, read_line
from vkprovider.carriers.settings import HttpTunnelSettings, MqttSettings
from vkprovider.labs.wiring.tunnels import agent_tokens
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread


def replace(path: Path, text: str) -> None:
    """Put a new file in the place of another, as Kubernetes does with a mounted Secret."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_a_replaced_file_is_read_again_and_an_untouched_one_is_not(tmp_path: Path) -> None:
    path, reads = tmp_path / "word", []
    path.write_text("one\n")

    def read() -> str:
        reads.append(1)
        return read_line(str(path), None)

    word = Reread([None, str(path)], read)
    assert [word.current() for _ in range(5)] == ["one"] * 5
    assert len(reads) == 1
    replace(path, "two")
    assert [word.current() for _ in range(5)] == ["two"] * 5
    assert len(reads) == 2


@pytest.mark.parametrize("spoiled", [None, "", "two\nlines"])
def test_a_file_that_becomes_unusable_changes_nothing_and_is_logged_once(tmp_path: Path, spoiled: str | None) -> None:
    path = tmp_path / "word"
    path.write_text("one")
    word = Reread([str(path)], lambda: read_line(str(path), None))
    if spoiled is None:
        path.unlink()
    else:
        replace(path, spoiled)
    with structlog.testing.capture_logs() as logs:
        assert [word.current() for _ in range(3)] == ["one"] * 3
    assert [line["log_level"] for line in logs] == ["warning"]
    replace(path, "two")
    assert word.current() == "two"


def test_a_file_that_could_not_be_read_for_a_while_is_read_when_it_can_be(tmp_path: Path) -> None:
    """Also if nothing of the file has changed: an admin gave the right to read it, or the process had too many open."""
    path, may = tmp_path / "word", [True]
    path.write_text("one")

    def read() -> str:
        if not may[0]:
            raise PermissionError(13, "Permission denied")
        return path.read_text()

    word = Reread([str(path)], read)
    may[0] = False
    replace(path, "two")
    with structlog.testing.capture_logs() as logs:
        assert [word.current() for _ in range(3)] == ["one"] * 3
    assert [line["log_level"] for line in logs] == ["warning"]
    may[0] = True
    assert word.current() == "two"


def test_a_file_that_cannot_be_used_at_the_start_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(InputError, match=str(path)):
        Reread([str(path)], lambda: read_line(str(path), None))


def test_something_else_counts_until_there_is_a_file_and_never_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    paths = [str(first), str(second)]
    words = Reread(paths, lambda: [read_line(path, None) for path in paths], before=lambda: ["of", "our own"])
    assert words.current() == ["of", "our own"]
    first.write_text("one")
    assert words.current() == ["of", "our own"], "one of two files cannot be used"
    second.write_text("two")
    assert words.current() == ["one", "two"]
    first.unlink()
    second.unlink()
    assert words.current() == ["one", "two"]
    first.write_text("one")
    with pytest.raises(InputError, match="second"):
        Reread(paths, lambda: [read_line(path, None) for path in paths], before=lambda: ["of", "our own"])


def test_what_a_reader_says_of_a_file_is_said(tmp_path: Path) -> None:
    def read() -> str:
        raise InputError(StartReason.SETTING_INVALID, "VKPROVIDER_X /x: why")

    with pytest.raises(InputError, match=r"^SettingInvalid: VKPROVIDER_X /x: why$"):
        Reread([str(tmp_path / "x")], read)


def test_the_login_at_a_broker_is_what_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("first one\n")
    url = "mqtts://broker"
    broker = broker_of(MqttSettings.model_validate({"url": url, "username": "cml-7", "password_file": str(path)}))
    assert broker.login() == ("cml-7", "first one")
    replace(path, "second\n")
    assert broker.login() == ("cml-7", "second")
    given = broker_of(MqttSettings.model_validate({"url": url, "username": "cml-7", "password": "of the environment"}))
    assert given.login() == ("cml-7", "of the environment")


def test_tokens_of_a_file_come_beside_those_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("cml-7:0123456789abcdef\n")
    settings = HttpTunnelSettings.model_validate({"tokens": "cml-8:fedcba9876543210", "tokens_file": str(path)})
    tokens = agent_tokens(settings)
    assert tokens() == [("cml-8", "fedcba9876543210"), ("cml-7", "0123456789abcdef")]
    replace(path, "cml-7:too-short")
    assert tokens()[1:] == [("cml-7", "0123456789abcdef")]
    replace(path, "")
    assert tokens()[1:] == []
    assert HttpTunnelSettings.model_validate({"tokens_file": str(path)}).is_on
