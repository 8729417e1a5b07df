"""How the product is cut into modules: their sizes, their imports, their names, and the folders of each program.

`tools.figures` prints it; with `--list` it names each place.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tools.sources import Module

SHORT_LINES: Final = 40
"""A module with fewer lines is short."""
_LISTED: Final = 10

PROGRAMS: Final = {
    "provider": frozenset({"provider", "lab", "lablet", "worker", "claim", "definition", "console"}),
    "mux": frozenset({"mux", "muxes"}),
    "portal": frozenset({"portal", "userlab"}),
    "relay": frozenset({"relay"}),
    "agent": frozenset({"agent"}),
}
"""Program: names of folders and modules that are its own, with or without a final s."""


class Function(NamedTuple):
    """A function or method."""

    lines: int
    place: str


def short_modules(modules: list[Module]) -> list[str]:
    """List the short modules that are no `__init__` or `__main__`, with their lines."""
    named = [module for module in modules if not module.path.endswith(("/__init__.py", "/__main__.py"))]
    return [f"{module.path}: {module.lines}" for module in named if module.lines < SHORT_LINES]


def import_lines(module: Module) -> int:
    """Count the lines of import statements, nested ones included."""
    statements = (node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return len({line for node in statements for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)})


def doubled_classes(modules: list[Module]) -> list[str]:
    """List the names of public classes that several modules define, those of most modules first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}:
            if not name.startswith("_"):
                found[name].append(module.path)
    doubled = sorted((-len(paths), name, paths) for name, paths in found.items() if len(paths) > 1)
    return [f"{name}: {', '.join(paths)}" for _, name, paths in doubled]


def longest_functions(modules: list[Module]) -> list[Function]:
    """Return the longest functions, the longest first; a function that holds others counts with them."""
    return sorted((function for module in modules for function in _functions(module)), reverse=True)[:_LISTED]


def _functions(module: Module) -> Iterator[Function]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(lines, f"{module.path}:{node.lineno}: {node.name}: {lines}")


def folders(modules: list[Module], program: str) -> list[str]:
    """List the folders that hold something of a program.

    Of the folders in a module's path, and then the module, the first with a name of a program decides whose it is. A
    folder with such a name counts once, whatever is below; a module counts as the folder in which it stands.
    """
    return sorted({folder for module in modules for folder in _folder_of(module.path, PROGRAMS[program])})


def _folder_of(path: str, own: frozenset[str]) -> Iterator[str]:
    parts = PurePosixPath(path).with_suffix("").parts
    for depth, part in enumerate(parts[1:], 1):
        name = {part, part.removesuffix("s")}
        if any(name & names for names in PROGRAMS.values()):
            if name & own:
                yield "/".join(parts[: depth + 1] if depth < len(parts) - 1 else parts[:depth])
            return
