"""The metrics of the provider: labs, Nodes, sessions, tunnels, the kubelet API."""

from collections import Counter
from collections.abc import Iterator, Mapping

from vkprovider.cml.factory import CALLS
from vkprovider.lablet import observations as words
from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.standing import State
from vkprovider.labs.controllers.counters import Counters
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.controllers.worker.tunnels import Tunnels
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.lds.client import CALLS as LDS_CALLS
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.kubelet import Kubelet
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.metrics import Measure, Sample, by_name, counter, gauge, histogram, value
from vkprovider.platform.runtime.ownership import Ownership


def kubelet_measures(kubelet: Kubelet) -> Iterator[Measure]:
    """Yield the metrics of the kubelet API."""
    yield gauge("vkprovider_kubelet_nodes", "Nodes whose kubelet API is served.", lambda: value(len(kubelet.listeners)))
    yield gauge(
        "vkprovider_kubelet_certificate_signed",
        "Whether the certificate of the kubelet API is signed by the cluster; else it is the replica's own.",
        lambda: value(kubelet.certificates is not None and kubelet.certificates.is_signed),
    )
    yield gauge(
        "vkprovider_kubelet_sessions",
        "Open sessions of the kubelet API: `logs`, `attach`, `exec`, `portForward`.",
        lambda: by_name(kubelet.sessions.open),
        "kind",
    )
    yield counter(
        "vkprovider_kubelet_requests_total",
        "Requests to the kubelet API by path, without names, and status; a session counts when it ends.",
        kubelet.requests.items,
        "path",
        "code",
    )


def labs_measures(base: Base) -> Iterator[Measure]:
    """Yield the metrics of labs."""
    yield from _of_labs(base, base.counters, base.fleet.items)
    yield from _of_claims(base, base.fleet.items)
    yield from _of_steps(base.counters)


def _of_labs(base: Base, counters: Counters, workers: Mapping[str, Worker]) -> Iterator[Measure]:
    yield histogram(
        "instance_reconciliation_duration_seconds",
        "Time of a turn of one lablet, by its Pod's UID; ends with the lablet.",
        lambda: by_name(base.queues.lablets.ran_s_of or {}),
        "instance_id",
    )
    yield counter(
        "instance_state_transitions_total",
        "State changes of lablets; from nothing when a replica meets one.",
        counters.transitions.items,
        "from_state",
        "to_state",
    )
    yield histogram(
        "lab_start_duration_seconds",
        "Time from the request to start a lab until all of its devices had booted.",
        lambda: _lab_starts(base),
        "worker_id",
    )
    yield gauge(
        "lab_nodes_booted",
        "Devices of a lablet's lab that have booted; ends with the lab.",
        lambda: _booted(workers),
        "instance_id",
        "lab_id",
    )


def _of_claims(base: Base, workers: Mapping[str, Worker]) -> Iterator[Measure]:
    yield gauge(
        "vkprovider_lablets",
        "Pods on this replica's Nodes by state; `unreported` before the first report.",
        lambda: _lablets(base),
        "state",
    )
    yield gauge(
        "vkprovider_claims",
        "Claims of a worker: lablets that have, or may have, a lab on it.",
        lambda: (((w.name,), len(w.claims.claims)) for w in workers.values()),
        "worker",
    )
    yield gauge(
        "vkprovider_claims_unwritable",
        "Whether a worker's claims cannot be written, so that no lablet may begin on it.",
        lambda: (((w.name,), w.claims.fault is not None) for w in workers.values()),
        "worker",
    )


def _of_steps(counters: Counters) -> Iterator[Measure]:
    yield counter("vkprovider_claim_writes_total", "Claim stores written.", lambda: value(counters.claim_writes))
    yield counter("vkprovider_status_writes_total", "Pod statuses written.", lambda: value(counters.status_writes))
    yield counter("vkprovider_steps_total", "Steps taken for lablets.", lambda: by_name(counters.steps), "step")
    yield counter(
        "vkprovider_step_failures_total",
        "Steps that failed: what they ask refused or did not answer, or an object they need was wrong.",
        lambda: by_name(counters.step_failures),
        "step",
    )
    yield counter(
        "vkprovider_state_transitions_refused_total",
        "State changes that no table allows.",
        lambda: value(counters.transitions_refused),
    )
    yield histogram(
        "vkprovider_cml_call_seconds",
        "Time of a call of CML; the code is the HTTP status, or `timeout`, `lost`, `unreachable`, "
        "`certificate`, `not_allowed`.",
        CALLS.took_s.items,
        "operation",
        "code",
    )


def _lab_starts(base: Base) -> Iterator[Sample]:
    """Return how long labs took to boot, of the CMLWorkers that exist."""
    starts = base.counters.lab_starts_s
    return by_name({worker: starts[worker] for worker in starts if worker in base.objects.workers.items})


