"""Pages and manifests made from the code are complete and up to date."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vkprovider
from tools import generate
from vkprovider.api import names
from vkprovider.api.reasons import TABLES

PACKAGE = Path(vkprovider.__file__).parent

REASON = re.compile(r"[A-Z][a-z]+([A-Z][a-z]+)*")
ENUMS = re.compile(
    r"\b(?:Progress|Trouble|Happened|(?:Worker|Console|Definition|Environment|Start|Doctor)Reason)\.([A-Z_]+)\b"
)
"""A reason used as a member of its enum; that the member exists is for the type checker."""
PARTS = ("api", "domain", "controllers", "cml", "lds", "kube", "app", "doctor", "cli", "kubelet", "runtime")
CALLS = {"InputError", "Fault", "unhealthy", "healthy", "Health", "finish", "_waiting", "_not_ready", "_again"}
"""Functions that take a reason among their first arguments."""

NO_REASONS = {"Normal", "Warning", "Pending", "Running", "Succeeded", "Failed", "Pod", "Ready", "True", "False"}


def strings(node: ast.AST) -> Iterator[str]:
    """Find words that may be reasons: directly, in both branches of a condition, or as values of a table."""
    match node:
        case ast.Constant(value=str(text)) if REASON.fullmatch(text):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from strings(body)
            yield from strings(orelse)
        case ast.Call(func=ast.Attribute(value=ast.Dict(values=values), attr="get"), args=[_, default]):
            for value in [*values, default]:
                yield from strings(value)
        case _:
            return


def reasons_in(source: str) -> set[str]:
    """Collect what the code gives as a reason."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in CALLS:
                for argument in arguments[:4]:
                    found |= set(strings(argument))
            case ast.Tuple(elts=[ast.Constant(value="Normal" | "Warning"), reason, *_]):
                found |= set(strings(reason))
            case ast.Call(func=ast.Attribute(attr="emit" | "_emit"), args=arguments):
                for argument in arguments:
                    found |= set(strings(argument))
            case ast.keyword(arg="waiting" | "terminal", value=ast.Tuple(elts=[reason, *_])):
                found |= set(strings(reason))
            case ast.Return(value=ast.Tuple(elts=[reason, _])):
                found |= set(strings(reason))
            case ast.Assign(targets=[ast.Name(id="reason")], value=value):
                found |= set(strings(value))
            case _:
                continue
    return found - NO_REASONS


def describes_reasons(path: Path) -> bool:
    """Return whether a module only explains reasons."""
    return "reasons" in path.relative_to(PACKAGE).parts


def test_every_reason_of_the_code_is_described() -> None:
    described = {name for reasons in TABLES.values() for name in reasons}
    missing = {
        f"{path.relative_to(PACKAGE)}: {reason}"
        for part in PARTS
        for path in (PACKAGE / part).rglob("*.py")
        for reason in reasons_in(path.read_text(encoding="utf-8"))
        if reason not in described and not reason.startswith("OutOf") and not describes_reasons(path)
    }
    assert sorted(missing) == []


def test_every_described_reason_is_in_the_code() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for part in PARTS
        for path in (PACKAGE / part).rglob("*.py")
        if not describes_reasons(path)
    )
    described = {name for reasons in TABLES.values() for name in reasons}
    words = {name: name.removeprefix(f"{names.GROUP}/") for name in described}
    members = {member.replace("_", "") for member in ENUMS.findall(text)}
    unused = [
        name for name, word in words.items() if word.upper() not in members and not re.search(rf'["/]{word}[{{"]', text)
    ]
    assert sorted(unused) == []


def test_the_collector_sees_what_it_should() -> None:
    source = """
raise InputError("AaBb", "text")
return unhealthy(fault.reason, "CcDd")
events=(("Warning", "EeFf" if x else "GgHh", text),)
Report(state, waiting=("IiJj", text))
reason = "KkLl"
self._ctx.events.emit(ref, "Warning", "MmNn", note)
return {Step.IMPORT: "OoPp"}.get(step, "QqRr"), message
"""
    assert reasons_in(source) >= {"AaBb", "EeFf", "GgHh", "IiJj", "KkLl", "MmNn", "OoPp", "QqRr"}


def test_every_setting_is_described() -> None:
    page = generate.settings_page()
    fields = [each for group in generate.groups() for each in generate.variables(group).items()]
    for name, field in fields:
        assert field.description, name
    assert page.count("\n| `") == len(fields) >= 50


@pytest.mark.parametrize("path", [str(path) for path in generate.files()])
def test_file_is_up_to_date(path: str) -> None:
    found = (generate.ROOT / path).read_text(encoding="utf-8")
    assert found == generate.files()[Path(path)], "run `make generate`"


def test_check_finds_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["--check"]) == 1
    assert "docs/reference/settings.md is not as generated: run `make generate`" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    assert generate.main(["--wrong"]) == 2
