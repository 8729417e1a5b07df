"""Where `kubectl lablet login` sends a token, and where it does not."""

import click
import pytest

from vkprovider.cli.shared.page.asking import safe


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
