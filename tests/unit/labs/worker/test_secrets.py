"""What a Secret may be used for."""

import pytest

from vkprovider.labs.pure.worker.secrets import (
    credentials_of,
    device_secret_refusal,
    host_of,
    move_command,
    worker_secret_refusal,
)
from vkprovider.platform.errors import shorten
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Metadata, Secret
from vkprovider.platform.shipped import find_manifests

NS = "vkprovider-system"
URL = "https://cml-1.example.com"


def secret(used_for: str = "", host: str = "") -> Metadata:
    labels = {"vkprovider.io/used-for": used_for} if used_for else {}
    return Metadata("cml-1", labels=labels, annotations={"vkprovider.io/host": host} if host else {})


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("cml-1.example.com", URL),
        ("cml-1.example.com", "https://CML-1.example.com:443/"),
        ("CML-1.Example.com:443", URL),
        ("other, cml-1.example.com ,", URL),
        ("cml-1.example.com:8443", "https://cml-1.example.com:8443"),
        ("[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://cml-1.example.com/", URL),
        ("http://cml-1.example.com", "http://cml-1.example.com:80"),
    ],
)
def test_password_may_go_to_the_hosts_that_the_secret_names(host: str, url: str) -> None:
    assert worker_secret_refusal(secret("worker", host), NS, url) == ""


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", URL),
        ("cml-1.example.com", "https://evil.example.com"),
        ("cml-1.example.com", "https://cml-1.example.com.evil.example"),
        ("cml-1.example.com", "https://evil.example#cml-1.example.com"),
        ("cml-1.example.com", "https://cml-1.example.com@evil.example"),
        ("cml-1.example.com", "https://cml-1.example.com:8443"),
        ("cml-1.example.com", "http://cml-1.example.com"),
        ("cml-1.example.com", "http://cml-1.example.com:443"),
        ("http://cml-1.example.com", URL),
        ("*", URL),
        (",", URL),
        ("https://[", "https://["),
        ("cml-1.example.com:x", "https://cml-1.example.com:x"),
        ("null://w", "null://w"),
    ],
)
def test_password_goes_to_no_other_host_port_or_scheme(host: str, url: str) -> None:
    assert worker_secret_refusal(secret("worker", host), NS, url)


@pytest.mark.parametrize("used_for", ["", "Worker", "workers", "worker,devices"])
def test_commands_of_the_message_allow_what_it_refuses(used_for: str) -> None:
    message = worker_secret_refusal(secret(used_for, "old.example.com"), NS, URL)
    commands = message.partition("If it may: ")[2].split(" && ")
    assert [command.split()[:6] for command in commands] == [
        ["kubectl", "-n", NS, verb, "--overwrite", "secret"] for verb in ("label", "annotate")
    ]
    (label, annotation) = (command.split()[-1].partition("=") for command in commands)
    mended = Metadata("cml-1", labels={label[0]: label[2]}, annotations={annotation[0]: annotation[2]})
    assert worker_secret_refusal(mended, NS, URL) == ""
    assert worker_secret_refusal(mended, NS, "https://old.example.com") == ""


def test_secret_of_devices_is_no_workers_and_the_message_does_not_say_how_to_make_it_one() -> None:
    message = worker_secret_refusal(secret("devices", "cml-1.example.com"), NS, URL)
    assert "is for devices" in message
    assert "kubectl" not in message


@pytest.mark.parametrize("is_workers", [False, True])
def test_secret_of_a_worker_is_never_a_devices(is_workers: bool) -> None:  # noqa: FBT001 (a row of the table)
    for used_for in ("worker", "devices", ""):
        refusal = device_secret_refusal(secret(used_for), NS, is_workers=is_workers)
        assert (refusal == "") is (used_for == "devices" and not is_workers)
        assert ("kubectl" in refusal) is (used_for == "" and not is_workers)


def test_host_is_written_as_kubectl_and_a_shell_take_it() -> None:
    assert host_of("https://cml-1.example.com:443/") == "cml-1.example.com"
    assert host_of("http://127.0.0.11:8080") == "http://127.0.0.11:8080"
    assert host_of("ftp://x") == host_of("https://") == ""


@pytest.mark.parametrize(
    ("data", "reason", "text"),
    [
        ({"username": b"admin", "password": b"p w"}, "", ""),
        ({"username": b"admin"}, "CredentialsInvalid", "lacks the key password"),
        ({"username": b"", "password": b""}, "CredentialsInvalid", "lacks the key username and password"),
        ({"username": b"admin", "password": b"\xff"}, "CredentialsInvalid", "username or password is not text"),
        (
            {"username": b"admin\n", "password": b"p"},
            "CredentialsInvalid",
            "username ends with a line break; use `echo",
        ),
        ({"username": b"admin", "password": b"p\r\n"}, "CredentialsInvalid", "password ends with a line break; use"),
    ],
)
def test_credentials_of_a_secret(data: dict[str, bytes], reason: str, text: str) -> None:
    """The provider and the doctor say the same of it, and never what it holds."""
    found = credentials_of(Secret(secret("worker", "cml-1.example.com"), data), NS, URL)
    if not reason:
        assert found == ("admin", "p w")
        return
    assert isinstance(found, Fault)
    assert found.reason == reason
    assert text in found.message
    away = credentials_of(Secret(secret("worker", "elsewhere.example.com"), data), NS, URL)
    assert isinstance(away, Fault)
    assert away.reason == "SecretNotAllowed"


def test_the_command_that_moves_logins_outlives_the_message_that_tells_it() -> None:
    """Where its blanks become one, sed would change no namespace, and what is deleted then is all that there is."""
    command = move_command(NS, f"{NS}-logins")
    assert shorten(f"it does not exist: {command}", 1000).endswith(f": {command}")
    assert f"kubectl -n {NS}-logins apply" in command, "which takes nothing of another namespace"
    assert command in (find_manifests().parent / "docs" / "upgrade.md").read_text(encoding="utf-8")
