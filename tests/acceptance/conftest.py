"""What tests of a release share: a home for the sandbox of a demo."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from vkpsandbox import Sandbox


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home for a demo's sandbox; whatever a failed test left there is ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    for directory in (tmp_path / "vkprovider" / "sandboxes").glob("*"):
        Sandbox.remove(directory=directory)
