"""The words of `kubectl exec`: a line to type, a shell that a person wants, or files that no console carries.

A console takes one line and no words. A POSIX shell finds the words again if they are quoted; other devices do not.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import InputError

COMMAND_CHARS_MAX: Final = 240
"""IOS accepts 254 characters at a prompt."""
_SHELLS: Final = frozenset(
    {"ash", "bash", "cmd", "csh", "dash", "fish", "ksh", "powershell", "pwsh", "sh", "tcsh", "zsh"}
)
_BEFORE: Final = re.compile(r"exec|env|busybox|\w+=.*")
"""A word that may stand before the name of a shell, without the path of its program."""
_SCRIPT: Final = re.compile(r"-[A-Za-z]*c")
"""The option of a shell behind which a script stands."""
_OPERATORS: Final = frozenset("();<>|&")
_TAKEN_APART: Final = re.compile(r"""[\s"'`]""")
_IS_DIRECTORY: Final = 3
"""The words of `test -d PATH`, which `kubectl cp` asks first."""


def line_of(words: Sequence[str], *, quotes: bool) -> str:
    """Return the line to type: one word as it is, several with blanks between them, quoted where that is understood.

    Args:
        words: What the user gives behind `--`.
        quotes: Whether a POSIX shell reads the line, which knows quotes.

    Raises:
        InputError: `CommandInvalid`.
    """
    if len(words) == 1:
        line = words[0].strip()
    elif quotes:
        line = shlex.join(words)
    else:
        for word in words:
            if not word or _TAKEN_APART.search(word):
                text = (
                    f"the device would take the word {word!r} apart, because it knows no quotes: write the line as one"
                    " word, as it is to be typed"
                )
                raise InputError(ConsoleReason.COMMAND_INVALID, text)
        line = " ".join(words)
    if not line or len(line) > COMMAND_CHARS_MAX or not line.isprintable():
        text = f"the command must be one line of 1 to {COMMAND_CHARS_MAX} printable characters"
        raise InputError(ConsoleReason.COMMAND_INVALID, text)
    return line


def is_shell(words: Sequence[str]) -> bool:
    """Return whether words ask for a shell for a person, as the button of a user interface does.

    >>> is_shell(["/bin/bash", "-l"]), is_shell(["sh", "-c", "clear; (bash || sh)"]), is_shell(["sh", "-c", "ls"])
    (True, True, False)
    """
    return any(_is_bare_shell(command) for command in _commands(words))


def moves_files(words: Sequence[str]) -> bool:
    """Return whether words are what `kubectl cp` and its like run inside a container.

    >>> moves_files(["tar", "-xmf", "-", "-C", "/tmp"]), moves_files(["tar", "tf", "a.tar"])
    (True, False)
    """
    return any(_moves_files(command) for command in _commands(words))


def _moves_files(command: Sequence[str]) -> bool:
    match _program(command), *command[1:]:
        case "tar", *rest:
            return any(word in {"-", "--file=-"} or re.fullmatch(r"-?[A-Za-z]*f-", word) for word in rest)
        case "test", "-d", *_:
            return len(command) == _IS_DIRECTORY
        case "rsync", *rest:
            return "--server" in rest
        case _:
            return False


def _is_bare_shell(command: Sequence[str]) -> bool:
    """Return whether a command is a shell without a script; a number is the rest of a redirection: `2>/dev/null`."""
    rest = list(_shell(command))
    return bool(rest) and all(word.startswith("-") or word.isdigit() for word in rest[1:])


def _shell(command: Sequence[str]) -> Sequence[str]:
    """Return a command from the name of a shell on; nothing if it does not call one."""
    at = next((at for at, word in enumerate(command) if not _BEFORE.fullmatch(_name(word))), len(command))
    return command[at:] if _program(command[at:]) in _SHELLS else ()


def _program(command: Sequence[str]) -> str:
    return _name(command[0]).removesuffix(".exe") if command else ""


def _name(word: str) -> str:
    return PurePosixPath(word).name if "=" not in word else word


def _commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands of a script that is given to a shell; else the words themselves."""
    script = _script(_shell(words))
    if script is None:
        yield words
        return
    lexer = shlex.shlex(script.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    command: list[str] = []
    try:
        for token in lexer:
            if _OPERATORS.issuperset(token):
                yield command
                command = []
            else:
                command.append(token)
    except ValueError:  # a quote is open: the shell refuses it
        return
    yield command


def _script(shell: Sequence[str]) -> str | None:
    for at, word in enumerate(shell[1:-1], 1):
        if _SCRIPT.fullmatch(word):
            return shell[at + 1]
        if not word.startswith("-"):
            return None
    return None
