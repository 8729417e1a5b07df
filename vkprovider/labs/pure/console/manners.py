"""How kinds of devices talk at their consoles, by node definition."""

import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason

_LINE_CHARS_MAX: Final = 256
"""A prompt, pager or question is shorter; no pattern is tried on a longer line."""
_LINE_MAX: Final = 3
"""The last serial line that CML's schema allows a device."""


class Manner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """How a kind of device talks. All patterns are for the whole of the last line, without blanks around it.

    Attributes:
        prompt: The prompt at which it awaits a command.
        configuring: The prompt of a mode in which a command changes the device.
        question: What it asks instead: a login, a password, a confirmation.
        pager: What stands at the end of a full page.
        more: The keys for the next page.
        leave: What leads from `configuring` to `prompt`.
        interrupt: The keys that end a command.
        quotes: Whether a POSIX shell reads the line, so that a quoted word stays whole.
        line: The number of the serial line at which it does; None: as known by the node definition.
    """

    prompt: str
    configuring: str = ""
    question: str = ""
    pager: str = ""
    more: str = " "
    leave: str = "end\r"
    interrupt: str = "\x03"
    quotes: bool = False
    line: Annotated[int, msgspec.Meta(ge=0, le=_LINE_MAX)] | None = None

    def is_prompt(self, line: str) -> bool:
        """Return whether a line is the prompt at which a command can be typed."""
        return self._matches(self.prompt, line) and not self.is_configuring(line)

    def is_configuring(self, line: str) -> bool:
        """Return whether a line is the prompt of a configuration mode."""
        return self._matches(self.configuring, line)

    def is_question(self, line: str) -> bool:
        """Return whether a line asks for something else than a command."""
        return self._matches(self.question, line)

    def is_pager(self, line: str) -> bool:
        """Return whether a line says that a key is awaited before output goes on."""
        return self._matches(self.pager, line)

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {text: re.compile(text) for text in (self.prompt, self.configuring, self.question, self.pager) if text}

    def _matches(self, text: str, line: str) -> bool:
        bare = line.strip()
        return bool(text) and len(bare) <= _LINE_CHARS_MAX and self._patterns[text].fullmatch(bare) is not None


_HOST: Final = r"[\w.\-/:@]{1,64}"
_LOGIN: Final = r"(?:.*\b)?(?i:username|login|password|passcode)(?: for \S+)?:"
_CONFIRM: Final = r".*\[(?:yes/no|y/n|no|yes|confirm)[^\]]*\]\s?[:?]*"
_QUESTION: Final = f"{_LOGIN}|{_CONFIRM}"
_MORE: Final = r"-+ ?[Mm]ore ?-+"
_SHELL: Final = r"[\w.@:~/\-\[\] ]{0,128}[$#]"

_IOS: Final = Manner(
    prompt=rf"{_HOST}[>#]",
    configuring=rf"{_HOST}\([\w\-. /:]{{1,64}}\)#",
    question=_QUESTION,
    pager=_MORE,
    interrupt="\x1e",  # Ctrl-^, Cisco's escape character
)
_NXOS: Final = msgspec.structs.replace(_IOS, interrupt="\x03")
_ASA: Final = msgspec.structs.replace(_NXOS, pager=r"<-+ ?More ?-+>")
_LINUX: Final = Manner(prompt=_SHELL, question=_LOGIN, pager=r"--More--(?: ?\(\d+%.*\))?", quotes=True)
KINDS: Final[Mapping[str, Manner]] = MappingProxyType(
    {
        "ios": _IOS,
        "iosxe": _IOS,
        "iosxr": _NXOS,
        "nxos": _NXOS,
        "asa": _ASA,
        "linux": _LINUX,
        "viptela": msgspec.structs.replace(_NXOS, prompt=rf"{_HOST}[>#]|{_SHELL}"),
        "frr": msgspec.structs.replace(_NXOS, prompt=rf"{_HOST}[>#]|{_SHELL}"),
        "firepower": msgspec.structs.replace(_ASA, prompt=rf">|{_HOST}[>#]|{_SHELL}", pager=rf"{_ASA.pager}|{_MORE}"),
        "aireos": Manner(
            prompt=r"\([\w\-. ]{1,64}\) >",
            configuring=r"\([\w\-. ]{1,64}\) [\w\- ]{1,64}>",
            question=rf"{_QUESTION}|User:|.*\((?:y/n|Y/N|y/N|Y/n)\)\s?[:?]*",
            pager=r"--More(?:--)? or \(q\)uit.*|Press Enter to continue.*",
            leave="exit\r",
        ),
    }
)
"""Manners by kind."""

