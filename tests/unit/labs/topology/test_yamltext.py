"""YAML from outside: the limits change nothing of what the loader reads, and the quick writer writes the same."""

import json
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.labs.topology.test_domain_topology import structures
from vkprovider.labs.pure.topology import yamltext
from vkprovider.platform.errors import InputError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
plain = st.text(alphabet="0123456789abefnotyx.:+-_~<=TZ ", max_size=12)


def as_read_by_the_loader(text: str) -> Any:
    """Read a text by the stock loader; numbers to base 60 stay text, what contains itself is refused."""
    loader = LOADER(text)
    try:
        document = loader.get_single_node()
        if document is None:
            return None
        keep_base_60(document, ())
        return loader.construct_document(document)
    finally:
        loader.dispose()


def keep_base_60(node: yaml.Node, around: tuple[yaml.Node, ...]) -> None:
    assert all(node is not outer for outer in around), "it contains itself"
    if isinstance(node, yaml.ScalarNode):
        if node.tag in {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"} and ":" in node.value:
            node.tag = "tag:yaml.org,2002:str"
        return
    for part in node.value:
        for inner in part if isinstance(part, tuple) else (part,):
            keep_base_60(inner, (*around, node))


def assert_read_as_by_the_loader(text: str) -> None:
    try:
        expected = repr(as_read_by_the_loader(text))
    except Exception:  # noqa: BLE001 (the loader raises whatever it likes)
        with pytest.raises(InputError):
            yamltext.load(text)
    else:
        assert repr(yamltext.load(text)[0]) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "# nothing", "---", "--- a\n...", "a", "[]", "{}", "null", "~", "''", '"1"', "|\n a\n b\n"),
        *(
            "1",
            "0x1f",
            "0o7",
            "017",
            "1_000",
            "1:30",
            "1:30.5",
            "!!int 1:30",
            "!!float -1:30",
            "1.5",
            "1e3",
            "1.e+3",
            ".inf",
            "-.INF",
            ".nan",
            "0b11",
        ),
        *("yes", "No", "ON", "true", "Null", "2026-11-21", "2026-11-21T10:00:00Z", "=", "<<", "-", "- -", "? a"),
        *(
            "a: 1\na: 2",
            "{1: a, 1.0: b, true: c}",
            "? [a]\n: b",
            "{[a]: b}",
            "a: &x [1]\nb: *x",
            "&a [*a]",
            "<<: {a: 1}",
        ),
        *("!!str 5", "! 5", "!!int '5'", "!!set {a, b}", "!!binary aGk=", "!x 1", "&a b", "--- 1\n--- 2", "%YAML 1.1"),
        *("tags: [serial:5041, pat:1:2, 22:22]", "a: >-\n  b\n\n  c", 'a: "\\u263a\\x07"', "a:\n- b\n-\n- - c"),
    ],
)
def test_every_form_is_read_as_by_the_loader(text: str) -> None:
    assert_read_as_by_the_loader(text)


@given(st.text() | st.text(alphabet="[]{}:-&*!|>'\"#?,% \n\tab0.", max_size=60) | plain)
@example("a: [1, &b")
def test_any_text_is_read_as_by_the_loader(text: str) -> None:
    assert_read_as_by_the_loader(text)


@given(structures, st.booleans())
def test_any_structure_is_read_as_by_the_loader(value: Any, flow: bool) -> None:  # noqa: FBT001 (drawn)
    assert_read_as_by_the_loader(yaml.safe_dump(value, default_flow_style=flow))


@given(st.dictionaries(st.text(max_size=6), structures, max_size=4), st.booleans())
@example({"a": "\x85b\u2028c\u2029 \ufeff\U0001f600"}, False)  # noqa: FBT003 (drawn)
@example({"a" * 1025: 1, "b": {"\x85" * 129: 1}}, False)  # noqa: FBT003 (drawn)
@example({"a": 2**70, "b": 1e300, "c": float("inf"), "d": date(2026, 11, 21), "e": b"x"}, False)  # noqa: FBT003 (drawn)
def test_what_is_written_is_read_back(mapping: dict[str, Any], shared: bool) -> None:  # noqa: FBT001 (drawn)
    try:
        text = yamltext.write(mapping, shared=shared)
    except ValueError:  # lone surrogates
        return
    assert repr(yaml.safe_load(text) or {}) == repr(mapping)


def bomb(levels: int) -> str:
    lines = [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, levels + 1)]
    return "x0: &x0 [lol, lol]\n" + "".join(lines)


