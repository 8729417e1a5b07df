"""Figures of the code's structure: `python -m tools.figures [REVISION] [--list]`.

It reads the working tree, or any revision of git, as `sources` does. `--list` also prints the places that a figure
counts.
"""

import argparse
import ast
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tools import language, rooms
from tools.sources import Module, read_tree

_CLAIM: Final = "vkprovider/labs/pure/claims/claim.py"
_KNOW_CLAIMS: Final = ("vkprovider/labs/pure/claims/", "vkprovider/labs/pure/lablet/", "vkprovider/labs/controllers/")
LINES_MAX: Final = 300
"""The most lines that a module should have."""

NOT_REASONS: Final = frozenset({"Ready", "Failed"})
"""Words of reasons that Kubernetes has for types of conditions and phases of Pods; as those they are no reasons."""


@dataclass(frozen=True)
class Figure:
    """One figure: its value, what it counts, and the places counted."""

    name: str
    value: float
    definition: str
    places: list[str] = field(default_factory=list)
    unit: str = ""

    @property
    def shown(self) -> str:
        """Return the value as people read it."""
        return f"{self.value:,}{self.unit}"


def figures(modules: list[Module]) -> list[Figure]:
    """Compute every figure."""
    product = _of(modules, "product")
    controllers = [module for module in product if module.path.startswith("vkprovider/labs/controllers/")]
    long = [f"{module.path}: {module.lines}" for module in product if module.lines > LINES_MAX]
    writers = memory_writers(product)
    callbacks = callback_attributes(product)
    late = late_assignments(product, set(callbacks))
    silent = [place for places in callbacks.values() for place, does_nothing in places if does_nothing]
    urls = url_strings(controllers)
    words = reason_strings(product)
    return [
        Figure("lines of the product", _lines(product), "vkprovider and tunnels, *.py, empty lines included"),
        Figure("lines of vkpsim", _lines(_of(modules, "vkpsim")), "the simulators"),
        Figure("lines of vkpsandbox", _lines(_of(modules, "vkpsandbox")), "control plane, demo"),
        Figure("lines of tools", _lines(_of(modules, "tools")), "generators, and this program"),
        *_rooms(product),
        Figure(f"modules > {LINES_MAX} lines", len(long), "of the product", long),
        Figure(
            "modules that write a lablet's memory",
            len(writers),
            "they assign an attribute of it, or make a changed copy of it",
            writers,
        ),
        Figure(
            "changes of a claim outside its class",
            len(changes := claim_changes(product)),
            "copies with changed fields: `replace(claim, lab_id=…)`; a claim changes by its verbs",
            changes,
        ),
        Figure(
            "attributes assigned after construction",
            len(late),
            "`other.callback = function`, where the class of `other` declares `callback` with a default",
            late,
        ),
        Figure(
            "callbacks that do nothing by default",
            len(silent),
            "`self.callback: Callable[…] = lambda …: None`",
            silent,
        ),
        Figure(
            "raw URL strings in controllers",
            len(urls),
            "strings with `/api`, strings that begin with `/`, and f-strings that extend such a path",
            urls,
        ),
        Figure(
            "reasons written as strings",
            len(words),
            f"strings that equal the word of a reason outside of its enum, without {', '.join(sorted(NOT_REASONS))}",
            words,
        ),
        *(
            Figure(name, len(places := list(_places(modules, rule))), definition, places)
            for name, (rule, definition) in language.RULES.items()
        ),
    ]


