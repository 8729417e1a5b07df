"""Secrets in the LDS's shapes never show; the rest does."""

import pytest

from vkprovider.labs.lds.wire import LabSessionInfo
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.rest.dialect import without_secrets


def test_device_does_not_show_its_password() -> None:
    device = DeviceAccessInfo("pc", "vnc", "10.0.1.50", 10012, "vnc://10.0.1.50:10012", "cisco", "geheim")
    assert "geheim" not in repr(device) + str([device])


def test_session_does_not_show_its_login_url() -> None:
    session = LabSessionInfo("s", "ann", "PENDING", (), login_url="https://u:pw@lds/login/s?token=geheim#geheim")
    assert "geheim" not in repr(session)
    assert session.public_login_url == "https://lds/login/s"
    assert LabSessionInfo("s", "ann", "ARCHIVED", ()).public_login_url is None


@pytest.mark.parametrize(
    ("url", "public"),
    [
        (
            "https://lds.example.com:8443/api/v1/login_page/s-1?token=geheim",
            "https://lds.example.com:8443/api/v1/login_page/s-1",
        ),
        ("https://lds.example.com/login/eyJhbGciOi", "https://lds.example.com"),
        ("https://lds.example.com/login/0123456789abcdef", "https://lds.example.com"),
        ("https://lds.example.com/login/s-2", "https://lds.example.com"),
        ("https://lds.example.com/login;geheim", "https://lds.example.com"),
        ("https://lds.example.com/%67eheim", "https://lds.example.com"),
        ("https://lds.example.com/thisisaverylongtokenofletters", "https://lds.example.com"),
        ("https://u:geheim@lds.example.com/", "https://lds.example.com/"),
        ("data:text/plain,geheim", ""),
        ("geheim", ""),
    ],
)
def test_a_token_in_the_path_is_not_published(url: str, public: str) -> None:
    """Only words, versions and the session's own id are known not to be a token."""
    assert LabSessionInfo("s-1", "ann", "PENDING", (), login_url=url).public_login_url == public


@pytest.mark.parametrize(
    ("state", "finished", "archived"),
    [
        ("EMPTY", False, False),
        ("PENDING", False, False),
        ("PRELAUNCH", False, False),
        ("RUNNING", False, False),
        ("PAUSED", False, False),
        ("USER_FINISHED", True, False),
        ("ARCHIVED", True, True),
        ("A_NEW_ONE", False, False),
    ],
)
def test_states(state: str, *, finished: bool, archived: bool) -> None:
    """R000-089."""
    session = LabSessionInfo("s", "ann", state, ())
    assert (session.finished, session.archived) == (finished, archived)


def test_without_secrets_keeps_ports_and_paths() -> None:
    assert without_secrets("http://[::1]:8081/a/b?c=d") == "http://[::1]:8081/a/b"
