"""The tables that an admin may give in files: node definitions, and how devices talk at their consoles."""

from pathlib import Path

import yaml

from vkprovider.labs.pure.console.manners import Manners, read_manners
from vkprovider.labs.pure.topology.resources import SHIPPED, NodeDefinition
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason


def node_definitions(path: str | None) -> dict[str, NodeDefinition]:
    """Return the shipped node definitions and those of a YAML file.

    Raises:
        InputError: `SettingInvalid`: the file is missing or wrong.
    """
    if path is None:
        return dict(SHIPPED)
    try:
        table = yaml.safe_load(Path(path).read_text("utf-8")) or {}
        return dict(SHIPPED) | {
            str(name): NodeDefinition(int(row["cpus"]), int(row["ram"]), bool(row.get("licensed", True)))
            for name, row in table.items()
        }
    except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError) as error:
        text = f"VKPROVIDER_NODE_DEFINITIONS {path}: {error!r}; expected name: {{cpus, ram}}"
        raise InputError(StartReason.SETTING_INVALID, text) from None


def manners(path: str | None) -> Manners:
    """Return how devices talk at their consoles, with those of a YAML file.

    Raises:
        InputError: `SettingInvalid`: the file is missing or wrong.
    """
    if path is None:
        return Manners()
    try:
        return read_manners(yaml.safe_load(Path(path).read_text("utf-8")) or {})
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_CONSOLE_PROMPTS {path}: {error}") from None
