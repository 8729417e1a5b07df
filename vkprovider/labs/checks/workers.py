"""Checks of CMLWorkers: what the provider reports on them, their Secrets and Nodes, and the kubelet API."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from vkprovider.doctor.findings import Finding, check_clock, fault, note, once, remedy_of, unchecked
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import names
from vkprovider.lablet.models.status import Status, worker_status
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.lablet.reasons import WORKERS, ConditionReason, WorkerReason
from vkprovider.labs.pure.worker import node as nodes
from vkprovider.labs.pure.worker.capacity import too_small
from vkprovider.labs.pure.worker.reach import insecure, same_address
from vkprovider.labs.pure.worker.registration import unapproved
from vkprovider.labs.pure.worker.secrets import move_command
from vkprovider.labs.settings.cluster import PortSettings
from vkprovider.platform.errors import InputError, OutsideError, TlsFailed, Unauthorized
from vkprovider.platform.messages import Fault, count
from vkprovider.platform.objects import CustomResource, Node, NodeCondition
from vkprovider.platform.reasons import Reason, reason_of


def node_ready(node: Node) -> NodeCondition | None:
    """Return a Node's condition Ready; None if there is not one."""
    return next((condition for condition in node.status.conditions if condition.type == "Ready"), None)


def check_observed(about: str, resource: CustomResource, status: Status) -> list[Finding]:
    """Check that the provider has observed the resource as it is now."""
    if status.ready is not None and status.observed_generation == resource.metadata.generation:
        return []
    text = "the provider has not observed " + ("its last change" if status.ready is not None else "it")
    return [fault(about, DoctorReason.NOT_OBSERVED, text, "Check that the provider runs, and look at its log.")]


PATTY_PORTS: Final = (2000, 7999)
"""What CML's port forwarder, PATty, opens by default."""
PORTS_UNSET: Final = PortSettings().range
"""The range of a worker without spec.portRange, by default."""

_LOGIN_FAULTS: Final = frozenset({WorkerReason.CREDENTIALS_INVALID, WorkerReason.SECRET_NOT_ALLOWED})
"""Faults of a worker that is Ready: as long as its present login lasts."""


class SecretState(msgspec.Struct, frozen=True):
    """What is known of a Secret, without its values.

    Attributes:
        exists: Whether there is one.
        forbidden: Why it could not be read.
        fault: Why it cannot be used for the worker.
    """

    exists: bool = False
    forbidden: str = ""
    fault: Fault | None = None


class Licence(msgspec.Struct, frozen=True):
    """A worker's licence, in Cisco's words.

    Attributes:
        registration: `COMPLETED` if it is in order.
        authorization: `IN_COMPLIANCE` if it is in order.
        reserved: Whether it is licensed offline; then the two mean nothing.
        quota: Licensed devices that may run at once; None if it is unknown.
    """

    registration: str
    authorization: str
    reserved: bool = False
    quota: int | None = None


class WorkerProbe(msgspec.Struct, frozen=True):
    """What a worker answered to this machine, which may differ from what it answers to the provider.

    Attributes:
        version: CML's version; empty if it was not asked.
        error: Why it could not be asked.
        skew_s: How far its clock is ahead of this machine's; None if unknown, as for the following.
        admin: Whether the user is an administrator of CML.
        licence: Its licence.
        unheard_s: The seconds in which nothing was heard of its agent; None if it was heard, or there is none.
    """

    version: str = ""
    error: OutsideError | InputError | None = None
    skew_s: float | None = None
    admin: bool | None = None
    licence: Licence | None = None
    unheard_s: float | None = None


class SeenWorker(msgspec.Struct, frozen=True):
    """One CMLWorker and what belongs to it."""

    resource: CustomResource
    node: Node | None
    secret: SecretState
    probe: WorkerProbe
    lives: bool
    """Whether a replica of the provider lives, so that conditions are current."""


def check_worker(seen: SeenWorker, *, logins: str, before: str, installation: str) -> list[Finding]:
    """Check one CMLWorker.

    Args:
        seen: The worker.
        logins: The namespace of logins.
        before: The provider's, where an earlier version had them.
        installation: UID of the namespace kube-system; empty if it is unknown.
    """
    about = f"CMLWorker/{seen.resource.metadata.name}"
    try:
        spec = parse_worker_spec(seen.resource.spec)
    except InputError as error:
        return [_known(about, error.reason, error.message)]
    found = [
        *_check_condition(about, seen),
        *_check_secret(about, spec, seen.secret, seen.probe, logins, before),
        *_check_node(about, spec, seen, installation),
        *_check_account(about, seen.probe),
        *_check_licence(about, spec, seen.probe.licence),
        *_check_capacity(about, spec),
        *_check_ports(about, spec),
        *_check_transport(about, spec),
        *_check_agent(about, seen),
        *check_clock(about, "this worker", seen.probe.skew_s or 0.0),
    ]
    return once([*found, *_check_probe(about, seen)])


