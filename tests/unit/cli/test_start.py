"""Help and completion of commands and options import nothing that only the work of a command needs."""

import importlib
import inspect
import json
import subprocess
import sys
from typing import Any

import click
import pytest

from vkprovider.cli.lablet import group
from vkprovider.cli.lablet.group import COMMANDS

HEAVY = (
    "aiohttp",
    "asyncio",
    "kubernetes_asyncio",
    "msgspec",
    "pydantic",
    "structlog",
    "vkprovider.platform.kube",
    "yaml",
)
SHOWN = [name for name, (_, text) in COMMANDS.items() if text]


@pytest.mark.parametrize(
    "call",
    [
        "from vkprovider.cli.lablet import main; main(['--help'], standalone_mode=False)",
        "from vkprovider.cli.lablet.completion import candidates_of; candidates_of(['re'])",
        "from vkprovider.cli.main import COMMANDS, main; main(['--version'], standalone_mode=False)",
        *(
            f"from vkprovider.cli.lablet import main; main([{name!r}, '--help'], standalone_mode=False)"
            for name in SHOWN
        ),
        *(
            f"from vkprovider.cli.lablet.completion import candidates_of; candidates_of(['{name}', '--'])"
            for name in SHOWN
        ),
    ],
)
def test_start_is_light(call: str) -> None:
    script = f"import json, sys\n{call}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    loaded = set(json.loads(result.stderr.splitlines()[-1]))
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))
    assert "click" in loaded


def passed(command: click.Command) -> set[str]:
    """Return what the shared options make of a command's parameters."""
    names = {param.name or "" for param in command.params}
    if "kubeconfig" in names:
        names = names - {"kubeconfig", "context", "namespace"} | {"place"}
    if "service_account" in names:
        names = names - {"url", "token", "service_account", "cacert"} | {"page"}
    if "all_namespaces" in names:
        names = names - {"all_namespaces", "selector", "field_selector", "place"} | {"scope"}
    if "pods" in names:
        names = names - {"pods", "learners", "selector", "every", "place"} | {"chosen"}
    return names


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_command_runs_takes_its_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module is found by name, when it runs."""
    command = group.main.get_command(click.Context(group.main), name)
    assert command is not None
    if command.callback is not None and command.callback.__module__.endswith("completion"):
        return  # it needs nothing else
    ran: list[Any] = []
    imported = importlib.import_module

    def load(module: str, package: str | None = None) -> Any:
        if not module.startswith("vkprovider.cli."):
            return imported(module, package)  # of a library that is being imported

        class Module:
            def __getattr__(self, function: str) -> Any:
                def run(**options: Any) -> None:
                    real = getattr(sys.modules[module], function)
                    inspect.signature(real).bind(**options)
                    ran.append((real, options))

                return run

        __import__(module)
        return Module()

    monkeypatch.setattr("vkprovider.cli.shared.lazy.importlib.import_module", load)
    values = {"local": "1", "url": "https://a", "act": "stop"}
    words = [values.get(param.name or "", "a") for param in command.params if isinstance(param, click.Argument)]
    if any(param.name == "url" for param in command.params):
        words += ["--url", "https://a"]
    command.main(words, standalone_mode=False)
    ((real, options),) = ran
    assert set(options) == passed(command) == set(inspect.signature(real).parameters)
