"""A process: its settings, read from the environment, names there that nobody reads, and its run."""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Coroutine, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn, TypeVar

import click
import structlog
from pydantic import AliasChoices, AliasPath, ValidationError

from vkprovider.agent import settings as agent
from vkprovider.carriers import settings as tunnels
from vkprovider.labs.settings import cluster, services
from vkprovider.mux import settings as mux
from vkprovider.platform import logs, settings
from vkprovider.platform.errors import InputError
from vkprovider.platform.settings import Group, LogSettings, no_effect
from vkprovider.portal import settings as portal

_log: Final = structlog.get_logger(__name__)

_GROUPS: Final[tuple[type[Group], ...]] = (
    agent.AgentSettings,
    agent.DialSettings,
    settings.KubeSettings,
    cluster.LabletSettings,
    cluster.PortSettings,
    settings.ReplicaSettings,
    cluster.WorkerSettings,
    cluster.ConsoleSettings,
    cluster.KubeletSettings,
    mux.DebugWebSettings,
    mux.MuxSettings,
    portal.PortalSettings,
    mux.RelaySettings,
    services.ContentSettings,
    services.GraderSettings,
    settings.HttpSettings,
    services.LdsSettings,
    settings.LogSettings,
    services.PackageSettings,
    services.UnusedSettings,
    tunnels.HttpTunnelSettings,
    tunnels.MqttSettings,
    tunnels.TunnelSettings,
)


def _names_of(alias: str | AliasPath | AliasChoices | None) -> list[str]:
    """Return the variables of one setting."""
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [name for name in choices if isinstance(name, str)]


KNOWN: Final = frozenset(
    name for group in _GROUPS for field in group.model_fields.values() for name in _names_of(field.validation_alias)
)
"""The names of all settings of all processes: a replica and an agent may share a file of them."""

_PREFIX: Final = "VKPROVIDER_"
_OTHERS: Final = re.compile(r"POD_|VKPROVIDER_(SANDBOX|SIM_|TEST_|(HELM|URL|TOKEN|SERVICE_ACCOUNT|CACERT)$)")
"""Variables of other programs, and those that a Pod's template fills from the Pod."""
_SERVICE: Final = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
"""The ends of variables that a Pod gets for each Service of its namespace."""
_SERVICE_URL: Final = re.compile(r"(tcp|udp|sctp)://")
_LIKE: Final = 0.8
_ALIKE: Final = 0.92
"""How similar a name is that was meant: one with our prefix, and any other one, which may be somebody else's."""


def unknown(given: Mapping[str, str]) -> dict[str, str]:
    """Return the names that nobody reads, each with the setting that was probably meant, or "".

    Args:
        given: Variables with their values; those of others are passed over.

    >>> unknown({"WORKER_PROBE_SECOND": "3", "PATH": "/bin"})
    {'WORKER_PROBE_SECOND': 'WORKER_PROBE_SECONDS'}
    """
    found = {}
    for name, value in given.items():
        if name in KNOWN or not name.isupper() or _is_of_others(name, value):
            continue
        ours = name.startswith(_PREFIX)
        meant = get_close_matches(name, KNOWN, 1, _LIKE if ours else _ALIKE)
        if ours or meant:
            found[name] = meant[0] if meant else ""
    return found


def _is_of_others(name: str, value: str) -> bool:
    return bool(_OTHERS.match(name) or _SERVICE.search(name) or _SERVICE_URL.match(value))


S = TypeVar("S")


def faults_of(error: ValidationError) -> list[str]:
    """Return which settings are wrong, and why, one line each."""
    return [f"{'.'.join(map(str, each['loc'][1:])) or 'settings'}: {each['msg']}" for each in error.errors()]


def settings_from(read: Callable[[Mapping[str, str]], S]) -> S:
    """Return the environment as `read` parses it.

    Raises:
        click.ClickException: A setting is wrong; it names each of them.
    """
    try:
        return read(os.environ)
    except ValidationError as error:
        faults = "".join(f"\n  {fault}" for fault in faults_of(error))
        raise click.ClickException(f"a setting is wrong:{faults}") from None
    except InputError as error:
        raise click.ClickException(str(error)) from None


def start_log(settings: LogSettings) -> None:
    """Write logs as the settings say, and first what the environment sets that nobody reads."""
    logs.set_up(settings.level, settings.format)
    for name, meant in unknown(os.environ).items():
        _log.warning("a setting has a name that nobody reads", setting=name, why=no_effect(name, meant))


def run_to_end(
    process: Coroutine[Any, Any, None], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> NoReturn:
    """Run a process until it ends, and exit with 0.

    Raises:
        click.ClickException: What a setting names cannot be used.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(process)
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0)