def check_urls(resources: Iterable[CustomResource]) -> list[Finding]:
    """Report CMLWorkers with the same url: their capacity would be counted twice."""
    by_url: dict[str, list[str]] = {}
    for resource in resources:
        url = str(resource.spec.get("url", "")).rstrip("/").lower()
        if not url:
            continue  # an agent knows it
        by_url.setdefault(url, []).append(resource.metadata.name)
    return [
        note(
            f"CMLWorker/{first}",
            DoctorReason.SAME_URL,
            f"it has the same url as {', '.join(others[:5])}{' …' if len(others) > 5 else ''}: "  # noqa: PLR2004 (a line's worth)
            f"the scheduler counts its capacity {len(others) + 1} times",
            "Keep one CMLWorker per controller.",
        )
        for first, *others in map(sorted, by_url.values())
        if others
    ]


def check_addresses(resources: Iterable[CustomResource]) -> list[Finding]:
    """Report CMLWorkers whose learners would get one address and port twice, unless their conditions say so already."""
    everyone, found = list(resources), list[Finding]()
    for resource in everyone:
        ready = worker_status(resource).ready
        if ready is None or ready.reason != WorkerReason.SAME_ADDRESS:
            shared = same_address(resource, everyone, PORTS_UNSET)
            if shared is not None:
                found.append(_known(f"CMLWorker/{resource.metadata.name}", shared.reason, shared.message))
    return found


def _known(about: str, reason: Reason, message: str) -> Finding:
    name = about.partition("/")[2]
    return fault(about, reason, message, re.sub(r"\bNAME\b", name, remedy_of(WORKERS, reason, "See docs/why.md.")))


def _check_condition(about: str, seen: SeenWorker) -> list[Finding]:
    status = worker_status(seen.resource)
    if unobserved := check_observed(about, seen.resource, status):
        return unobserved
    found = []
    if (ready := status.ready) is not None and (not status.is_ready or ready.reason in _LOGIN_FAULTS):
        found.append(_known(about, reason_of(ready.reason or DoctorReason.NOT_READY), ready.message))
    if agent := status.condition("AgentTurnedAway"):
        found.append(_known(about, reason_of(agent.reason), agent.message))
    if status.labs and status.labs.foreign:
        text = f"{count(status.labs.foreign, 'lab')} on it not made by vkprovider, never touched"
        found.append(note(about, DoctorReason.FOREIGN_LABS, text))
    return found


def _check_secret(
    about: str, spec: CMLWorkerSpec, secret: SecretState, probe: WorkerProbe, namespace: str, before: str
) -> list[Finding]:
    name = spec.credentials_secret_name
    if spec.cml_url.startswith("null://"):
        return []
    if not name and spec.tunnel != "direct":
        return []  # the agent logs in
    if not name:
        return [_known(about, WorkerReason.CREDENTIALS_INVALID, "spec.credentialsSecretName is not set")]
    where = f"Secret {namespace}/{name}"
    if secret.forbidden:
        return [unchecked(about, DoctorReason.SECRET_FORBIDDEN, f"{where} may not be read by you: {secret.forbidden}")]
    if not secret.exists:
        text = f"{where} does not exist. Those that an earlier version had in {before} move by: "
        return [_known(about, WorkerReason.CREDENTIALS_INVALID, text + move_command(before, namespace))]
    if secret.fault is None:
        return []
    if secret.fault.reason == WorkerReason.SECRET_NOT_ALLOWED and isinstance(probe.error, InputError):
        return []  # the url is wrong, not the Secret
    return [_known(about, secret.fault.reason, secret.fault.message)]


def _check_node(about: str, spec: CMLWorkerSpec, seen: SeenWorker, installation: str) -> list[Finding]:
    name = names.node_name(seen.resource.metadata.name)
    node = seen.node
    if node is None:
        if not seen.lives or not worker_status(seen.resource).is_ready:
            return []  # which explains it
        return [fault(about, DoctorReason.NODE_MISSING, f"Node {name} does not exist", "Look at the provider's log.")]
    if installation and not nodes.ours(node, installation):
        text = f"Node {name} exists and does not belong to this installation"
        return [_known(about, WorkerReason.NODE_CONFLICT, text)]
    found = []
    ready = node_ready(node)
    if ready is not None and ready.status != "True":
        reason = reason_of(ready.reason or DoctorReason.NOT_READY)
        found.append(_known(about, reason, ready.message or f"Node {name} is not Ready"))
    address = nodes.address_of(spec)
    if seen.lives and not any(a.type == "ExternalIP" for a in node.status.addresses):
        text = f"the provider cannot resolve its address {address!r}, so its lablets have no IP"
        found.append(_known(about, WorkerReason.ADDRESS_UNRESOLVED, text))
    is_waiting = unapproved(seen.resource) is not None  # which says how it is approved
    if node.spec.unschedulable and seen.resource.metadata.deletion_timestamp is None and not is_waiting:
        found.append(note(about, DoctorReason.CORDONED, f"Node {name} is cordoned", f"kubectl uncordon {name}"))
    return found


