"""Checks of CMLWorkers: what the provider reports, and what can be seen without it."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError, OutsideError, TlsFailed, Unauthorized
from vkprovider.api.models import CMLWorkerSpec, parse_worker_spec
from vkprovider.api.objects import CustomResource, Node
from vkprovider.api.reasons import WORKERS
from vkprovider.controllers.context import Tuning
from vkprovider.doctor.findings import Finding, fault, note, once, remedy_of, unchecked
from vkprovider.doctor.setup import check_clock
from vkprovider.domain.worker import node as nodes

KEYS: Final = ("username", "password")
PATTY_PORTS: Final = (2000, 7999)
"""What CML's port forwarder opens unless it is told otherwise."""
PORTS_UNSET: Final = Tuning().port_range
"""What a worker without a range of its own gets, unless the provider is told otherwise."""


class SecretState(msgspec.Struct, frozen=True):
    """What is known of a Secret; its values are nobody's business here.

    Attributes:
        keys: Those with a value; None if the Secret does not exist.
        forbidden: Why it could not be read.
    """

    keys: frozenset[str] | None = None
    forbidden: str = ""


class Licence(msgspec.Struct, frozen=True):
    """What a worker says of its licence, in Cisco's words.

    Attributes:
        registration: `COMPLETED` when all is well.
        authorization: `IN_COMPLIANCE` when all is well.
        reserved: Whether it is licensed offline; then the two do not tell.
        quota: Licensed devices that may run at once; None if it does not say.
    """

    registration: str
    authorization: str
    reserved: bool = False
    quota: int | None = None


class Probe(msgspec.Struct, frozen=True):
    """What a worker answered to us, which need not be what it answers to the provider.

    Attributes:
        version: CML's version; empty if it was not asked.
        error: Why it could not be asked.
        skew_s: How far its clock is ahead of ours; None if that is not known, as the following.
        admin: Whether our user is an administrator of CML.
        licence: Its licence.
    """

    version: str = ""
    error: OutsideError | InputError | None = None
    skew_s: float | None = None
    admin: bool | None = None
    licence: Licence | None = None


class Seen(msgspec.Struct, frozen=True):
    """One CMLWorker and what belongs to it."""

    resource: CustomResource
    node: Node | None
    secret: SecretState
    probe: Probe
    lives: bool
    """Whether a replica of the provider lives, so that conditions are of now."""


