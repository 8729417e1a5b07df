"""The file of prompts."""

from pathlib import Path

import pytest

from vkprovider.labs.pure.console.manners import KINDS
from vkprovider.labs.wiring.base import manners
from vkprovider.platform.errors import InputError


def test_a_file_adds_prompts(tmp_path: Path) -> None:
    (tmp_path / "prompts.yaml").write_text("acme-os: linux\n")
    assert manners(str(tmp_path / "prompts.yaml")).of("acme-os") == KINDS["linux"]
    assert manners(None).of("acme-os") is None


@pytest.mark.parametrize("text", [None, "{", "acme-os: dos"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "prompts.yaml").write_text(text)
    with pytest.raises(InputError, match="VKPROVIDER_CONSOLE_PROMPTS"):
        manners(str(tmp_path / "prompts.yaml"))
