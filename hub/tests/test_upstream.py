"""JupyterHub's own tests of spawning, polling, stopping, forms and progress, with our spawner: see `upstream.toml`."""

import importlib
import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from _pytest.fixtures import FixtureFunctionDefinition
from jupyterhub.tests import mocking
from traitlets.config import Config

from hub.tests import variants
from hub.tests.conftest import hub_of
from hub.tests.portal import Portal

LIST: Final = tomllib.loads((Path(__file__).parent / "upstream.toml").read_text())
SUBJECTS: Final = re.compile(r"spawn|poll|stop|form|progress|server_limit|user_options")

for variant in variants.ALL:
    setattr(mocking, variant.__name__, variant)


def module_of(name: str) -> ModuleType:
    """Return a module of JupyterHub's tests, in which the spawners are ours."""
    module = importlib.import_module(f"jupyterhub.tests.{name}")
    for variant in variants.ALL:
        if hasattr(module, variant.__name__):
            setattr(module, variant.__name__, variant)
    if hasattr(module, "SimpleLocalProcessSpawner"):
        setattr(module, "SimpleLocalProcessSpawner", variants.MockSpawner)  # noqa: B010 (a module of no type)
    return module


def named_tests(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name.startswith("test_")}


for listed in LIST:
    module = module_of(listed)
    for name, value in vars(module).items():
        if name in LIST[listed]["runs"] or isinstance(value, FixtureFunctionDefinition):
            globals()[name] = value


@pytest.fixture(scope="module")
async def app(served_portal: Portal, token_file: Path) -> AsyncIterator[Any]:
    config = Config()
    config.JupyterHub.spawner_class = variants.MockSpawner
    async with hub_of(served_portal, token_file, config) as hub:
        yield hub


@pytest.fixture(autouse=True)
def quick_portal(portal: Portal) -> Portal:
    portal.step_s = portal.end_s = 0.0
    return portal


@pytest.mark.parametrize("module", LIST)
def test_the_list_is_whole(module: str) -> None:
    subjects = {name for name in named_tests(module_of(module)) if SUBJECTS.search(name)}
    runs, left_out = set(LIST[module]["runs"]), set(LIST[module].get("left_out", {}))
    assert subjects <= runs | left_out
    assert not runs & left_out
    assert runs | left_out <= set(named_tests(module_of(module)))
