"""How a kind of device looks at its console: prompts, modes, the pager, and what it knows to answer. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from vkpsim.cml.consoles.commands import EXEC, NUMBER, Action

Mode = Literal["user", "enable", "config"]

_IOS_ERROR: Final = ("                ^", "% Invalid input detected at '^' marker.", "")


@dataclass(frozen=True, slots=True)
class Family:
    """Devices that look alike.

    Attributes:
        prompts: By mode; `{host}` is the device's host name, `{mode}` the configuration mode, such as `config-if`.
        version: What `show version`, or `uname -a`, prints.
        pager: What stands at the end of a full page; empty: output goes on.
        erased: What the device prints to remove that again.
        asleep: Whether it prints no prompt after its boot before Return is pressed.
        unknown: Returns the answer to a command that it does not know.
        first: The mode after a boot.
        commands: Those that it knows beside the configuration's; a Cisco device knows them abbreviated, too.
        commits: Whether a configuration line has no effect before `commit`.
        executes_within: Whether `show` works in the configuration modes without `do`.
    """

    prompts: dict[Mode, str]
    version: tuple[str, ...]
    pager: str = ""
    erased: str = ""
    asleep: bool = False
    unknown: Callable[[str], tuple[str, ...]] = lambda _: _IOS_ERROR
    first: Mode = "user"
    commands: Mapping[str, Action] = field(default_factory=dict)
    commits: bool = False
    executes_within: bool = False

    @property
    def has_modes(self) -> bool:
        """Whether it has a privileged and a configuration mode."""
        return "config" in self.prompts


def _cisco(host: str, **other: str) -> dict[Mode, str]:
    return {
        "user": other.get("user", f"{host}>"),
        "enable": f"{host}{other.get('enable', '#')}",
        "config": f"{host}({{mode}}){other.get('enable', '#')}",
    }


_MORE: Final[dict[str, Any]] = {"pager": " --More-- ", "erased": "\b" * 9 + " " * 8 + "\b" * 9}

_LENGTH: Final[Mapping[str, Action]] = {**EXEC, f"terminal length {NUMBER}": "page"}
_SHELL: Final[Mapping[str, Action]] = {
    "show version": "version",
    "uname -a": "version",
    "show running-config": "configuration",
    "show run": "configuration",
    "show tech-support": "long",
    "show tech": "long",
    "dmesg": "long",
    "yes": "endless",
    "ls": "files",
}

_IOS: Final = Family(
    prompts=_cisco("{host}"),
    version=("Cisco IOS Software, IOSv Software (simulated), Version 15.9(3)M6", "{host} uptime is 1 minute"),
    asleep=True,
    commands=_LENGTH,
    **_MORE,
)
_IOSXE: Final = Family(
    prompts=_cisco("{host}"),
    version=("Cisco IOS XE Software (simulated), Version 17.12.01", "{host} uptime is 1 minute"),
    asleep=True,
    commands=_LENGTH,
    **_MORE,
)
_XR: Final = Family(
    prompts=_cisco("RP/0/RP0/CPU0:{host}", user="RP/0/RP0/CPU0:{host}#"),
    version=("Cisco IOS XR Software (simulated), Version 7.11.1",),
    first="enable",
    commands={
        **_LENGTH,
        "configure": "configure",
        "configure exclusive": "configure",
        "show controller dpc rm dpa": "nothing",
    },
    commits=True,
    executes_within=True,
    **_MORE,
)
_NXOS: Final = Family(
    prompts=_cisco("{host}", enable="# ", user="{host}# "),
    version=("Cisco Nexus Operating System (NX-OS) Software (simulated)", "NXOS: version 10.4(1)"),
    first="enable",
    commands={**_LENGTH, f"terminal session-timeout {NUMBER}": "nothing"},
    executes_within=True,
    pager="--More--",
    erased="\r        \r",
    unknown=lambda _: ("                 ^", "% Invalid command at '^' marker."),
)
_ASA: Final = Family(
    prompts=_cisco("{host}", enable="# ", user="{host}> "),
    version=("Cisco Adaptive Security Appliance Software (simulated) Version 9.20(2)",),
    commands={**EXEC, f"terminal pager {NUMBER}": "page"},
    executes_within=True,
    pager="<--- More --->",
    erased="\r              \r",
    unknown=lambda _: ("ERROR: % Invalid input detected at '^' marker.",),
)


_FRR: Final = Family(
    prompts=_cisco("{host}", enable="# ", user="{host}> "),
    version=("FRRouting 10.2.1 ({host}) (simulated).", "Copyright 1996-2005 Kunihiro Ishiguro, et al.; version 10.2.1"),
    first="enable",
    commands=_LENGTH,
    unknown=lambda command: (f"% Unknown command: {command}",),
)


def _linux(prompt: str, version: str) -> Family:
    return Family(
        prompts={"user": prompt},
        version=(version,),
        commands=_SHELL,
        unknown=lambda command: (f"-sh: {command.split()[0]}: not found",),
    )


_ALPINE: Final = _linux("{host}:~# ", "Linux {host} 6.6.31-0-virt #1-Alpine SMP x86_64 Linux")
_UBUNTU: Final = _linux("cisco@{host}:~$ ", "Linux {host} 6.8.0-31-generic #31-Ubuntu SMP x86_64 GNU/Linux")
_SERVER: Final = _linux("cisco@{host}:~$ ", "Linux {host} 6.1.2-tinycore64 #1 SMP x86_64 GNU/Linux")

_FAMILIES: Final = (
    (("iosxrv", "ios-xrd"), _XR),
    (("nxosv",), _NXOS),
    (("frr",), _FRR),
    (("asav",), _ASA),
    (("iosv", "iol", "ioll2"), _IOS),
    (("cat", "csr"), _IOSXE),
    (("ubuntu",), _UBUNTU),
    (("server",), _SERVER),
)


def family_of(definition: str) -> Family:
    """Return how a device of a node definition looks; those without a family of their own are like Alpine Linux."""
    for prefixes, family in _FAMILIES:
        if definition.startswith(prefixes):
            return family
    return _ALPINE
