"""Checks of CMLWorkers: what the provider reports, and what can be seen without it."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError, OutsideError, TlsFailed, Unauthorized
from vkprovider.api.models import CMLWorkerSpec, parse_worker_spec
from vkprovider.api.objects import CustomResource, Node
from vkprovider.api.reasons import WORKERS
from vkprovider.app.doctor.findings import Finding, fault, note, once, remedy_of, unchecked
from vkprovider.domain import node as nodes

KEYS: Final = ("username", "password")


class SecretState(msgspec.Struct, frozen=True):
    """What is known of a Secret; its values are nobody's business here.

    Attributes:
        keys: Those with a value; None if the Secret does not exist.
        forbidden: Why it could not be read.
    """

    keys: frozenset[str] | None = None
    forbidden: str = ""


class Probe(msgspec.Struct, frozen=True):
    """What a worker answered to us, which need not be what it answers to the provider.

    Attributes:
        version: CML's version; empty if it was not asked.
        error: Why it could not be asked.
    """

    version: str = ""
    error: OutsideError | InputError | None = None


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