_BY_DEFINITION: Final = (
    ("iosxrv", "iosxr"),
    ("ios-xrd", "iosxr"),
    ("nxosv", "nxos"),
    ("asav", "asa"),
    ("xrd", "iosxr"),
    ("iosxe", "iosxe"),
    ("iosv", "ios"),
    ("iol", "ios"),
    ("pagent", "ios"),
    ("cat8", "iosxe"),
    ("cat9", "iosxe"),
    ("csr1000v", "iosxe"),
    ("cat-sdwan-edge", "iosxe"),
    ("cat-sdwan-", "viptela"),
    ("viptela-", "viptela"),
    ("ftdv", "firepower"),
    ("fmcv", "firepower"),
    ("vwlc", "aireos"),
    ("frr", "frr"),
    ("alpine", "linux"),
    ("chrome", "linux"),
    ("chromium", "linux"),
    ("coreos", "linux"),
    ("desktop", "linux"),
    ("firefox", "linux"),
    ("server", "linux"),
    ("trex", "linux"),
    ("ubuntu", "linux"),
    ("net-tools", "linux"),
    ("wan_emulator", "linux"),
    ("dnsmasq", "linux"),
    ("netflow", "linux"),
    ("nginx", "linux"),
    ("radius", "linux"),
    ("snort", "linux"),
    ("splunk", "linux"),
    ("syslog", "linux"),
    ("tacplus", "linux"),
    ("thousandeyes-ea", "linux"),
)
"""The beginning of a node definition's name, and its kind."""
WITHOUT_CONSOLE: Final = frozenset({"external_connector", "unmanaged_switch"})
"""The node definitions whose devices are part of CML itself and never have a console."""

_SHELL_AT_SECOND_LINE: Final = frozenset(
    {"chrome", "chromium", "dnsmasq", "firefox", "nginx", "splunk", "syslog", "tacplus", "thousandeyes-ea"}
)
"""Containers whose first line is their program's: `default_console: 1` in CiscoLearning/cml-docker-containers."""


class Manners:
    """The manners of all node definitions.

    Args:
        own: Those that a setting adds or replaces, by node definition.
    """

    def __init__(self, own: Mapping[str, Manner] = MappingProxyType({})) -> None:
        self._own = own

    def of(self, definition: str) -> Manner | None:
        """Return how devices of a node definition talk; None if that is not known."""
        if definition in self._own:
            return self._own[definition]
        return next((KINDS[kind] for start, kind in _BY_DEFINITION if definition.startswith(start)), None)

    def line(self, definition: str) -> int:
        """Return the number of the serial line at which devices of a node definition take commands."""
        own = self._own.get(definition)
        if own is not None and own.line is not None:
            return own.line
        return int(definition in _SHELL_AT_SECOND_LINE)


def read_manners(table: object) -> Manners:
    """Read the table of a setting.

    Args:
        table: Node definition → the name of a kind, or the attributes of a `Manner`; `like` names a kind from which
            the others are taken: `{"acme-fw": {"like": "ios", "prompt": "fw[>#]"}, "acme-os": "linux"}`.

    Raises:
        InputError: `SettingInvalid`: it has another form, or a pattern is wrong.
    """
    if not isinstance(table, dict):
        raise _invalid("is not a mapping of node definitions")
    return Manners({str(name): _manner(str(name), row) for name, row in table.items()})


def _manner(name: str, row: Any) -> Manner:
    given = {"like": row} if isinstance(row, str) else dict(row) if isinstance(row, dict) else None
    if given is None:
        raise _invalid(f"{name} is neither the name of a kind nor a mapping")
    like = given.pop("like", None)
    if like is not None and like not in KINDS:
        raise _invalid(f"{name} is like {like!r}; known are {', '.join(KINDS)}")
    base = msgspec.structs.asdict(KINDS[like]) if like is not None else {}
    try:
        manner = msgspec.convert({**base, **given}, Manner)
        for pattern in (manner.prompt, manner.configuring, manner.question, manner.pager):
            re.compile(pattern)
    except (msgspec.ValidationError, re.error) as error:
        raise _invalid(f"{name}: {error}") from None
    return manner


def _invalid(what: str) -> InputError:
    return InputError(
        StartReason.SETTING_INVALID, f"VKPROVIDER_CONSOLE_PROMPTS: {what}; expected name: kind, or {{prompt: …}}"
    )
