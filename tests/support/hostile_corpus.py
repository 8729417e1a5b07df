"""The hostile corpus: documents that grow when they are read, and distorted valid ones. Seeded, so that it repeats."""

import contextlib
import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

import yaml

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**31, 2**63, 2**64, 10**40, 1.5, 1e308, float("inf"), float("nan")),
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "a\r\nX-Evil: 1",
        "\u2028",
        "\ufeff",
        "\U0001f600" * 50,
        "..",
        "../../etc/passwd",
        "%s{0}$",
    ),
    *("A" * 70_000, "9" * 5000, "1" + ":0" * 3000, "0x" + "f" * 5000, "1e999", "2026-13-45T99:99:99Z", "<<", "=", "~"),
    *([], {}, [[]], {"": {}}, [None] * 50, {"a" * 300: 1}, "serial:99999999999", "pat:1:99999", "serial:1:1:1"),
)
FRAGMENTS: Final = (
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\r\n", b"\x1b[0m", b"\xc0\xaf", b"\x85"),
    *(
        b"[" * 150,
        b"{" * 150,
        b"- " * 150,
        b"?" * 50,
        b"*a",
        b"&a ",
        b"<<: *a",
        b"!!int ",
        b"!!python/object:os.system ",
    ),
    *(
        b"!!binary ",
        b"!!timestamp ",
        b"1:0:0:0",
        b"9" * 400,
        b"1e999",
        b"-",
        b"---\n",
        b"...",
        b"%YAML 9.9\n",
        b": ",
        b"#",
    ),
    *(b'"', b"'", b"]", b"}", b",", b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>", b"&b;", b"<a>" * 120),
)


def bombs() -> list[str]:
    """List documents that grow when they are read."""
    keys = ", ".join(f"k{n}: {n}" for n in range(2000))
    thirty = ", ".join(["*{}"] * 30)
    merges = (
        f"a: &a {{{keys}}}\nb: &b {{<<: [{thirty.replace('{}', 'a')}]}}\nc: {{<<: [{thirty.replace('{}', 'b')}]}}\n"
    )
    laughs = "x0: &x0 [lol, lol]\n" + "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, 11))
    deep = "\n".join(f"x{i}: &x{i} {'[' * 90}{'*x' + str(i - 1) if i else 1}{']' * 90}" for i in range(50))
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    return [
        *(merges, laughs, deep, "&a [*a]", "a: &a {<<: *a}", "&a {*a : 1}", "x: 1" + ":0" * 200_000),
        *(
            "x: !!int '1" + ":0" * 100_000 + "'",
            "x: " + "9" * 100_000,
            "x: 0x" + "f" * 100_000,
            "[" * 50_000,
            "{" * 50_000,
        ),
        *("- " * 5000, '"' + "a" * 500_000, "a: |\n" + " b\n" * 100_000, "? " * 1000, "[" + "1," * 50_000 + "1]"),
        *('{"a":' * 5000 + "1" + "}" * 5000, "[" * 100_000 + "]" * 100_000, '{"a": "\\ud800"}', '{"a": 1e400}'),
        f'<!DOCTYPE a [<!ENTITY l0 "ha">{entities}]><a>&l11;</a>',
        '<!DOCTYPE a SYSTEM "http://198.51.100.1/x.dtd"><a/>',
        "<a>" * 20_000,
        "<a " + " ".join(f'b{n}="1"' for n in range(5000)) + "/>",
    ]


BOMBS: Final = tuple(bombs())


def distorted(rng: Random, valid: bytes) -> bytes:
    """Cut, repeat, replace and insert parts of a valid text."""
    data = bytearray(valid)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randint(0, 40))
        match rng.randrange(5):
            case 0:
                del data[at:end]
            case 1:
                data[at:end] = rng.choice(FRAGMENTS)
            case 2:
                data[at:at] = rng.choice(FRAGMENTS) * rng.randint(1, 4)
            case 3:
                data[at:at] = data[at:end] * rng.randint(1, 50)
            case _:
                data[at:end] = rng.randbytes(end - at)
    return bytes(data)


def replaced(rng: Random, valid: Any, changes: int = 2) -> Any:
    """Replace, remove or add parts of valid data."""
    found = json.loads(json.dumps(valid))
    for _ in range(rng.randint(1, changes)):
        place: Any = found
        while isinstance(place, (dict, list)) and place:
            key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
            if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8:
                place = place[key]
                continue
            match rng.randrange(4):
                case 0 if isinstance(place, dict):
                    del place[key]
                case 1 if isinstance(place, dict):
                    place[rng.choice(["", "x" * 500, "__class__", "\0", "<<", "labels", "label", "\u2028"])] = (
                        any_value(rng)
                    )
                case 2 if isinstance(place, list):
                    place.extend([place[key]] * rng.randint(1, 30))
                case _:
                    place[key] = any_value(rng)
            break
    return found


def any_value(rng: Random) -> Any:
    """Return a value of any kind."""
    return copy.deepcopy(rng.choice(VALUES))


def text_of(rng: Random, valid: str, load: Callable[[str], Any], dump: Callable[[Any], str]) -> str:
    """Return a hostile text, more or less like a valid one."""
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(BOMBS)
    if kind < 0.5:
        with contextlib.suppress(ValueError, TypeError):
            return dump(replaced(rng, load(valid)))
    return distorted(rng, valid.encode()).decode(errors=rng.choice(["replace", "ignore", "surrogateescape"]))


def as_yaml(rng: Random, valid: str) -> str:
    """Return hostile YAML."""
    return text_of(rng, valid, yaml.safe_load, lambda value: json.dumps(value, ensure_ascii=rng.random() < 0.5))


def as_json(rng: Random, valid: Any) -> bytes:
    """Return hostile JSON."""
    return text_of(rng, json.dumps(valid), json.loads, json.dumps).encode(errors="surrogateescape")