def ready_of(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the condition Ready of a custom resource; empty if it has none."""
    return next((c for c in conditions if c.get("type") == "Ready"), {})


def check_worker(seen: Seen, *, namespace: str, installation: str) -> list[Finding]:
    """Check one CMLWorker.

    Args:
        seen: The worker.
        namespace: The provider's, where Secrets are.
        installation: UID of the namespace kube-system; empty if it is unknown.
    """
    about = f"CMLWorker/{seen.resource.metadata.name}"
    try:
        spec = parse_worker_spec(seen.resource.spec)
    except InputError as error:
        return [_known(about, error.reason, error.message)]
    found = [
        *_check_condition(about, seen),
        *_check_secret(about, spec, seen.secret, namespace),
        *_check_node(about, spec, seen, installation),
        *_check_account(about, seen.probe),
        *_check_licence(about, spec, seen.probe.licence),
        *_check_ports(about, spec),
        *check_clock(about, "this worker", seen.probe.skew_s or 0.0),
    ]
    return once([*found, *_check_probe(about, seen, known={finding.reason for finding in found})])


def check_urls(resources: Iterable[CustomResource]) -> list[Finding]:
    """Tell which CMLWorkers are one and the same: it would be charged twice."""
    by_url: dict[str, list[str]] = {}
    for resource in resources:
        url = str(resource.spec.get("url", "")).rstrip("/").lower()
        by_url.setdefault(url, []).append(resource.metadata.name)
    return [
        note(
            f"CMLWorker/{first}",
            "SameUrl",
            f"it has the same url as {', '.join(others[:5])}{' …' if len(others) > 5 else ''}: "  # noqa: PLR2004 (a line's worth)
            f"the scheduler counts its capacity {len(others) + 1} times",
            "Keep one CMLWorker per controller.",
        )
        for first, *others in map(sorted, by_url.values())
        if others
    ]


def _known(about: str, reason: str, message: str) -> Finding:
    return fault(about, reason, message, remedy_of(WORKERS, reason, "See docs/why.md."))


def _check_condition(about: str, seen: Seen) -> list[Finding]:
    status, meta = seen.resource.status, seen.resource.metadata
    ready = ready_of(status.get("conditions", []))
    if not ready or status.get("observedGeneration") != meta.generation:
        text = "the provider has not looked at it" if not ready else "the provider has not looked at its last change"
        return [fault(about, "NotObserved", text, "See that the provider runs, and look at its log.")]
    found = []
    if ready.get("status") != "True":
        found.append(_known(about, ready.get("reason", "NotReady"), ready.get("message", "")))
    foreign = status.get("labs", {}).get("foreign", 0)
    if foreign:
        found.append(note(about, "ForeignLabs", f"{foreign} labs on it are others' and never touched"))
    return found


def _check_secret(about: str, spec: CMLWorkerSpec, secret: SecretState, namespace: str) -> list[Finding]:
    name = spec.credentials_secret_name
    if spec.url.startswith("null://"):
        return []
    if not name:
        return [_known(about, "CredentialsInvalid", "spec.credentialsSecretName is not set")]
    where = f"Secret {namespace}/{name}"
    if secret.forbidden:
        return [unchecked(about, "SecretForbidden", f"{where} cannot be read by you: {secret.forbidden}")]
    if secret.keys is None:
        return [_known(about, "CredentialsInvalid", f"{where} does not exist")]
    if missing := [key for key in KEYS if key not in secret.keys]:
        return [_known(about, "CredentialsInvalid", f"{where} lacks the key {' and '.join(missing)}")]
    return []


def _check_node(about: str, spec: CMLWorkerSpec, seen: Seen, installation: str) -> list[Finding]:
    name = names.node_name(seen.resource.metadata.name)
    node = seen.node
    if node is None:
        if not seen.lives or ready_of(seen.resource.status.get("conditions", [])).get("status") != "True":
            return []  # that is why
        return [fault(about, "NodeMissing", f"Node {name} does not exist", "Look at the provider's log.")]
    if installation and not nodes.ours(node, installation):
        text = f"Node {name} exists and is not of this installation"
        return [_known(about, "NodeConflict", text)]
    found = []
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        reason = ready.reason or "NotReady"
        found.append(_known(about, reason, ready.message or f"Node {name} is not Ready"))
    address = nodes.address_of(spec)
    if seen.lives and not any(a.type == "ExternalIP" for a in node.status.addresses):
        text = f"the provider cannot resolve its address {address!r}, so its lablets have no IP"
        found.append(_known(about, "AddressUnresolved", text))
    if node.spec.unschedulable and seen.resource.metadata.deletion_timestamp is None:
        found.append(note(about, "Cordoned", f"Node {name} is cordoned", f"kubectl uncordon {name}"))
    return found


def _check_account(about: str, probe: Probe) -> list[Finding]:
    if probe.admin is not False:
        return []
    text = "its user is no administrator: labs of others are neither seen nor counted"
    return [note(about, "NotAdministrator", text, "Make it one in CML, unless only vkprovider uses this worker.")]


def _check_licence(about: str, spec: CMLWorkerSpec, licence: Licence | None) -> list[Finding]:
    if licence is None:
        return []
    told = licence.registration, licence.authorization
    if not licence.reserved and told != ("COMPLETED", "IN_COMPLIANCE"):
        text = f"registration {told[0] or 'unknown'}, authorization {told[1] or 'unknown'}: CML starts no devices"
        return [fault(about, "LicenceInvalid", text, "Register CML: Tools, Licensing.")]
    wanted = spec.capacity.lab_nodes
    if licence.quota is not None and wanted is not None and wanted > licence.quota:
        text = f"spec.capacity.labNodes is {wanted}, its licence lets {licence.quota} devices run"
        return [note(about, "LicencesFew", text, f"Set it to {licence.quota}, or license more.")]
    return []


def _check_ports(about: str, spec: CMLWorkerSpec) -> list[Finding]:
    """Compare the port range with what CML's port forwarder opens unless it was told otherwise."""
    given = spec.port_range
    first, last = (given.start, given.end) if given is not None else PORTS_UNSET
    if PATTY_PORTS[0] <= first and last <= PATTY_PORTS[1]:
        return []
    whose = "spec.portRange" if given is not None else "the provider's default range"
    text = f"{whose} is {first}-{last}, PATty opens {PATTY_PORTS[0]}-{PATTY_PORTS[1]} unless it is told otherwise"
    return [note(about, "PortsNotOpened", text, "Set spec.portRange to the ports that PATty opens on this worker.")]


def _check_probe(about: str, seen: Seen, *, known: set[str]) -> list[Finding]:
    """Compare what the worker answers to us with what it answers to the provider."""
    error = seen.probe.error
    ready = ready_of(seen.resource.status.get("conditions", [])).get("status") == "True"
    if error is None:
        unfit = nodes.check_version(seen.probe.version) if seen.probe.version else None
        return [_known(about, unfit.reason, unfit.message)] if unfit is not None else []
    reason = _reason_of(error)
    if reason in known or (known & {"CredentialsInvalid"} and isinstance(error, Unauthorized)):
        return []
    if ready and seen.lives and reason == "WorkerUnreachable":
        text = f"the provider reaches it, this machine does not: {error.message}"
        return [note(about, "UnreachableFromHere", text)]
    return [_known(about, reason, error.message)]


def _reason_of(error: OutsideError | InputError) -> str:
    if isinstance(error, InputError):
        return error.reason
    if isinstance(error, Unauthorized):
        return "CredentialsInvalid"
    return "CertificateInvalid" if isinstance(error, TlsFailed) else "WorkerUnreachable"
