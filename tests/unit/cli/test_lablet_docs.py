"""What the pages and messages say of `kubectl lablet` exists: each command, and each of its options."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.docs import ROOT
from vkprovider.cli.lablet import group
from vkprovider.cli.lablet.group import COMMANDS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "manifests").rglob("*.yaml"))]
CALL = re.compile(r"kubectl lablet ([a-z][a-z_]*(?:-[a-z]+)?)((?: +[^\s`|,;)#]+)*)")
CONTEXT = click.Context(group.main, info_name="kubectl lablet")


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """Find commands and what follows them."""
    text = path.read_text(encoding="utf-8")
    for match in CALL.finditer(text):
        yield match[1], match[2]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_of_pages_exist(path: Path) -> None:
    for name, rest in calls(path):
        assert COMMANDS.get(name, ("", ""))[1], f"kubectl lablet {name}"
        command = group.main.get_command(CONTEXT, name)
        assert command is not None
        known = {word for param in command.params for word in (*param.opts, *param.secondary_opts)} | {"--help"}
        used = {word.partition("=")[0] for word in rest.split() if re.fullmatch(r"--[a-z-]+(=.*)?", word)}
        assert used <= known, f"kubectl lablet {name} {used - known}"


def test_task_page_has_every_command() -> None:
    shown = {name for name, (_, text) in COMMANDS.items() if text}
    assert {name for name, _ in calls(ROOT / "docs" / "kubectl-lablet.md")} >= shown


def test_messages_name_commands_that_exist() -> None:
    for path in sorted((ROOT / "vkprovider").rglob("*.py")):
        for match in re.finditer(r"kubectl lablet ([a-z]+(?:-[a-z]+)?)\b", path.read_text(encoding="utf-8")):
            assert match[1] in COMMANDS, f"{path}: {match[0]}"
