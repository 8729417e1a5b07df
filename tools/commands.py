"""The reference page of `kubectl lablet`, made from its commands."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from tools.markdown import NOTE, table
from vkprovider.cli.lablet import group
from vkprovider.cli.lablet.giving import HandOut
from vkprovider.cli.lablet.lists import ListRow
from vkprovider.cli.lablet.refresh import Refreshed
from vkprovider.cli.shared.output import API_VERSION
from vkprovider.lablet.archives import Leftovers
from vkprovider.lablet.devices import Port
from vkprovider.lablet.standings import Standing

_HEAD: Final = """\
# kubectl lablet: reference

Every command with its options, as `--help` shows them. [kubectl-lablet.md](../kubectl-lablet.md) has them by task.
"""
_DOCUMENTS: Final = f"""
## JSON and YAML

`-o json` and `-o yaml` of a command that lists print one document of one shape:

```json
{{"apiVersion": "{API_VERSION}", "kind": "LabletList", "items": [{{"kind": "Lablet", "name": "mylab-0"}}]}}
```

`-o csv` has the same fields, one row for each item. With `--watch` each change is such an item as a document of its
own, with `apiVersion`. Commands with one outcome print one document with `apiVersion` and `kind`. Fields are only ever
added, and in items none is left out. No API server knows this `apiVersion`: it is that of the output.
"""
_KINDS: Final[dict[str, tuple[str, type[msgspec.Struct]]]] = {
    "Lablet": ("of `list`", ListRow),
    "LabletHandOut": ("of `assign --from-file`", HandOut),
    "LabletPort": ("of `ports`", Port),
    "LabletConfigurations": ("of `configs`", Leftovers),
    "LabletDefinitionRefresh": ("of `refresh`", Refreshed),
}
_TYPES: Final[dict[Any, str]] = {
    str: "string",
    Standing: "string",
    bool: "boolean",
    int: "integer",
    dict[str, str]: "object",
}


def page() -> str:
    """Describe every command, and what they print for programs."""
    context = click.Context(group.main, info_name="kubectl lablet")
    parts = [NOTE.format(source="vkprovider/cli/lablet"), _HEAD]
    for name in group.main.list_commands(context):
        command = group.main.get_command(context, name)
        assert command is not None  # noqa: S101 (it was listed)
        parts.append(_section(name, command, context))
    parts.append(_DOCUMENTS)
    for kind, (where, fields) in _KINDS.items():
        parts.append(f"\n### {kind}, {where}\n\n{table([('Field', 'Type', 'What it is'), *_fields(fields)])}")
    return "".join(parts)


def _section(name: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(["kubectl lablet", name, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "")
    example = (command.epilog or "").removeprefix("Example: ")
    lines = [f"\n## {name}\n\n    {usage}\n\n{text}\n"]
    if example:
        lines.append(f"\nExample: `{example}`\n")
    rows = [_option(param, context) for param in command.params if isinstance(param, click.Option)]
    lines.append("\n" + table([("Option", "Default", "What it does"), *rows]) if rows else "")
    return "".join(lines)


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    words, text = option.get_help_record(context) or ("", "")
    text, _, default = text.partition("  [default: ")
    names = re.sub(r"\s+", " ", words)
    return f"`{names}`", f"`{default.rstrip(']')}`" if default else "", text


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each field, as the docstring of the struct has it."""
    about = dict(_attributes(struct))
    for field in msgspec.structs.fields(struct):
        optional = field.type == (int | None)
        type_ = "integer or null" if optional else _TYPES.get(field.type, "any")
        yield f"`{field.encode_name}`", type_, about[field.name]


def _attributes(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    text = inspect.cleandoc(struct.__doc__ or "").partition("Attributes:\n")[2]
    for line in re.sub(r"\n {8,}", " ", text).splitlines():
        names, _, meaning = line.strip().partition(": ")
        for name in names.split(", "):
            yield name, meaning
