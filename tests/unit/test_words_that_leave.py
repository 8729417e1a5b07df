"""Words that leave a process because a class, a member or a module has that name: renaming in code changes none.

Who renames such a thing says the word itself where it is made: a tag, a label, the name of a logger. What a traceback
or the `repr` of an unexpected error shows is not among them, nor the name of a function, nor a word that only its own
process reads.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import pytest

from tunnels.wire import AgentMessage, CallerMessage
from vkprovider.labs.content import parser
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.kube.flow import Flow
from vkprovider.portal.pure.decide import LabStep
from vkprovider.portal.pure.leading import change
from vkprovider.portal.service.choices import read_config

T = TypeVar("T")
ROOT = Path(__file__).parents[2]

WORDS = {
    "tags of frames between agents and callers": """
        cancel event goodbye heartbeat hello piece probe refusal request response streamack streamdata streamopen want
    """,
    "tags of requests to the parser of content": "ReadPackage ReadTopology",
    "reasons of refusals by HTTP, in answers, metrics and logs": """
        AgentInvalid AgentUnknown AgentsDisabled ApiServerUnavailable ArchiveUnavailable ArchiveUnknown BodyInvalid
        BodyLate BodyTooLarge EventIncomplete EventInvalid EventTooLarge EventsDisabled LabUnavailable LabUnknown
        ListExpired LoginUnavailable MediaTypeRefused MediaTypeUnsupported NoSession NotAllowed OldForm
        PasswordMissing QueryInvalid SecretMissing SecretWrong SignatureInsufficient SignatureWrong Starting
        TokenInvalid TokenMissing TooManyAgents TooManyConsoles TooManyDownloads TooManyReviews TryAgain
    """,
    "step of vkprovider_portal_steps_total": """
        Assign Complete DeleteBench DeleteNamespace DeletePod End Fail Free Look Make MakeBench NoteProvisioned Reseal
    """,
    "step of the log line `instructors of a lab`": "Bind Unbind",
    "lane of requests that wait for the API server": "news result work",
    "model in what is said of a wrong VKPROVIDER_PORTAL_CONFIG": "PortalConfig",
}
"""Where the words are read: the words, of all programs together."""

MADE_OF_NAMES = {
    "class Message: tag=lambda name: name.lower()": "tags of frames between agents and callers",
    "class ReadPackage: tag=True": "tags of requests to the parser of content",
    "class ReadTopology: tag=True": "tags of requests to the parser of content",
    "word: type(self).__name__": "reasons of refusals by HTTP, in answers, metrics and logs",
    "_note: type(plan.step).__name__": "step of vkprovider_portal_steps_total",
    "reconcile: type(step).__name__": "step of the log line `instructors of a lab`",
    "waiting: lane.name.lower()": "lane of requests that wait for the API server",
    "_seen: type(plan.step).__name__": "compared in its process",
    "_look: type(error).__name__": "compared in its process",
    "_kubectl: __name__": "a key in its process",
    "answer: type(error).__name__": "an error that nobody expected",
    "ask: type(error).__name__": "an error of a library",
    "ask_road: type(error).__name__": "an error of a library",
    "handle_error: type(exc).__name__": "an error of a library",
    "_asked: type(error).__name__": "an error of a library",
    "_pass: type(error).__name__": "an error of a library",
    "_from: type(error).__name__": "an error of a library",
    "_merged: type(error).__name__": "an error of a library",
    "_said: type(error).__name__": "an error of a library",
    "_why: type(error).__name__": "an error of a library",
}
"""`function: expression` wherever code makes a text of the name of a class, a member or a module, and what that is for.

The names of loggers are left out, which are those of modules and follow them, and `if __name__ == "__main__"`.
"""


@cache
def sources() -> dict[str, str]:
    """Return the text of each module of the product, by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for top in ("vkprovider", "tunnels")
        for path in sorted((ROOT / top).rglob("*.py"))
    }


