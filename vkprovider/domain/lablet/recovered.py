"""The claims of a worker whose ConfigMap was lost, rebuilt from its marked labs.

A row is rebuilt for each Pod that a marked lab names, with the learner and the session that its notes name, whatever
the Pod says now, and with the ports that the lab's tags have: learners may be using them. A lab whose tags cannot
be read, or have a port that an older lab has too, gets a row that says so and holds what it can, so that no other
lablet is given its ports.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.api.errors import InputError
from vkprovider.api.messages import Fault
from vkprovider.api.objects import Pod
from vkprovider.api.reasons import Trouble
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet.identity import Origin
from vkprovider.domain.lablet.pod.inputs import inputs_of
from vkprovider.domain.lablet.restarts import restarts_shown
from vkprovider.domain.ports.allocator import TCP, UDP, Held, Holder, PortUsage, udp_names
from vkprovider.domain.topology import mappings
from vkprovider.domain.topology.tags import PORT_MAX, parse_tag

_REMEDY: Final = "delete the pod, its successor gets a new lab"


class MarkedLab(msgspec.Struct, frozen=True):
    """A lab with our mark.

    Attributes:
        created: ISO 8601; "" if CML does not say.
        origin: By its notes.
        tags: The tags of its devices, by label.
    """

    lab_id: str
    title: str
    created: str
    origin: Origin
    tags: Mapping[str, tuple[str, ...]]


def recovered(labs: Iterable[MarkedLab], pods: Mapping[str, Pod], contents: Mapping[str, Content]) -> list[Claim]:
    """Rebuild the claims of a worker.

    Args:
        labs: The worker's marked labs, all of them.
        pods: The Pods on the worker, by UID, as the informer has them.
        contents: By digest.

    Returns:
        A row for each Pod UID that a lab names, the oldest lab first. No row names a lab whose title was changed and
        whose Pod is not there: it may be a copy that someone saved.
    """
    usage, rows = PortUsage(), list[Claim]()
    for lab in _chosen(labs, pods):
        pod, origin = pods.get(lab.origin.pod_uid), lab.origin
        row = Claim(
            pod_uid=origin.pod_uid,
            namespace=origin.namespace,
            pod=origin.pod,
            definition=origin.definition,
            definition_uid=origin.definition_uid,
            version=origin.version,
            digest=origin.digest,
            lab_id=lab.lab_id,
            learner=origin.learner,
            session=origin.session,
            sessions=origin.sessions,
            restarts=restarts_shown(pod) if pod is not None else 0,
            reset=inputs_of(pod.metadata).reset if pod is not None else "",
        )
        row = row.with_notes(row.binding)
        rows.append(_with_ports(row, lab, contents.get(origin.digest), usage))
    return rows


def _chosen(labs: Iterable[MarkedLab], pods: Mapping[str, Pod]) -> list[MarkedLab]:
    """Return one lab for each Pod, the oldest first: one with its own title, else the oldest."""
    best: dict[str, MarkedLab] = {}
    for lab in sorted(labs, key=lambda lab: (not _keeps_title(lab), lab.created, lab.lab_id)):
        if _keeps_title(lab) or lab.origin.pod_uid in pods:
            best.setdefault(lab.origin.pod_uid, lab)
    return sorted(best.values(), key=lambda lab: (lab.created, lab.lab_id))


def _keeps_title(lab: MarkedLab) -> bool:
    return lab.title.endswith(lab.origin.pod_uid)


def _with_ports(row: Claim, lab: MarkedLab, content: Content | None, usage: PortUsage) -> Claim:
    """Return the row with the ports of its lab's tags, held in `usage`."""
    if content is None:
        missing = f"version {row.version}" if row.version else "the version that it was imported from"
        what = f"the ports of lab {lab.title} cannot be read: {missing} is not kept any more; {_REMEDY}"
        return _faulty(row, lab, usage, Fault(Trouble.PORTS_UNKNOWN, what))
    template = content.topology.template
    ports = mappings.ports_in(template, lab.tags)
    if ports is None:
        what = f"the port tags of lab {lab.title} are not those of {row.definition} {row.version}: they were changed "
        return _faulty(row, lab, usage, Fault(Trouble.PORTS_UNKNOWN, f"{what}on the worker; {_REMEDY}"))
    claimed = row.with_ports(ports, udp_names(mappings.wanted_of(template)))
    try:
        usage.hold(row.pod_uid, claimed.held)
    except InputError as conflict:
        return _faulty(row, lab, usage, Fault(conflict.reason, f"{conflict.message}, by the tags of both; {_REMEDY}"))
    return claimed


def adopted(claim: Claim, lab: MarkedLab, content: Content | None, holders: Mapping[tuple[str, int], Holder]) -> Claim:
    """Return a claim with the lab that was found for it, and with the learner and the ports that the lab really has.

    Args:
        claim: Its own ports are replaced by those of the tags, if these differ.
        lab: The lab.
        content: The claim's; None if it is gone.
        holders: Of the worker's ports.
    """
    claim = _with_lab(claim, lab)
    ports = mappings.ports_in(content.topology.template, lab.tags) if content is not None else None
    if ports is None:
        what = f"the port tags of lab {claim.title} are not those of {claim.definition} {claim.version}; {_REMEDY}"
        return claim.with_ports(claim.ports, claim.udp, Fault(Trouble.PORTS_UNKNOWN, what))
    real = claim.with_ports(ports, claim.udp, claim.ports_fault)
    for slot in real.held:
        holder = holders.get((slot.protocol, slot.port))
        if holder is not None and holder.owner != claim.pod_uid:
            what = f"{slot.protocol} port {slot.port} of lab {claim.title} is held by {holder}; {_REMEDY}"
            return claim.with_ports(claim.ports, claim.udp, Fault(Trouble.PORT_CONFLICT, what))
    return real


def _with_lab(claim: Claim, lab: MarkedLab) -> Claim:
    """Return the claim with its lab, and with the learner whom the lab's notes name.

    A claim that names a learner, or is on its way to a pool, keeps its own.
    """
    origin = lab.origin
    noted = claim.of_learner(origin.learner).with_session(origin.session).binding
    fresh = not claim.learner and claim.session is None and not claim.closing_reason and not claim.lent_back
    return claim.with_lab(lab.lab_id, learner=origin.learner if fresh else claim.learner, noted=noted)


def _faulty(row: Claim, lab: MarkedLab, usage: PortUsage, fault: Fault) -> Claim:
    """Return a row that shows why its ports are not used; those that its lab opens, and no older one, are held."""
    ports: dict[str, int] = {}
    udp: list[str] = []
    for tag in (parse_tag(text) for label in sorted(lab.tags) for text in dict.fromkeys(lab.tags[label])):
        if tag is None or not 1 <= tag.outside <= PORT_MAX:
            continue
        name, protocol = f"unknown-{len(ports) + 1}", UDP if tag.protocol == "udp" else TCP
        try:
            usage.hold(row.pod_uid, [Held(name, protocol, tag.outside)])
        except InputError:
            continue
        ports[name] = tag.outside
        if protocol == UDP:
            udp.append(name)
    return row.with_ports(ports, tuple(udp), fault)