def _check_account(about: str, probe: WorkerProbe) -> list[Finding]:
    if probe.admin is not False:
        return []
    text = "its user is not an administrator: labs of other users are neither seen nor counted"
    return [
        note(
            about, DoctorReason.NOT_ADMINISTRATOR, text, "Make it one in CML, unless only vkprovider uses this worker."
        )
    ]


def _check_licence(about: str, spec: CMLWorkerSpec, licence: Licence | None) -> list[Finding]:
    if licence is None:
        return []
    states = licence.registration, licence.authorization
    if not licence.reserved and states != ("COMPLETED", "IN_COMPLIANCE"):
        text = f"registration {states[0] or 'unknown'}, authorization {states[1] or 'unknown'}: CML starts no devices"
        return [fault(about, DoctorReason.LICENCE_INVALID, text, "Register CML: Tools, Licensing.")]
    wanted = spec.capacity.lab_nodes
    if licence.quota is not None and wanted is not None and wanted > licence.quota:
        text = f"spec.capacity.labNodes is {wanted}, its licence allows {licence.quota} running devices"
        return [note(about, DoctorReason.LICENCES_FEW, text, f"Set it to {licence.quota}, or license more.")]
    return []


def _check_capacity(about: str, spec: CMLWorkerSpec) -> list[Finding]:
    small = too_small(spec.capacity)
    return [_known(about, WorkerReason.CAPACITY_TOO_SMALL, small)] if small else []


def _check_ports(about: str, spec: CMLWorkerSpec) -> list[Finding]:
    """Compare the port range with the default of CML's port forwarder."""
    given = spec.port_range
    first, last = (given.start, given.end) if given is not None else PORTS_UNSET
    if PATTY_PORTS[0] <= first and last <= PATTY_PORTS[1]:
        return []
    whose = "spec.portRange" if given is not None else "the provider's default range"
    text = f"{whose} is {first}-{last}, PATty opens {PATTY_PORTS[0]}-{PATTY_PORTS[1]} by default"
    return [
        note(
            about,
            DoctorReason.PORTS_NOT_OPENED,
            text,
            "Set spec.portRange to the ports that PATty opens on this worker.",
        )
    ]


def _check_transport(about: str, spec: CMLWorkerSpec) -> list[Finding]:
    found = insecure(spec)
    if found is None:
        return []
    return [note(about, ConditionReason.TRANSPORT_INSECURE, found.message)]  # which ends with what to do


def _check_agent(about: str, seen: SeenWorker) -> list[Finding]:
    if seen.probe.unheard_s is None:
        return []
    text = f"nothing was heard of its agent in {seen.probe.unheard_s:.0f} s"
    if _provider_reaches(seen):
        return [note(about, DoctorReason.UNREACHABLE_FROM_HERE, f"the provider reaches it, but here {text}")]
    return [_known(about, WorkerReason.AGENT_AWAY, text)]


def _check_probe(about: str, seen: SeenWorker) -> list[Finding]:
    """Compare what the worker answers to this machine with what it answers to the provider."""
    match seen.probe.error:
        case None:
            unfit = nodes.check_version(seen.probe.version) if seen.probe.version else None
            return [_known(about, unfit.reason, unfit.message)] if unfit is not None else []
        case InputError() as error:
            return [_known(about, error.reason, error.message)]
        case Unauthorized() as error:
            return [_known(about, WorkerReason.CREDENTIALS_INVALID, error.message)]
        case TlsFailed() as error:
            return [_known(about, WorkerReason.CERTIFICATE_INVALID, error.message)]
        case error if _provider_reaches(seen):
            text = f"the provider reaches it, this machine does not: {error.message}"
            return [note(about, DoctorReason.UNREACHABLE_FROM_HERE, text)]
        case error:
            return [_known(about, WorkerReason.WORKER_UNREACHABLE, error.message)]


def _provider_reaches(seen: SeenWorker) -> bool:
    """Return whether a living provider reports the worker, and its Node, as ready."""
    ready = node_ready(seen.node) if seen.node is not None else None
    return seen.lives and worker_status(seen.resource).is_ready and (ready is None or ready.status == "True")
