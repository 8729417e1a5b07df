"""Checks of the installation itself."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from vkprovider.doctor.findings import SKEW_S, Finding, Level, fault, note, once, unchecked
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.doctor.rights import CheckedRight, by_what
from vkprovider.lablet.reasons import ConditionReason
from vkprovider.labs.pure.worker.endpoint import KUBERNETES_OLDEST
from vkprovider.labs.settings.services import plain_text
from vkprovider.platform import wellknown
from vkprovider.platform.messages import sentences
from vkprovider.platform.objects import Lease
from vkprovider.platform.settings import no_effect

SETTINGS: Final = "vkprovider-settings"
"""The ConfigMap that the Deployment reads."""
_RIGHTS_MAX: Final = 5
_INSTALL: Final = (
    "kubectl apply -k manifests/overlays/default, or the overlay that you install with; with Helm: helm upgrade -i "
    "(docs/install.md)"
)
"""All of it: what is missing is seldom missing alone."""


def check_version(version: str) -> list[Finding]:
    """Check the API server's version, such as `v1.36.3+k3s1`."""
    numbers = version.removeprefix("v").split(".")[:2]
    try:
        known = tuple(int(number) for number in numbers)
    except ValueError:
        return [unchecked("Cluster", DoctorReason.VERSION_UNKNOWN, f"{version!r} is not a Kubernetes version")]
    if known >= KUBERNETES_OLDEST:
        return []
    oldest = ".".join(map(str, KUBERNETES_OLDEST))
    text = f"the API server is {version}, the oldest supported release is {oldest}"
    return [fault("Cluster", DoctorReason.UNSUPPORTED_KUBERNETES, text, "Upgrade the cluster.")]


def check_crd(wanted: dict[str, Any], found: dict[str, Any] | None) -> list[Finding]:
    """Compare a custom resource definition of the cluster with the one of this program."""
    name = wanted["metadata"]["name"]
    about = f"CustomResourceDefinition/{name}"
    if found is None:
        return [fault(about, DoctorReason.CRD_MISSING, "it is not installed", _INSTALL)]
    place = _difference(wanted["spec"], found.get("spec", {}), "spec")
    if place:
        text = f"{place} differs from this version of vkprovider"
        return [
            fault(
                about,
                DoctorReason.CRD_DIFFERS,
                text,
                f"{_INSTALL}; or use the version of vkprovider that the cluster was installed with",
            )
        ]
    conditions = found.get("status", {}).get("conditions", [])
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        said = next((c.get("message", "") for c in conditions if c["status"] != "True"), "")
        return [
            fault(about, DoctorReason.CRD_NOT_ESTABLISHED, said or "the API server does not serve it yet", _INSTALL)
        ]
    return []


def _difference(wanted: Any, found: Any, place: str) -> str:
    """Return the first path that differs; fields that the API server adds at the top do not count."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        deep = place.count(".") > 0
        for key in [*wanted, *(set(found) - set(wanted) if deep else ())]:
            if key not in wanted or key not in found:
                return f"{place}.{key}"
            if inner := _difference(wanted[key], found[key], f"{place}.{key}"):
                return inner
        return ""
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return place
        pairs = enumerate(zip(wanted, found, strict=True))
        return next((inner for i, (a, b) in pairs if (inner := _difference(a, b, f"{place}[{i}]"))), "")
    return "" if wanted == found else place


def check_installed(namespace: str, homes: Collection[str]) -> list[Finding]:
    """Check that the cluster's installation is in the namespace that is examined.

    Args:
        namespace: That one.
        homes: Those to whose ServiceAccounts the ClusterRoleBinding gives the provider's rights; empty without one.
    """
    if not homes or namespace in homes:
        return []
    home = min(homes)
    text = (
        f"vkprovider is installed in the namespace {home}, and a cluster has one installation: what runs in "
        f"{namespace} does nothing"
    )
    remedy = f"vkprovider doctor --namespace {home}; to remove or move it: docs/install.md, Another namespace"
    return [fault(f"ClusterRoleBinding/{wellknown.SERVICE_ACCOUNT}", DoctorReason.INSTALLED_ELSEWHERE, text, remedy)]


def check_namespace(namespace: str, *, exists: bool, account: bool) -> list[Finding]:
    """Check that the provider's namespace and ServiceAccount exist."""
    if not exists:
        return [fault(f"Namespace/{namespace}", DoctorReason.NAMESPACE_MISSING, "it does not exist", _INSTALL)]
    if not account:
        about = f"ServiceAccount/{namespace}/{wellknown.SERVICE_ACCOUNT}"
        return [fault(about, DoctorReason.SERVICE_ACCOUNT_MISSING, "it does not exist", _INSTALL)]
    return []


def needed_rights(rights: Sequence[CheckedRight], settings: Mapping[str, str]) -> list[CheckedRight]:
    """Return the rights without the one that an admin may take away, where no worker is made for an agent.

    Args:
        rights: Those of the shipped manifests.
        settings: Those of the provider's ConfigMap, by variable.
    """
    given_up = {_REGISTERS} if settings.get("VKPROVIDER_TUNNEL_REGISTER") == "deny" else set()
    return [right for right in rights if right not in given_up]


_REGISTERS: Final = CheckedRight("create", wellknown.GROUP, "cmlworkers")


