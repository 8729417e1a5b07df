"""The claims of a worker whose ConfigMap was lost, rebuilt from its marked labs.

A row is rebuilt for each living Pod that a marked lab names, with the learner and the session that its notes name,
whatever the Pod says now, and with the ports that the lab's tags have: learners may be using them. A lab whose tags
cannot be read, or have a port that an older lab has too, gets a row that says so and holds what it can, so that no
other lablet is given its ports.

A row names a lab only if that is certainly the Pod's: the one that the Pod shows, or the only one of a Pod that shows
none. Any other one may be a copy that somebody saved, and a lab without a Pod may be one too: it gets no row, so that
nobody touches it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.ports import named_by, ports_in, wanted_of
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.identity import Origin, shown_lab
from vkprovider.labs.pure.lablet.memory import restarts_shown
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Pod
from vkprovider.platform.ports.allocator import UDP, HeldPort, Holder, PortUsage, udp_names
from vkprovider.platform.reasons import PortReason

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
        A row for each living Pod that a lab names, the oldest lab first; without a lab if it is in doubt which one is
        the Pod's.
    """
    usage, rows = PortUsage(), list[Claim]()
    for lab, is_certain in _chosen(labs, pods):
        pod, origin = pods[lab.origin.pod_uid], lab.origin
        row = Claim(
            pod_uid=origin.pod_uid,
            namespace=origin.namespace,
            pod=origin.pod,
            definition=origin.definition,
            definition_uid=origin.definition_uid,
            version=origin.version,
            digest=origin.digest,
            lab_id=lab.lab_id if is_certain else "",
            asked_at=origin.asked if is_certain else 0,
            learner=origin.learner,
            session=origin.session,
            sessions=origin.sessions,
            restarts=restarts_shown(pod),
            reset=(inputs := inputs_of(pod.metadata)).reset,
            device_requests=dict(inputs.devices),
            begin_from=inputs.begin_from,
        )
        row = row.with_notes(row.binding)
        rows.append(_with_ports(row, lab, contents.get(origin.digest), usage))
    return rows


def _chosen(labs: Iterable[MarkedLab], pods: Mapping[str, Pod]) -> list[tuple[MarkedLab, bool]]:
    """Return one lab for each living Pod, the oldest first, and whether it is certainly the Pod's."""
    found: dict[str, list[MarkedLab]] = {}
    for lab in sorted(labs, key=_age):
        found.setdefault(lab.origin.pod_uid, []).append(lab)
    chosen = [_chosen_for(pod, found[uid]) for uid, pod in pods.items() if uid in found]
    return sorted((one for one in chosen if one is not None), key=lambda one: _age(one[0]))


def _chosen_for(pod: Pod, labs: list[MarkedLab]) -> tuple[MarkedLab, bool] | None:
    """Choose among the labs that name a Pod; None if none is certain and the Pod is about to end."""
    shown = shown_lab(pod)
    if mine := [lab for lab in labs if lab.lab_id == shown]:
        return mine[0], True
    if pod.terminal or pod.metadata.deletion_timestamp is not None:
        return None  # its own lab may be gone already
    return labs[0], len(labs) == 1 and not shown


def _age(lab: MarkedLab) -> tuple[str, str]:
    return lab.created, lab.lab_id


def _with_ports(row: Claim, lab: MarkedLab, content: Content | None, usage: PortUsage) -> Claim:
    """Return the row with the ports of its lab's tags, held in `usage`."""
    if content is None:
        missing = f"version {row.version}" if row.version else "the version that it was imported from"
        what = f"the ports of lab {lab.title} cannot be read: {missing} is not kept any more; {_REMEDY}"
        return _faulty(row, lab, usage, Fault(Trouble.PORTS_UNKNOWN, what))
    template = content.topology.template
    ports = ports_in(template, lab.tags)
    if ports is None:
        what = f"the port tags of lab {lab.title} are not those of {row.definition} {row.version}: they were changed "
        return _faulty(row, lab, usage, Fault(Trouble.PORTS_UNKNOWN, f"{what}on the worker; {_REMEDY}"))
    claimed = row.with_ports(ports, udp_names(wanted_of(template)))
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
    ports = ports_in(content.topology.template, lab.tags) if content is not None else None
    if ports is None:
        what = f"the port tags of lab {claim.title} are not those of {claim.definition} {claim.version}; {_REMEDY}"
        return claim.with_ports(claim.ports, claim.udp, Fault(Trouble.PORTS_UNKNOWN, what))
    real = claim.with_ports(ports, claim.udp, claim.ports_fault)
    for slot in real.held:
        holder = holders.get((slot.protocol, slot.port))
        if holder is not None and holder.owner != claim.pod_uid:
            what = f"{slot.protocol} port {slot.port} of lab {claim.title} is held by {holder}; {_REMEDY}"
            return claim.with_ports(claim.ports, claim.udp, Fault(PortReason.PORT_CONFLICT, what))
    return real


def _with_lab(claim: Claim, lab: MarkedLab) -> Claim:
    """Return the claim with its lab, and with the learner whom the lab's notes name.

    A claim that names a learner, or is on its way to a pool, keeps its own.
    """
    origin = lab.origin
    noted = claim.of_learner(origin.learner).with_session(origin.session).binding
    fresh = not claim.learner and claim.session is None and not claim.closing_reason and not claim.lent_back
    return claim.with_lab(
        lab.lab_id, asked_at=origin.asked, learner=origin.learner if fresh else claim.learner, noted=noted
    )


def _faulty(row: Claim, lab: MarkedLab, usage: PortUsage, fault: Fault) -> Claim:
    """Return a row that shows why its ports are not used; those that its lab opens, and no older one, are held."""
    ports: dict[str, int] = {}
    udp: list[str] = []
    for protocol, port in named_by(lab.tags):
        name = f"unknown-{len(ports) + 1}"
        try:
            usage.hold(row.pod_uid, [HeldPort(name, protocol, port)])
        except InputError:
            continue
        ports[name] = port
        if protocol == UDP:
            udp.append(name)
    return row.with_ports(ports, tuple(udp), fault)
