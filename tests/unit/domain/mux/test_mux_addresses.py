"""Addresses that are no backends unless a Pod vouches for them."""

import pytest

from vkprovider.domain.mux.addresses import Reserved, canonical, suspicion

RESERVED = Reserved(frozenset({"198.51.100.7", "2001:db8::7"}), frozenset({"192.0.2.1"}))


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