def check_rights(account: str, missing: Sequence[CheckedRight]) -> list[Finding]:
    """Report the rights that the provider lacks."""
    texts = [f"{verbs} {what}" for what, verbs in by_what(missing).items()]
    why = f"may not {sentences(texts, _RIGHTS_MAX)}"
    return [fault(f"ServiceAccount/{account}", DoctorReason.RIGHTS_MISSING, why, _INSTALL)] if texts else []


def check_transport(namespace: str, settings: Mapping[str, str]) -> list[Finding]:
    """Report services that the provider reaches in plain text.

    Args:
        namespace: The provider's.
        settings: Those of its ConfigMap, by variable.
    """
    about = f"ConfigMap/{namespace}/{SETTINGS}"
    texts = plain_text(settings).values()
    return (
        [note(about, ConditionReason.TRANSPORT_INSECURE, "; ".join(texts), "Give them https:// URLs.")] if texts else []
    )


def check_settings(namespace: str, unread: Mapping[str, str]) -> list[Finding]:
    """Report names in the provider's ConfigMap that no program reads.

    Args:
        namespace: The provider's.
        unread: The variables of its ConfigMap that nobody reads, each with the one that was probably meant.
    """
    texts = [no_effect(name, meant) for name, meant in unread.items()]
    about = f"ConfigMap/{namespace}/{SETTINGS}"
    remedy = DoctorReason.SETTING_UNKNOWN.remedy
    return [note(about, DoctorReason.SETTING_UNKNOWN, "; ".join(texts), remedy)] if texts else []


def check_replicas(namespace: str, alive: Collection[str], silent: Mapping[str, float]) -> list[Finding]:
    """Check that a replica of the provider runs.

    Args:
        namespace: The provider's.
        alive: Replicas whose Lease is being renewed.
        silent: Those whose Lease is not: seconds since its last renewal, by the clock of this machine.
    """
    findings = []
    if not alive:
        text = "no replica of the provider runs, so nothing happens, and what objects report may be out of date"
        remedy = f"Start it; if it should be running: kubectl -n {namespace} get pods, and look at its log."
        findings.append(fault(f"Namespace/{namespace}", DoctorReason.NO_REPLICA, text, remedy))
    for replica, age_s in silent.items():
        heir = "another replica takes over its Nodes" if alive else "its Nodes wait for a replica"
        text = f"its Lease was not renewed for {age_s:.0f} s; {heir}"
        findings.append(note(f"Lease/{namespace}/vkprovider-replica-{replica}", DoctorReason.REPLICA_SILENT, text))
    return findings


def check_versions(namespace: str, versions: Mapping[str, str]) -> list[Finding]:
    """Check that living replicas are of one version.

    Args:
        namespace: The provider's.
        versions: Replica: its version; empty for one that is so old that it does not say.
    """
    if len(set(versions.values())) <= 1:
        return []
    told = "; ".join(f"{replica} is {version or 'older'}" for replica, version in sorted(versions.items()))
    text = f"replicas of different versions share the Nodes: {told}"
    remedy = f"During an upgrade wait for its end: kubectl -n {namespace} rollout status deployment/vkprovider"
    return [note(f"Namespace/{namespace}", DoctorReason.VERSIONS_DIFFER, text, remedy)]


def check_owner(worker: str, lease: Lease | None, alive: Collection[str]) -> list[Finding]:
    """Check that a living replica owns a worker's Node."""
    holder = lease.spec.holder_identity if lease is not None else None
    if not alive or holder in alive:
        return []
    text = f"replica {holder}, which owns it, does not live" if holder else "no replica owns it"
    remedy = "Wait for the takeover, at most LEADER_LEASE_TTL; then look at the provider's log."
    return [fault(f"CMLWorker/{worker}", DoctorReason.NO_OWNER, text, remedy)]


def check_heartbeat(lease: Lease | None, alive: Collection[str], now_s: float) -> list[Finding]:
    """Check that the Lease of a Node is renewed in time.

    Args:
        lease: In `kube-node-lease`.
        alive: Replicas that live; if there are none, that is the fault.
        now_s: Unix time by the API server's clock.
    """
    if not alive or lease is None or not lease.spec.renew_time:
        return []
    duration_s = lease.spec.lease_duration_seconds or 0
    age_s = now_s - datetime.fromisoformat(lease.spec.renew_time).timestamp()
    if age_s <= duration_s + SKEW_S:
        return []
    text = f"not renewed for {age_s:.0f} s, its duration is {duration_s} s: the Node turns NotReady"
    remedy = f"Check that replica {lease.spec.holder_identity} reaches the API server, and look at its log."
    return [fault(f"Lease/{lease.metadata.namespace}/{lease.metadata.name}", DoctorReason.LEASE_EXPIRED, text, remedy)]


def check_skew(lease: Lease) -> list[Finding]:
    """Report a clock that a replica has found to be off, and says so on its Lease."""
    about = f"Lease/{lease.metadata.namespace}/{lease.metadata.name}"
    said = lease.metadata.annotations.get(wellknown.ANNOTATION_CLOCK_SKEW, "")
    if not said:
        return []
    text = f"the clock of the machine of {lease.metadata.name} is {said.removeprefix('-')} s "
    text += "behind the API server's" if said.startswith("-") else "ahead of the API server's"
    return [note(about, DoctorReason.CLOCK_SKEW, f"{text}; no lab ends by it", "Run a time service there.")]


def sort(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort by level: faults, what could not be checked, notes; otherwise keep the order."""
    order = list(Level)
    return tuple(sorted(once(findings), key=lambda finding: order.index(finding.level)))
