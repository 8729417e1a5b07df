"""Sentences that slow a reader down: what CONTRIBUTING asks of docstrings and comments, as figures.

`tools.figures` prints them; with `--list` it names each place.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

AVOIDED: Final = re.compile(r"\b(anew|by now|as it is then|who(?:m|so)?ever)\b")
"""Words that a plainer one replaces: again, already, now, a noun."""

_FREE_RELATIVE: Final = re.compile(r"\A(?:Return|Yield|Give|Pass)s? (?:what|who|whatever)\b")
_FRAGMENT: Final = re.compile(
    r"\A(?:Of|As|In|For|By|At|With|Without|From|On|To|Until|Between|Before|After|Below|Above|Per|When|Where|So|Longer)\b"
)
"""First words of a docstring that leaves its subject out, such as `Of one console.`"""


def free_relatives(tree: ast.Module, text: str) -> list[tuple[int, str]]:
    """List the docstrings that return or yield a clause instead of a noun."""
    del text
    return [(line, first) for line, first in _docstrings(tree) if _FREE_RELATIVE.search(first)]


def fragments(tree: ast.Module, text: str) -> list[tuple[int, str]]:
    """List the docstrings of constants and fields that leave their subject out."""
    del text
    return [(line, first) for line, first in _constant_docstrings(tree) if _FRAGMENT.search(first)]


def avoided_words(tree: ast.Module, text: str) -> list[tuple[int, str]]:
    """List the lines of docstrings and comments with a word that a plainer one replaces."""
    found = [
        (node.lineno + number, line.strip())
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number, line in enumerate(node.value.value.splitlines())
        if AVOIDED.search(line)
    ]
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and AVOIDED.search(token.string)
    ]
    return sorted(found + comments)


RULES: Final[dict[str, tuple[Callable[[ast.Module, str], list[tuple[int, str]]], str]]] = {
    "docstrings that return a clause": (free_relatives, "`Return what …` instead of a noun"),
    "docstrings of constants that are fragments": (fragments, "they begin with a preposition: `Of one console.`"),
    "words that a plainer one replaces": (avoided_words, "anew, by now, as it is then, whoever"),
}
"""Name of a figure: the function that lists its places in one module, and what it counts."""


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield (1 if isinstance(node, ast.Module) else node.lineno), text.splitlines()[0]


def _constant_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement, following in pairwise(body):
            if (
                isinstance(statement, ast.Assign | ast.AnnAssign)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                yield following.lineno, following.value.value.strip().splitlines()[0]
