"""Where `kubectl lablet login` sends a token, and where it does not."""

import click
import pytest

from vkprovider.cli.shared.page.address import Binding, BindingRole, anchored, is_verified, safe
from vkprovider.platform.objects import Metadata


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8082/", "http://127.0.0.1:8082"),
        ("http://localhost:8082", "http://localhost:8082"),
        ("http://[::1]:8082", "http://[::1]:8082"),
        ("https://vkprovider.example.com/page", "https://vkprovider.example.com/page"),
    ],
)
def test_url_that_a_token_may_be_sent_to(url: str, base: str) -> None:
    assert safe(url) == base


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://vkprovider.example.com", "would send the token in plain text"),
        ("http://127.0.0.1.example.com", "would send the token in plain text"),
        ("ftp://127.0.0.1", "is not a URL"),
        ("vkprovider", "is not a URL"),
        ("https://", "is not a URL"),
    ],
)
def test_token_is_not_sent_where_anybody_could_read_it(url: str, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        safe(url)


@pytest.mark.parametrize(
    ("url", "given", "verified"),
    [
        ("https://127.0.0.1:8082", True, False),
        ("https://127.0.0.1:8082", False, True),
        ("https://localhost", False, True),
        ("https://labs.example.com", True, True),
        ("https://labs.example.com", False, True),
    ],
)
def test_a_certificate_is_verified_but_at_the_user_s_own_port_forward(url: str, *, given: bool, verified: bool) -> None:
    assert is_verified(url, given=given) is verified


@pytest.mark.parametrize(
    ("kind", "role", "url"),
    [
        ("ClusterRole", "vkprovider-instructor", "https://labs.example.com"),
        ("ClusterRole", "view", ""),
        ("Role", "vkprovider-instructor", ""),
    ],
)
def test_an_address_counts_where_only_who_may_give_the_role_writes_it(kind: str, role: str, url: str) -> None:
    notes = {"vkprovider.io/page-url": "https://labs.example.com"}
    assert anchored(Binding(Metadata("vkprovider-instructor", annotations=notes), BindingRole(kind, role))) == url
    assert anchored(None) == ""
