"""Reads what concerns muxes and relays, and passes it to the checks."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from vkprovider.doctor.findings import Finding
from vkprovider.doctor.reading import UserReading
from vkprovider.lablet import names
from vkprovider.mux.checks import relays, services
from vkprovider.mux.checks.programs import Workload, settings_of
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import MuxRef
from vkprovider.mux.settings import MuxSettings
from vkprovider.platform.objects import CustomResource

_BALANCED: Final = {"fieldSelector": "spec.type=LoadBalancer"}


async def check_relays(reading: UserReading, kubelet: str) -> list[Finding]:
    """Check the relays of a cluster.

    Args:
        reading: Reads it.
        kubelet: The ports of the provider's kubelet API.
    """
    found: list[Finding] = []
    for each in await reading.list("/apis/apps/v1/daemonsets", Workload, "DaemonSet", relays.LABELLED):
        about = f"DaemonSet/{each.metadata.namespace}/{each.metadata.name}"
        found += relays.check_ports(about, await settings_of(reading, each, about), kubelet)
    return found


async def check_muxes(reading: UserReading, namespace: str, definitions: Sequence[CustomResource]) -> list[Finding]:
    """Check the muxes to which definitions lend ports, and all others where the program that serves them is installed.

    Args:
        reading: Reads the cluster.
        namespace: The provider's, where that program is.
        definitions: Those of the cluster.
    """
    lends = services.lent_to(definitions, namespace)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{names.MUX_PROXY}"
    about = f"Deployment/{namespace}/{names.MUX_PROXY}"
    program = await reading.glance(path, Workload)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{muxnames.MUX_SERVICE_ACCOUNT}"
    if not (lends or program is not None or await reading.glance(account, dict) is not None):
        return []
    settings = _settings(await settings_of(reading, program, about) if program is not None else {})
    default = settings.default_namespace or namespace
    lends = services.lent_to(definitions, default)
    balanced = await reading.list("/api/v1/services", services.BalancedService, "Service", _BALANCED)
    there = {each.ref: each for each in balanced}
    channels = services.channels_of(balanced, settings.prefix, default)
    served_by = await _served_by_service_lb(reading)
    found: list[Finding] = []
    for ref in {**dict.fromkeys(lends), **services.muxes_of(balanced, settings.prefix)}:
        if ref in there:
            found += services.check_mux(there[ref], lends.get(ref, []), channels.get(ref, []), served_by.get(ref))
        elif not reading.failed("Service"):
            found += services.missing(ref, definitions)
    return found


def _settings(variables: Mapping[str, str]) -> MuxSettings:
    """Return the settings of the program; the defaults where they cannot be used, which keeps it from starting."""
    try:
        return MuxSettings.model_validate({name: value for name, value in variables.items() if value})
    except ValidationError:
        return MuxSettings()


async def _served_by_service_lb(reading: UserReading) -> dict[MuxRef, services.BalancerSet]:
    found: dict[MuxRef, services.BalancerSet] = {}
    for label in services.SERVICE_LB_LABELS:
        sets = await reading.list(
            "/apis/apps/v1/daemonsets", services.BalancerSet, "DaemonSet", {"labelSelector": label}
        )
        found |= {each.service: each for each in sets}
    return found
