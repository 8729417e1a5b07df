"""The docstring of each package names every module and package in it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.parent.relative_to(ROOT)
    for top in ("vkprovider", "tunnels", "bench", "tools", "vkpsim", "vkpsandbox", "hub")
    for path in ROOT.glob(f"{top}/**/__init__.py")
)


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_charter_names_every_module(package: Path) -> None:
    folder = ROOT / package
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    charter = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    unnamed = {name for name in modules | packages if not re.search(rf"`(\w+\.)*{name}\b", charter)}
    assert not unnamed, f"name them in {package}/__init__.py"


def test_contributing_names_every_package_of_the_product() -> None:
    """Its table is where a newcomer looks a package up."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things live")[2].partition("## Glossary")[0]
    packages = {f"vkprovider/{path.parent.name}" for path in ROOT.glob("vkprovider/*/__init__.py")}
    assert {package for package in packages if f"`{package}`" not in table} == set()
