"""When the port for ssh is there, and what its settings refuse; whom a connection is counted for."""

import re
import socket
import subprocess
import sys

import pytest
from pydantic import ValidationError

from vkprovider.platform.errors import InputError
from vkprovider.portal.settings import PortalProcessSettings
from vkprovider.portal.ssh import server
from vkprovider.portal.web.links import sender_of

PORT = {"VKPROVIDER_PORTAL_SSH_PORT": "2022"}
KEY = {"VKPROVIDER_PORTAL_SSH_HOST_KEY": "-----BEGIN OPENSSH PRIVATE KEY-----"}
INGRESS = {"VKPROVIDER_PORTAL_CALLERS": "headers", "VKPROVIDER_PORTAL_INGRESS_SECRET": "0123456789abcdef"}


@pytest.mark.parametrize("env", [PORT, {**PORT, **KEY, **INGRESS}])
def test_a_port_needs_a_key_and_links(env: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="VKPROVIDER_PORTAL_SSH_HOST_KEY"):
        PortalProcessSettings.from_environment(env)


def test_it_is_off_by_default_and_takes_both() -> None:
    assert PortalProcessSettings.from_environment({}).portal.ssh_port == 0
    assert PortalProcessSettings.from_environment({**PORT, **KEY}).portal.ssh_port == 2022


def test_a_port_that_is_taken_is_a_setting_that_cannot_be_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        told = f"ssh cannot listen on 127.0.0.1:{port}: Address already in use; set VKPROVIDER_PORTAL_SSH_PORT"
        with pytest.raises(InputError, match=re.escape(told)):
            server._listening("127.0.0.1", port)


def test_a_portal_without_it_loads_no_ssh() -> None:
    program = "import sys, vkprovider.portal.process; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603 (of this test)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_sender_is_an_address_or_a_network(address: str, source: str) -> None:
    assert sender_of(address) == source