def below(base: type[T]) -> set[type[T]]:
    """Return the classes below another one, wherever the product defines them."""
    names = {base.__name__}
    while True:
        defined = re.compile(rf"^class (\w+)\(.*\b(?:{'|'.join(sorted(names))})\b", re.MULTILINE)
        where = {module: found for module, text in sources().items() if (found := defined.findall(text))}
        more = {name for found in where.values() for name in found}
        if more <= names:
            break
        names |= more
    for module in where:
        import_module(module)
    return set(_below(base))


def _below(base: type[T]) -> Iterator[type[T]]:
    for each in base.__subclasses__():
        yield each
        yield from _below(each)


def tags(*messages: Any) -> set[str]:
    """Return the tags of the structs of unions."""
    return {struct.__struct_config__.tag for union in messages for struct in get_args(union)}


def refusals() -> set[str]:
    """Return the words of all refusals but those that have the reason of an object."""
    return {kind.__new__(kind).word for kind in below(Refused) if kind.word is Refused.word}


def model_of_the_portals_file(folder: Path) -> set[str]:
    """Return how the message about a wrong file calls what it should be."""
    path = folder / "portal.yaml"
    path.write_text("unknown: 1")
    with pytest.raises(InputError) as refused:
        read_config(str(path))
    return set(re.findall(r"validation errors? for (\w+)", str(refused.value)))


FOUND: dict[str, Callable[[Path], Collection[str]]] = {
    "tags of frames between agents and callers": lambda _: tags(AgentMessage, CallerMessage),
    "tags of requests to the parser of content": lambda _: tags(parser.Request),
    "reasons of refusals by HTTP, in answers, metrics and logs": lambda _: refusals(),
    "step of vkprovider_portal_steps_total": lambda _: {step.__name__ for step in get_args(LabStep)},
    "step of the log line `instructors of a lab`": lambda _: {
        step.__name__ for step in get_args(get_type_hints(change)["return"]) if step is not type(None)
    },
    "lane of requests that wait for the API server": lambda _: Flow(1).waiting.keys(),
    "model in what is said of a wrong VKPROVIDER_PORTAL_CONFIG": model_of_the_portals_file,
}
"""How the words are found in the code."""


@pytest.mark.parametrize("place", WORDS)
def test_the_words_are_as_others_know_them(place: str, tmp_path: Path) -> None:
    known, found = set(WORDS[place].split()), set(FOUND[place](tmp_path))
    assert found - known == set(), "new words: add them, if no word of before is gone"
    assert known - found == set(), "these words are gone from what leaves the process"


def test_each_place_that_makes_words_of_names_is_known() -> None:
    """Add a new one to the tables."""
    texts = (_OWN_LOGGER.sub("None", text) for text in sources().values())
    found = {each for text in texts if _MAY_MAKE.search(text) for each in made(ast.parse(text))}
    assert found == set(MADE_OF_NAMES)
    assert set(FOUND) == set(WORDS)


_CASES = {"lower", "upper", "title", "capitalize", "casefold"}
_OWN_LOGGER = re.compile(r"structlog\.get_logger\(__name__\)")
_NAMES = {"__name__", "__qualname__", "__module__", "__class__"}
_MAY_MAKE = re.compile(rf"{'|'.join(sorted(_NAMES))}|\btag=|\.name\.(?:{'|'.join(sorted(_CASES))})\(")


def made(node: ast.AST, where: str = "") -> Iterator[str]:
    """Yield the expressions below a node that make a text of a name, each after the function in which it stands."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            where = node.name
        case ast.ClassDef():
            where = f"class {node.name}"
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="name"), attr=attr)) if attr in _CASES:
            yield f"{where}: {ast.unparse(node)}"
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in _NAMES:
            yield f"{where}: {ast.unparse(node)}"
        case ast.keyword(arg="tag") if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            yield f"{where}: tag={ast.unparse(node.value)}"
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from made(child, where)