def test_parts_that_stand_in_many_places_are_written_once() -> None:
    value, shared = yamltext.load(bomb(4))
    assert shared
    assert len(yamltext.write(value, shared=shared)) < 2 * len(bomb(4))


def test_aliases_that_multiply_are_refused_before_they_are_expanded() -> None:
    with pytest.raises(InputError, match="aliases in line 6 expand to more than 100000 values"):
        yamltext.load(bomb(10))


def test_nesting_by_aliases_counts() -> None:
    step = "[" * 50 + "{}" + "]" * 50
    text = "x0: &x0 " + step.format("a") + "\nx1: &x1 " + step.format("*x0") + "\n"
    assert yamltext.load("x0: &x0 " + step.format("a") + "\nx1: *x0\n")[1]
    with pytest.raises(InputError, match="nested more than 100 deep"):
        yamltext.load(text)


def test_a_number_to_base_60_costs_no_time_and_is_text() -> None:
    long = "1" + ":0" * 500_000
    for text in (long, f"!!int '{long}'", f"{long}.5", f"!!float '{long}'"):
        assert isinstance(yamltext.load(f"x: {text}")[0]["x"], str)


def test_nesting_is_refused_where_it_begins_to_hurt() -> None:
    deepest = "[" * yamltext.NESTING_MAX + "]" * yamltext.NESTING_MAX
    assert yamltext.load(deepest)[1] is False
    for text in (f"[{deepest}]", f"[&a {deepest}, *a]"):
        with pytest.raises(InputError, match="nested more than 100 deep"):
            yamltext.load(text)


def test_merge_keys_are_read() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {<<: *b, y: 3}\nlast: {<<: [*m, *b], z: 4}\n"
    value, shared = yamltext.load(text)
    assert (value["last"], shared) == ({"x": 1, "y": 3, "z": 4}, True)


@pytest.mark.parametrize("level", ["<<: [{}]", "<<: [&i{n} {{<<: [{}]}}, *i{n}]"])
def test_merge_keys_that_multiply_are_refused_before_they_are_expanded(level: str) -> None:
    lines = ["x0: &x0 {a: 1, b: 2}"]
    for n in range(1, 20):
        merged = level.format(", ".join([f"*x{n - 1}"] * 4), n=n)
        lines.append(f"x{n}: &x{n} {{{merged}}}")
    with pytest.raises(InputError, match=r"aliases in line [0-9]+ expand to more than 100000 values"):
        yamltext.load("\n".join(lines))


@pytest.mark.parametrize("text", ["a: &a {<<: *a, x: 1}", "&a [1, [*a]]", "&a {x: *a}"])
def test_what_contains_itself_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="stands within what it names"):
        yamltext.load(text)


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("text", ["lab 🔥", "\U0001f600\U0010ffff", 'a/b \\ud83d "quoted"', "é\u2028\x7f"])
def test_json_is_read_whatever_escapes_it_has(text: str, indent: int | str | None) -> None:
    document = {"lab": {"title": text, text: [1, 2.5, None, True, {"x": 2**70}]}}
    for written in (json.dumps(document, indent=indent), "\ufeff \r\n" + json.dumps(document, ensure_ascii=False)):
        assert yamltext.load(written) == (document, False)


@given(st.dictionaries(st.text(max_size=6), structures, max_size=4))
def test_a_json_document_is_read_as_it_was_written(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    assert yamltext.load(text)[0] == json.loads(text)


@pytest.mark.parametrize("inner", ['{"a": ', "["])
def test_deep_json_is_refused(inner: str) -> None:
    for depth in (150, 100_000):
        closing = ("}" if inner.startswith("{") else "]") * depth
        with pytest.raises(InputError, match="nested more than"):
            yamltext.load('{"a": ' + inner * depth + "1" + closing + "}")


@pytest.mark.parametrize(
    "text",
    [
        '<?xml version="1.0" encoding="UTF-8"?>\n<topology xmlns="http://x" schemaVersion="0.95"><node/></topology>',
        '\ufeff\n<!-- by hand -->\n<virl:topology xmlns:virl="http://x"/>',
        "<topology/>",
    ],
)
def test_a_file_of_virl_is_told_from_broken_yaml(text: str) -> None:
    with pytest.raises(InputError, match=r"a file of VIRL 1\.x \(XML\): import it into CML once"):
        yamltext.load(text)


@pytest.mark.parametrize("text", ["<!DOCTYPE html>\n<html><title>Log in: CML</title></html>", "<html>a: b: c"])
def test_a_web_page_is_told_from_broken_yaml(text: str) -> None:
    with pytest.raises(InputError, match="this is XML or HTML, not YAML"):
        yamltext.load(text)
