"""Browsers for the views of the site."""

from collections.abc import Iterator

import pytest

from tests.support.page import kept_browsers


@pytest.fixture(scope="module", autouse=True)
def browsers() -> Iterator[None]:
    """One browser for each visitor that a module has at a time."""
    with kept_browsers():
        yield