def _rooms(product: list[Module]) -> Iterator[Figure]:
    """Yield how the product is cut into modules."""
    short, doubled = rooms.short_modules(product), rooms.doubled_classes(product)
    longest = rooms.longest_functions(product)
    imports = 100 * sum(map(rooms.import_lines, product)) / _lines(product)
    yield Figure("modules", len(product), "of the product, each `__init__` included")
    yield Figure("median lines of a module", statistics.median_low([module.lines for module in product]), "of these")
    yield Figure("lines of the longest module", max(module.lines for module in product), "of these")
    yield Figure(f"modules < {rooms.SHORT_LINES} lines", len(short), "of these, without `__init__`", short)
    yield Figure("imports", round(imports, 1), "lines of import statements, of all lines of the product", unit=" %")
    yield Figure("doubled names of classes", len(doubled), "public ones that several modules define", doubled)
    yield Figure("lines of the longest function", longest[0].lines, "from `def` on", [each.place for each in longest])
    for program, names in rooms.PROGRAMS.items():
        found = rooms.folders(product, program)
        called = ", ".join(sorted(names))
        yield Figure(f"folders of the {program}", len(found), f"they, or a module in them, are called {called}", found)


def _places(modules: list[Module], rule: Callable[[ast.Module, str], list[tuple[int, str]]]) -> Iterator[str]:
    for module in modules:
        yield from (f"{module.path}:{line}: {text}" for line, text in rule(module.tree, module.text))


def _of(modules: list[Module], package: str) -> list[Module]:
    return [module for module in modules if module.package == package]


def memory_writers(modules: list[Module]) -> list[str]:
    """List the modules that change what a replica remembers of a lablet, with the number of changes."""
    fields = _memory_fields(modules)
    found = []
    for module in modules:
        changes = [node for node in ast.walk(module.tree) if fields & set(_written_by(node))]
        if changes:
            found.append(f"{module.path}: {len(changes)}")
    return found


def claim_changes(modules: list[Module]) -> list[str]:
    """List the calls outside `labs/pure/claims/claim.py` that make a changed copy of a claim.

    A call counts if it sets a field that only claims have, or if what it copies is called `claim` or `row`.
    """
    classes = {
        node.name: {ast.unparse(item.target) for item in node.body if isinstance(item, ast.AnnAssign)}
        for module in modules
        if module.path in {_CLAIM, "vkprovider/labs/pure/session/delivery.py"}
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    fields = classes.get("Claim", set()) - classes.get("Session", set())
    return [
        f"{module.path}:{node.lineno}"
        for module in modules
        if module.path.startswith(_KNOW_CLAIMS) and module.path != _CLAIM
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and _copies(node)
        if _name(node.args[0]) in {"claim", "row"} or fields & {keyword.arg for keyword in node.keywords}
    ]


def _copies(node: ast.Call) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in {"replace", "_replace"} and bool(node.args) and bool(node.keywords)


def _memory_fields(modules: list[Module]) -> set[str]:
    for module in modules:
        if module.path.startswith(("vkprovider/labs/controllers/", "vkprovider/labs/pure/lablet/")):
            for node in module.tree.body:
                is_memory = isinstance(node, ast.ClassDef) and (
                    node.name == "Memory" or (node.name == "Lablet" and module.path.endswith("memory.py"))
                )
                if is_memory and isinstance(node, ast.ClassDef):
                    return {
                        item.target.id
                        for item in node.body
                        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                    }
    return set()


def _written_by(node: ast.AST) -> Iterator[str]:
    """Yield the fields of a lablet's memory that one statement or call changes, going by the variable's name."""
    if isinstance(node, ast.Call) and _copies(node) and _is_memory(node.args[0]):
        yield from (keyword.arg for keyword in node.keywords if keyword.arg)
    for target in _targets(node):
        if isinstance(target, ast.Attribute) and _is_memory(target.value):
            yield target.attr


def _is_memory(value: ast.expr) -> bool:
    return _name(value).lstrip("_") in {"lablet", "memory"}


def _name(value: ast.expr) -> str:
    return value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""


def callback_attributes(modules: list[Module]) -> dict[str, list[tuple[str, bool]]]:
    """Return the attributes that a class declares as a callback with a default, and whether that does nothing."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for module in modules:
        for node in _declarations(module):
            if node.value is None or "Callable" not in ast.unparse(node.annotation):
                continue
            name = node.target.attr if isinstance(node.target, ast.Attribute) else ast.unparse(node.target)
            does_nothing = isinstance(node.value, ast.Lambda) and ast.unparse(node.value.body) == "None"
            found.setdefault(name, []).append((f"{module.path}:{node.lineno}: {name}", does_nothing))
    return found


def _declarations(module: Module) -> Iterator[ast.AnnAssign]:
    """Yield the annotated attributes: of `self` in a method, and fields in the body of a class."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            yield from (item for item in node.body if isinstance(item, ast.AnnAssign))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and _is_self(node.target.value):
            yield node


def late_assignments(modules: list[Module], callbacks: set[str]) -> list[str]:
    """List where a callback of another object is set to a function, a method or a lambda."""
    return [
        f"{module.path}:{target.lineno}: {ast.unparse(target)}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute | ast.Lambda)
        for target in _targets(node)
        if isinstance(target, ast.Attribute) and not _is_self(target.value) and target.attr in callbacks
    ]


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in {"self", "cls"}


def url_strings(modules: list[Module]) -> list[str]:
    """List the strings that are a path of the Kubernetes API, or extend one."""
    found = []
    for module in modules:
        nodes = list(ast.walk(module.tree))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        strings = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]
        bases = {name for node in module.tree.body for name in _path_constants(node)}
        found += [
            f"{module.path}:{node.lineno}: {ast.unparse(node)}"
            for node in strings
            if id(node) not in parts | docstrings and _is_url(node, bases)
        ]
    return found


