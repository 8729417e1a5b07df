"""Workbenches: whether the policy lets them through, whether somebody can open one, and what stops fork bombs."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import names
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Node
from vkprovider.portal.checks.doors import SETTINGS, restart
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.settings import PortalSettings

POLICY: Final = "vkprovider-confine-portal"
_QUOTED: Final = re.compile(r"['\"]([^'\"]+)['\"]")
_NAMED_MAX: Final = 5
NODES_ASKED_MAX: Final = 20
"""The most nodes whose kubelet is asked for its configuration."""


class _PolicyVariable(msgspec.Struct, frozen=True):
    name: str
    expression: str = ""


class _PolicySpec(msgspec.Struct, frozen=True):
    variables: list[_PolicyVariable] = []


class ConfinePolicy(msgspec.Struct, frozen=True):
    """The policy that confines the portal."""

    spec: _PolicySpec = _PolicySpec()

    def listed(self, variable: str) -> set[str]:
        """Return the texts that a variable lists."""
        expressions = (each.expression for each in self.spec.variables if each.name == variable)
        return {text for expression in expressions for text in _QUOTED.findall(expression)}


class _Limits(msgspec.Struct, frozen=True, rename="camel"):
    pod_pids_limit: int = -1


class KubeletConfig(msgspec.Struct, frozen=True):
    """What a kubelet says of its configuration, at `configz`."""

    kubeletconfig: _Limits = _Limits()

    @property
    def limits_pids(self) -> bool:
        """Whether a Pod can have so many processes at most."""
        return self.kubeletconfig.pod_pids_limit > 0


def is_ordinary(node: Node) -> bool:
    """Return whether a Node is one that a workbench may run on."""
    return node.metadata.labels.get(names.LABEL_COMPONENT) != names.COMPONENT_VNODE


def check_policy(config: PortalConfig, policy: ConfinePolicy | None) -> list[Finding]:
    """Check that the policy of the portal lists what workbenches need."""
    if policy is None:
        return []
    kinds = config.workbenches.values()
    images = {each.image for each in kinds} | {each.init.image for each in kinds if each.init is not None}
    drivers = {volume.csi.driver for each in kinds for volume in each.volumes.values() if volume.csi is not None}
    found = []
    for variable, needed in (("images", images), ("drivers", drivers)):
        if missing := sorted(needed - policy.listed(variable)):
            text = f"its variable {variable} does not list {listed(missing, _NAMED_MAX)}: no such workbench is made"
            remedy = f"kubectl edit validatingadmissionpolicy {POLICY}, or your overlay: docs/workbench.md"
            found.append(fault(f"ValidatingAdmissionPolicy/{POLICY}", DoctorReason.WORKBENCH_NOT_ALLOWED, text, remedy))
    return found


def check_hosts(namespace: str, settings: PortalSettings) -> list[Finding]:
    """Check that somebody can open a workbench in a browser."""
    if settings.bench_hosts is not None:
        return []
    text = "VKPROVIDER_PORTAL_WORKBENCH_HOSTS is not set: no page leads to a workbench"
    remedy = f"Set it to a wildcard host that leads to the portal, such as *.wb.example.com; then {restart(namespace)}"
    return [note(f"ConfigMap/{namespace}/{SETTINGS}", DoctorReason.WORKBENCH_WITHOUT_HOST, text, remedy)]


def check_pids(found: Mapping[str, KubeletConfig | None]) -> list[Finding]:
    """Check that no workbench can take all processes of a node.

    Args:
        found: What kubelets say, by Node; None if this user may not ask.
    """
    unlimited = sorted(name for name, config in found.items() if config is not None and not config.limits_pids)
    if not unlimited:
        return []
    text = f"the kubelet of {listed(unlimited, _NAMED_MAX)} has no podPidsLimit: a fork bomb in a workbench stops it"
    remedy = "Set podPidsLimit in the configuration of these kubelets, such as 1024; docs/workbench.md says more"
    return [note(f"Node/{unlimited[0]}", DoctorReason.PIDS_UNLIMITED, text, remedy)]


def asked(nodes: Iterable[Node]) -> list[str]:
    """Return the names of the nodes whose kubelets are asked."""
    return sorted(node.metadata.name for node in nodes if is_ordinary(node))[:NODES_ASKED_MAX]
