"""Each contract of `pyproject.toml` is broken by each import that its sentence forbids, one at a time."""

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, Final

import grimp
import pytest
from importlinter import configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract

_KINDS: Final[dict[str, Any]] = {
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "independence": IndependenceContract,
}
_SETTINGS: Final = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["importlinter"]
_CONTRACTS: Final[list[dict[str, Any]]] = _SETTINGS["contracts"]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    configuration.configure()
    return grimp.build_graph(*_SETTINGS["root_packages"], include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("contract", _CONTRACTS, ids=lambda contract: contract["name"])
def test_each_import_that_a_contract_forbids_breaks_it(contract: dict[str, Any], graph: grimp.ImportGraph) -> None:
    options = {
        key: str(value) if isinstance(value, bool) else value  # as the reader of the file gives them
        for key, value in contract.items()
        if key not in {"name", "type"}
    }

    def kept(of: grimp.ImportGraph) -> bool:
        session = {"root_packages": _SETTINGS["root_packages"], "include_external_packages": "True"}
        checked = _KINDS[contract["type"]](contract["name"], session, deepcopy(options)).check(of, verbose=False)
        return bool(checked.kept)

    assert kept(graph)
    tried = 0
    for importer, imported in examples(contract, graph):
        broken = deepcopy(graph)
        broken.add_import(importer=importer, imported=imported)
        assert not kept(broken), f"{importer} may import {imported}"
        tried += 1
    assert tried


def examples(contract: dict[str, Any], graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    """Yield importer and imported module of imports that a contract forbids."""
    match contract["type"]:
        case "forbidden":
            sources, forbidden = contract["source_modules"], contract["forbidden_modules"]
            yield from ((source, forbidden[0]) for source in sources)
            yield from ((sources[0], module) for module in forbidden[1:] if module in graph.modules)
        case "independence":
            yield from permutations((name for name in contract["modules"] if "*" not in name), 2)
            for package in (name.removesuffix(".*") for name in contract["modules"] if name.endswith(".*")):
                yield from permutations(sorted(graph.find_children(package)), 2)
        case "layers":
            for container in contract.get("containers", [""]):
                layers = [
                    [f"{container}.{name.strip()}".removeprefix(".") for name in layer.split("|")]
                    for layer in contract["layers"]
                ]
                yield from ((lower[0], higher[0]) for higher, lower in pairwise(layers))
                yield from (pair for beside in layers for pair in permutations(beside, 2))
        case kind:
            raise AssertionError(f"no example of a contract of the type {kind}")