def _path_constants(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and "/api" in ast.unparse(node.value):
        yield from (target.id for target in _targets(node) if isinstance(target, ast.Name))


def _is_url(node: ast.Constant | ast.JoinedStr, bases: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and (node.value.startswith("/") or "/api" in node.value)
    if "/api" in ast.unparse(node):
        return True
    base = node.values[0]
    if not isinstance(base, ast.FormattedValue) or len(node.values) == 1:
        return False
    named = base.value.func if isinstance(base.value, ast.Call) else base.value
    name = named.attr if isinstance(named, ast.Attribute) else ast.unparse(named)
    return name in bases or "path" in name


def reason_strings(modules: list[Module]) -> list[str]:
    """List the strings that equal the word of a reason, outside the modules that define reasons."""
    words = {word for module in modules if defines_reasons(module) for word in _words(module)} - NOT_REASONS
    return [
        f"{module.path}:{node.lineno}: {node.value}"
        for module in modules
        if not defines_reasons(module)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and node.value in words
    ]


def defines_reasons(module: Module) -> bool:
    """Return whether a module has an enum of reasons, or explains those of others."""
    bases = {
        ast.unparse(base) for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef) for base in node.bases
    }
    return "Reasons" in bases or module.path.endswith(("/reasons.py", "/stock.py", "/reasons/__init__.py"))


def _words(module: Module) -> Iterator[str]:
    """Yield the words of the reasons that a module defines: `LAB_LOST = ("LabLost", …)` in the body of a class."""
    for node in ast.walk(module.tree):
        for item in node.body if isinstance(node, ast.ClassDef) else ():
            match item:
                case ast.Assign(value=ast.Tuple(elts=[ast.Constant(value=str(word)), *_])) if word:
                    yield word


def _lines(modules: list[Module]) -> int:
    return sum(module.lines for module in modules)


def report(found: list[Figure], *, places: bool) -> str:
    """Render the figures as text."""
    lines = []
    for figure in found:
        lines.append(f"{figure.shown:>7}  {figure.name}: {figure.definition}")
        lines += [f"           {place}" for place in figure.places if places]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the figures; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description="Figures of the code's structure.")
    parser.add_argument("revision", nargs="?", help="revision of git; the working tree if omitted")
    parser.add_argument("--list", action="store_true", help="also print the places that a figure counts")
    options = parser.parse_args(arguments)
    try:
        modules = read_tree(options.revision)
    except subprocess.CalledProcessError:
        return 2
    print(report(figures(modules), places=options.list))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
