"""Variables that look like settings and that nobody reads, each with the setting that was probably meant. Pure."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from pydantic import AliasChoices, AliasPath

from vkprovider.agent import settings as agent
from vkprovider.carriers import settings as tunnels
from vkprovider.labs.settings import cluster, consoles, kubelet, services
from vkprovider.mux import settings as mux
from vkprovider.mux.relay import settings as relay
from vkprovider.platform import settings
from vkprovider.platform.settings import Group
from vkprovider.portal import settings as portal

_GROUPS: Final[tuple[type[Group], ...]] = (
    agent.AgentSettings,
    agent.DialSettings,
    settings.KubeSettings,
    cluster.LabletSettings,
    cluster.PortSettings,
    settings.ReplicaSettings,
    cluster.WorkerSettings,
    consoles.ConsoleSettings,
    kubelet.KubeletSettings,
    mux.DebugWebSettings,
    mux.MuxSettings,
    portal.PortalSettings,
    relay.RelaySettings,
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
