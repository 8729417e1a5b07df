"""Addresses that are no backends unless a Pod vouches for them."""

from ipaddress import ip_network

import pytest

from vkprovider.mux.pure.endpoints import Reserved, canonical, suspicion
from vkprovider.mux.settings import MuxSettings

METADATA = MuxSettings().refused_networks
RESERVED = Reserved(
    frozenset({"198.51.100.7", "2001:db8::7"}),
    frozenset({"192.0.2.1"}),
    frozenset({"10.96.0.1", "fd00:10:96::1"}),
    (*METADATA, ip_network("172.31.0.0/30")),
)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("10.1.0.1", ""),
        ("2001:db8::1", ""),
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("0.0.0.0", "no address of one machine"),  # noqa: S104 (what is refused)
        ("224.0.0.1", "no address of one machine"),
        ("198.51.100.7", "CML worker"),
        ("::ffff:198.51.100.7", "CML worker"),
        ("2001:DB8:0::7", "CML worker"),
        ("192.0.2.1", "API server"),
        ("10.96.0.1", "address of a Service"),
        ("::ffff:10.96.0.1", "address of a Service"),
        ("FD00:10:96:0::1", "address of a Service"),
        ("10.96.0.2", ""),
        ("168.63.129.16", "VKPROVIDER_MUX_REFUSED_ADDRESSES"),
        ("100.100.100.200", "VKPROVIDER_MUX_REFUSED_ADDRESSES"),
        ("100.100.100.201", ""),
        ("fd00:ec2::254", "VKPROVIDER_MUX_REFUSED_ADDRESSES"),
        ("172.31.0.3", "VKPROVIDER_MUX_REFUSED_ADDRESSES"),
        ("172.31.0.4", ""),
        ("255.255.255.255", "no address of one machine"),
        ("240.0.0.1", "no address of one machine"),
        ("64:ff9b::a9fe:a9fe", "stands for an IPv4 address"),
        ("64:ff9b::10.1.0.1", "stands for an IPv4 address"),
        ("64:ff9b:1:2:3::a9fe:a9fe", "stands for an IPv4 address"),
        ("64:ff9b:2::1", ""),
        ("::169.254.169.254", "stands for an IPv4 address"),
        ("::ffff:0:169.254.169.254", "stands for an IPv4 address"),
        ("2002:a9fe:a9fe::1", "stands for an IPv4 address"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "stands for an IPv4 address"),
        ("fd00::5efe:a9fe:a9fe", "stands for an IPv4 address"),
        ("fd00::200:5efe:a9fe:a9fe", "stands for an IPv4 address"),
        ("worker.example.com", "no IP address"),
        ("", "no IP address"),
    ],
)
def test_suspicion(address: str, what: str) -> None:
    found = suspicion(address, RESERVED)
    assert what in found
    assert bool(found) == bool(what)


def test_one_address_has_one_spelling() -> None:
    assert canonical("2001:DB8:0:0::7") == "2001:db8::7"
    assert canonical("a name") == "a name"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "metadata.google.internal", "10.0.0.0/33"])
def test_what_is_no_address_is_refused_as_a_setting(text: str) -> None:
    with pytest.raises(ValueError, match="is no address and no network"):
        MuxSettings.model_validate({"VKPROVIDER_MUX_REFUSED_ADDRESSES": text})
