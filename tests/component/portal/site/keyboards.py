"""Keyboards: which character each key gives, and what xterm sends for it with Ctrl, Alt and Shift.

The places and the virtual keys are those that Chromium reports on Windows. A key has a character alone, with Shift, and
with AltGr: "" where it gives none, and `Dead` where it changes that of the next one.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

ALT, CTRL, SHIFT = 1, 2, 8
"""The modifiers of `Input.dispatchKeyEvent`."""


class Key(NamedTuple):
    """A key of a layout."""

    code: str
    vk: int
    plain: str
    shifted: str
    third: str = ""


def _letters(order: str, third: dict[str, str]) -> list[Key]:
    """Return the letters; `order` has those of the places A to Z."""
    places = zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", order, strict=True)
    return [Key(f"Key{at}", ord(is_), is_.lower(), is_, third.get(is_, "")) for at, is_ in places]


def _digits(shifted: str, third: dict[str, str]) -> list[Key]:
    return [Key(f"Digit{at}", ord(at), at, shifted[int(at)], third.get(at, "")) for at in "0123456789"]


_ABC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COMMA: Final = (Key("Comma", 188, ",", "<"), Key("Period", 190, ".", ">"), Key("Slash", 191, "/", "?"))
_MINUS: Final = (Key("Minus", 189, "-", "_"), Key("Equal", 187, "=", "+"))
_BRACKETS: Final = (Key("BracketLeft", 219, "[", "{"), Key("BracketRight", 221, "]", "}"))
_SPACE: Final = Key("Space", 32, " ", " ")

US: Final = (
    *_letters(_ABC, {}),
    *_digits(")!@#$%^&*(", {}),
    *_MINUS,
    *_BRACKETS,
    *_COMMA,
    Key("Backslash", 220, "\\", "|"),
    Key("Semicolon", 186, ";", ":"),
    Key("Quote", 222, "'", '"'),
    Key("Backquote", 192, "`", "~"),
    _SPACE,
)
UK: Final = (
    *_letters(_ABC, {"A": "á", "E": "é", "I": "í", "O": "ó", "U": "ú"}),
    *_digits(')!"£$%^&*(', {"4": "€"}),
    *_MINUS,
    *_BRACKETS,
    *_COMMA,
    Key("Backslash", 222, "#", "~"),
    Key("IntlBackslash", 220, "\\", "|"),
    Key("Semicolon", 186, ";", ":"),
    Key("Quote", 192, "'", "@"),
    Key("Backquote", 223, "`", "¬", "¦"),
    _SPACE,
)
DE: Final = (
    *_letters("ABCDEFGHIJKLMNOPQRSTUVWXZY", {"Q": "@", "E": "€", "M": "µ"}),
    *_digits('=!"§$%&/()', {"2": "²", "3": "³", "7": "{", "8": "[", "9": "]", "0": "}"}),
    Key("Minus", 219, "ß", "?", "\\"),
    Key("Equal", 221, "Dead", "Dead"),
    Key("BracketLeft", 186, "ü", "Ü"),
    Key("BracketRight", 187, "+", "*", "~"),
    Key("Semicolon", 192, "ö", "Ö"),
    Key("Quote", 222, "ä", "Ä"),
    Key("Backslash", 191, "#", "'"),
    Key("IntlBackslash", 226, "<", ">", "|"),
    Key("Comma", 188, ",", ";"),
    Key("Period", 190, ".", ":"),
    Key("Slash", 189, "-", "_"),
    Key("Backquote", 220, "Dead", "°"),
    _SPACE,
)

_OTHERS: Final = {
    "ArrowUp": (38, "\x1b[A", "\x1b[1;{}A"),
    "ArrowDown": (40, "\x1b[B", "\x1b[1;{}B"),
    "ArrowRight": (39, "\x1b[C", "\x1b[1;{}C"),
    "ArrowLeft": (37, "\x1b[D", "\x1b[1;{}D"),
    "Home": (36, "\x1b[H", "\x1b[1;{}H"),
    "End": (35, "\x1b[F", "\x1b[1;{}F"),
    "Delete": (46, "\x1b[3~", "\x1b[3;{}~"),
    "F1": (112, "\x1bOP", "\x1b[1;{}P"),
    "F2": (113, "\x1bOQ", "\x1b[1;{}Q"),
    "F3": (114, "\x1bOR", "\x1b[1;{}R"),
    "F4": (115, "\x1bOS", "\x1b[1;{}S"),
    "F7": (118, "\x1b[18~", "\x1b[18;{}~"),
    "F8": (119, "\x1b[19~", "\x1b[19;{}~"),
    "F9": (120, "\x1b[20~", "\x1b[20;{}~"),
    "F10": (121, "\x1b[21~", "\x1b[21;{}~"),
}
"""Keys without a character: the virtual key, what xterm sends, and the same with the number of the modifiers."""
_PLAIN: Final = {
    ("Tab", 9, 0): "\t",
    ("Tab", 9, SHIFT): "\x1b[Z",
    ("Enter", 13, 0): "\r",
    ("Enter", 13, ALT): "\x1b\r",
    ("Escape", 27, 0): "\x1b",
    ("Backspace", 8, 0): "\x7f",
    ("Backspace", 8, CTRL): "\b",
    ("Backspace", 8, ALT): "\x1b\x7f",
    ("PageUp", 33, 0): "\x1b[5~",
    ("PageDown", 34, 0): "\x1b[6~",
    ("PageUp", 33, CTRL): "\x1b[5;5~",
    ("Insert", 45, 0): "\x1b[2~",
}

Press = tuple[dict[str, Any], str]
"""The event, and what is to arrive."""


def control(char: str) -> str:
    """Return what Ctrl makes of a character, by the table of ctlseqs and X11; "" for nothing.

    >>> control("^"), control("7"), control("ß")
    ('\\x1e', '\\x1f', '')
    """
    table = {" ": 0, "2": 0, "3": 27, "4": 28, "5": 29, "6": 30, "7": 31, "8": 127, "/": 31}
    table |= dict(zip("@[\\]^_`{|}~", (0, 27, 28, 29, 30, 31, 0, 27, 28, 29, 30), strict=True))
    table |= {letter: at for letters in (_ABC, _ABC.lower()) for at, letter in enumerate(letters, 1)}
    return chr(table[char]) if char in table else ""


def presses(layout: tuple[Key, ...], *, is_windows: bool) -> Iterator[Press]:
    """Yield what is pressed on a keyboard, and what is to arrive."""
    for key in layout:
        for shift, char in ((0, key.plain), (SHIFT, key.shifted)):
            is_dead = char == "Dead"
            if not is_dead:
                yield _press(key.code, key.vk, char, shift, char), char
            with_alt = "" if is_dead else "\x1b" + char
            yield _press(key.code, key.vk, char, ALT | shift), with_alt
            yield _press(key.code, key.vk, char, CTRL | shift), _with_ctrl(key, char, shift)
        if key.third:
            modifiers = ALT | CTRL if is_windows else 0
            yield _press(key.code, key.vk, key.third, modifiers, key.third), key.third
        elif len(key.plain) == 1 and (key.plain.isascii() and key.plain.isalnum()) and control(key.plain):
            yield _press(key.code, key.vk, key.plain, ALT | CTRL), "\x1b" + control(key.plain)


def _with_ctrl(key: Key, char: str, shift: int) -> str:
    if shift and key.code == "Digit6":
        return "\x1e"
    if shift and char.isalpha():
        return ""  # the browser's, or this page's
    if char == "v":
        return ""  # pastes
    if char == "Dead":
        return "\x1e" if key.code == "Backquote" else ""
    return control(char)


def keys_without_characters() -> Iterator[Press]:
    """Yield the keys that are the same on every keyboard."""
    for name, (vk, plain, modified) in _OTHERS.items():
        yield _press(name, vk, name, 0), plain
        for modifiers in (SHIFT, ALT, CTRL, ALT | SHIFT, CTRL | SHIFT, CTRL | ALT, CTRL | ALT | SHIFT):
            number = 1 + bool(modifiers & SHIFT) + 2 * bool(modifiers & ALT) + 4 * bool(modifiers & CTRL)
            yield _press(name, vk, name, modifiers), modified.format(number)
    for (name, vk, modifiers), sent in _PLAIN.items():
        yield _press(name, vk, name, modifiers, "\r" if name == "Enter" and not modifiers else ""), sent


def dead_keys() -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Yield what is pressed one after the other on a German keyboard, and what is to arrive."""
    for dead, vk, base, code, gives in (
        ("Backquote", 220, "E", "KeyE", "ê"),
        ("Equal", 221, "E", "KeyE", "é"),
        ("Backquote", 220, " ", "Space", "^"),
    ):
        yield [_press(dead, vk, "Dead", 0), _press(code, ord(base), gives, 0, gives)], gives


def _press(code: str, vk: int, key: str, modifiers: int, text: str = "") -> dict[str, Any]:
    event = {"code": code, "windowsVirtualKeyCode": vk, "key": key, "modifiers": modifiers}
    return {**event, "text": text, "unmodifiedText": text} if text else event
