from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged; printing tracebacks would take real time within virtual time."""
    with structlog.testing.capture_logs() as entries:
        yield entries