def _booted(workers: Mapping[str, Worker]) -> Iterator[Sample]:
    """Count the booted devices of every lab of this replica."""
    for worker in workers.values():
        for claim in worker.claims.claims.values():
            if claim.lab_id:
                devices = worker.seen.devices.get(claim.lab_id, ())
                yield (claim.pod_uid, claim.lab_id), sum(device.state == words.BOOTED for device in devices)


def _lablets(base: Base) -> Iterator[Sample]:
    """Count this replica's lablets by state; those of other replicas are known too, and counted there."""
    ours = base.fleet.items
    states = Counter(lablet.state for lablet in base.index.items.values() if lablet.worker in ours)
    return by_name({str(state): states[state] for state in State} | {"unreported": states[None]})


def nodes_measures(base: Base, ownership: Ownership) -> Iterator[Measure]:
    """Yield the metrics of Nodes."""
    resources = base.objects.workers.items
    yield gauge(
        "vkprovider_leader",
        "Whether this replica writes what belongs to no worker, such as RuntimeClasses; one replica does.",
        lambda: value(base.membership.leads()),
    )
    yield gauge("vkprovider_owned_nodes", "Nodes of this replica.", lambda: value(len(ownership.epochs)))
    yield gauge(
        "vkprovider_imbalance",
        "Nodes of the replica with most, less those of the one with least; at most 1 unless nodes are changing hands.",
        lambda: value(ownership.plan.imbalance),
    )
    yield gauge(
        "vkprovider_lease_age_seconds",
        "Time since this replica renewed its own Lease (`replica`), and that Lease of its Nodes whose "
        "renewal is longest ago (`node`).",
        lambda: _lease_ages(ownership),
        "lease",
    )
    yield gauge(
        "vkprovider_node_owned",
        "Whether this replica owns the Node of a CMLWorker; exactly one replica should.",
        lambda: (((name,), name in ownership.epochs) for name in resources),
        "worker",
    )
    yield gauge(
        "vkprovider_worker_ready",
        "Whether a CMLWorker's condition Ready is True; every replica reports it for all.",
        lambda: _ready(resources),
        "worker",
    )
    yield counter(
        "vkprovider_fenced_total",
        "Side effects that were stopped because the Node was not this replica's (any more).",
        lambda: value(ownership.fenced_total),
    )
    yield counter(
        "vkprovider_takeovers_total", "Nodes taken from a silent replica.", lambda: value(ownership.takeovers_total)
    )


def _ready(resources: Mapping[str, CustomResource]) -> Iterator[Sample]:
    """Yield which CMLWorkers are Ready."""
    for name, resource in resources.items():
        yield (name,), worker_status(resource).is_ready


def _lease_ages(ownership: Ownership) -> Iterator[Sample]:
    """Yield how long ago Leases were renewed."""
    if (age_s := ownership.membership.lease_age_s) is not None:
        yield ("replica",), age_s
    yield ("node",), ownership.oldest_renewal_s


def sessions_measures(inbox: Inbox, outcomes: Mapping[str, int]) -> Iterator[Measure]:
    """Yield the metrics of sessions.

    Args:
        inbox: The stored events.
        outcomes: What became of the events that reached this replica.
    """
    yield counter(
        "vkprovider_session_events_total",
        "Events of the Lab Delivery System that reached this replica, by what became of them.",
        lambda: by_name(outcomes),
        "outcome",
    )
    yield gauge(
        "vkprovider_inbox_sessions",
        "Sessions of which an event is noted that no claim has taken over; every replica reports it for all.",
        lambda: value(len(inbox.rows)),
    )
    yield histogram(
        "vkprovider_lds_call_seconds",
        "Time of a call of the Lab Delivery System, each repetition by itself; the code is as for CML.",
        LDS_CALLS.took_s.items,
        "deployment",
        "operation",
        "code",
    )


def tunnels_measures(tunnels: Tunnels) -> Iterator[Measure]:
    """Yield the metrics of tunnels."""
    yield gauge(
        "vkprovider_tunnel_agents",
        "Agents by tunnel and state: `there`, `silent`, `left`; a tunnel that is not configured is missing.",
        lambda: _agents(tunnels),
        "tunnel",
        "state",
    )
    yield counter(
        "vkprovider_tunnel_frames_total",
        "Frames and connections of a tunnel by what became of them: `sent`, `dropped` because there was no "
        "connection or no room, `refused` because they could not be used, `disconnected`.",
        lambda: _counts(tunnels),
        "tunnel",
        "what",
    )


def _agents(tunnels: Tunnels) -> Iterator[Sample]:
    """Yield how many agents are in each state, by tunnel."""
    for kind, states in tunnels.states().items():
        for state in ("there", "silent", "left"):
            yield (kind, state), states[state]


def _counts(tunnels: Tunnels) -> Iterator[Sample]:
    """Yield the number of frames of each tunnel, by their fate."""
    for kind, hub in tunnels.hubs.items():
        for what in ("sent", "dropped", "refused", "disconnected"):
            yield (kind, what), hub.counts[what]
