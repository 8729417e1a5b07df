"""Every metric: its name, type, labels and meaning, and the reader of its samples.

The names without `vkprovider_` are those of the lablet controller and stay as they are; `process_*` are those of every
Prometheus client.
"""

from typing import Final, Literal, NamedTuple

from vkprovider import __version__
from vkprovider.app.readings import (
    Reader,
    booted,
    by_name,
    lab_starts,
    lablets,
    lease_ages,
    of_informers,
    of_queues,
    ready,
    reconciles,
    silence_s,
    tasks,
    value,
)
from vkprovider.cml.factory import CALLS
from vkprovider.lds.factory import CALLS as LDS_CALLS

Kind = Literal["counter", "gauge", "histogram"]


class Measure(NamedTuple):
    """One metric.

    Attributes:
        labels: Their names.
        help: One sentence.
        read: Returns its samples; None if prometheus_client collects them by itself.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    read: Reader | None = None


MEASURES: Final = (
    Measure(
        "instance_reconciliation_duration_seconds",
        "histogram",
        ("instance_id",),
        "Time of a turn of one lablet, by its Pod's UID; ends with the lablet.",
        lambda r: by_name(r.queues.lablets.ran_s_of or {}),
    ),
    Measure(
        "instance_state_transitions_total",
        "counter",
        ("from_state", "to_state"),
        "State changes of lablets; from nothing when a replica meets one.",
        lambda r: r.ctx.counters.transitions.items(),
    ),
    Measure(
        "lab_start_duration_seconds",
        "histogram",
        ("worker_id",),
        "Time from the request to start a lab until all of its devices had booted.",
        lab_starts,
    ),
    Measure(
        "lab_nodes_booted",
        "gauge",
        ("instance_id", "lab_id"),
        "Devices of a lablet's lab that have booted; ends with the lab.",
        booted,
    ),
    Measure(
        "vkprovider_build_info",
        "gauge",
        ("version",),
        "1; the version is the label.",
        lambda _: [((__version__,), 1)],
    ),
    Measure(
        "vkprovider_ready",
        "gauge",
        (),
        "Whether the replica knows all objects that it decides from and could renew its Lease.",
        lambda r: value(not r.unready()),
    ),
    Measure(
        "vkprovider_replica_fenced",
        "gauge",
        (),
        "Whether the replica must not act, because it could not renew its Lease for too long.",
        lambda r: value(r.ownership.is_fenced),
    ),
    Measure(
        "vkprovider_leader",
        "gauge",
        (),
        "Whether this replica writes what belongs to no worker, such as RuntimeClasses; one replica does.",
        lambda r: value(r.ownership.leads),
    ),
    Measure("vkprovider_owned_nodes", "gauge", (), "Nodes of this replica.", lambda r: value(len(r.ownership.epochs))),
    Measure(
        "vkprovider_imbalance",
        "gauge",
        (),
        "Nodes of the replica with most, less those of the one with least; at most 1 unless nodes are changing hands.",
        lambda r: value(r.ownership.imbalance),
    ),
    Measure(
        "vkprovider_lease_age_seconds",
        "gauge",
        ("lease",),
        "Time since this replica renewed its own Lease (`replica`), and that Lease of its Nodes whose renewal is "
        "longest ago (`node`).",
        lease_ages,
    ),
    Measure(
        "vkprovider_node_owned",
        "gauge",
        ("worker",),
        "Whether this replica owns the Node of a CMLWorker; exactly one replica should.",
        lambda r: (((name,), name in r.ownership.epochs) for name in r.objects.workers.items),
    ),
    Measure(
        "vkprovider_worker_ready",
        "gauge",
        ("worker",),
        "Whether a CMLWorker's condition Ready is True; every replica tells this of all.",
        ready,
    ),
    Measure(
        "vkprovider_lablets",
        "gauge",
        ("state",),
        "Pods on this replica's Nodes by state; `unreported` before the first report.",
        lablets,
    ),
    Measure(
        "vkprovider_claims",
        "gauge",
        ("worker",),
        "Claims of a worker: lablets that have, or may have, a lab on it.",
        lambda r: (((w.name,), len(w.claims.claims)) for w in r.fleet.items.values()),
    ),
    Measure(
        "vkprovider_claims_unwritable",
        "gauge",
        ("worker",),
        "Whether a worker's claims cannot be written, so that no lablet may begin on it.",
        lambda r: (((w.name,), w.claims.fault is not None) for w in r.fleet.items.values()),
    ),
    Measure(
        "vkprovider_claim_writes_total",
        "counter",
        (),
        "Claim stores written.",
        lambda r: value(r.ctx.counters.claim_writes),
    ),
    Measure(
        "vkprovider_status_writes_total",
        "counter",
        (),
        "Pod statuses written.",
        lambda r: value(r.ctx.counters.status_writes),
    ),
    Measure(
        "vkprovider_steps_total",
        "counter",
        ("step",),
        "Steps taken for lablets.",
        lambda r: by_name(r.ctx.counters.steps),
    ),
    Measure(
        "vkprovider_step_failures_total",
        "counter",
        ("step",),
        "Steps that failed: what they ask refused or did not answer, or an object they need was wrong.",
        lambda r: by_name(r.ctx.counters.step_failures),
    ),
    Measure(
        "vkprovider_state_transitions_refused_total",
        "counter",
        (),
        "State changes that no table allows.",
        lambda r: value(r.ctx.counters.transitions_refused),
    ),
    Measure(
        "vkprovider_fenced_total",
        "counter",
        (),
        "Side effects that were stopped because the Node was not this replica's (any more).",
        lambda r: value(r.ctx.counters.fenced),
    ),
    Measure(
        "vkprovider_takeovers_total",
        "counter",
        (),
        "Nodes taken from a silent replica.",
        lambda r: value(r.ctx.counters.takeovers),
    ),
    Measure(
        "vkprovider_session_events_total",
        "counter",
        ("outcome",),
        "Events of the Lab Delivery System that reached this replica, by what became of them.",
        lambda r: by_name(r.session_events),
    ),
    Measure(
        "vkprovider_inbox_sessions",
        "gauge",
        (),
        "Sessions of which an event is noted that no claim has taken over; every replica tells this of all.",
        lambda r: value(len(r.inbox.rows)),
    ),
    Measure(
        "vkprovider_queue_depth",
        "gauge",
        ("queue",),
        "Keys that are due and wait for their turn.",
        of_queues(lambda queue: queue.depth),
    ),
    Measure(
        "vkprovider_queue_oldest_age_seconds",
        "gauge",
        ("queue",),
        "For how long the first of them has been due.",
        of_queues(lambda queue: queue.oldest_age_s),
    ),
    Measure(
        "vkprovider_queue_rushes_total",
        "counter",
        ("queue",),
        "Turns that asked for the next one at once and were made to wait, longer each time in a row.",
        of_queues(lambda queue: queue.rushes_total),
    ),
    Measure(
        "vkprovider_queue_wait_seconds",
        "histogram",
        ("queue",),
        "Time between a key's being due and its turn.",
        of_queues(lambda queue: queue.waited_s),
    ),
    Measure(
        "vkprovider_reconcile_seconds",
        "histogram",
        ("queue", "result"),
        "Time of a turn; the result is `ok`, `error` or `fenced`.",
        reconciles,
    ),
    Measure(
        "vkprovider_cml_call_seconds",
        "histogram",
        ("operation", "code"),
        "Time of a call of CML; the code is the HTTP status, or `timeout`, `lost`, `unreachable`, `certificate`, "
        "`not_allowed`.",
        lambda _: CALLS.took_s.items(),
    ),
    Measure(
        "vkprovider_lds_call_seconds",
        "histogram",
        ("deployment", "operation", "code"),
        "Time of a call of the Lab Delivery System, each repetition by itself; the code is as for CML.",
        lambda _: LDS_CALLS.took_s.items(),
    ),
    Measure(
        "vkprovider_api_requests_total",
        "counter",
        (),
        "Requests to the API server, watches included.",
        lambda r: value(r.ctx.kube.requests_total),
    ),
    Measure(
        "vkprovider_api_errors_total",
        "counter",
        ("code",),
        "Requests that the API server refused, by status, or that got no answer (`none`).",
        lambda r: by_name(r.ctx.kube.errors),
    ),
    Measure(
        "vkprovider_api_writes_total",
        "counter",
        ("resource", "verb"),
        "Writes by resource and verb, as RBAC names them.",
        lambda r: r.ctx.kube.writes.items(),
    ),
    Measure(
        "vkprovider_watch_restarts_total",
        "counter",
        ("informer",),
        "Watches begun after the first; a few per hour are normal.",
        of_informers(lambda informer: informer.restarts_total),
    ),
    Measure(
        "vkprovider_relists_total",
        "counter",
        ("informer",),
        "Complete lists after the first.",
        of_informers(lambda informer: informer.relists_total),
    ),
    Measure(
        "vkprovider_watch_silence_seconds",
        "gauge",
        ("informer",),
        "Time since the API server was last heard on a watch; bookmarks come every minute.",
        of_informers(silence_s),
    ),
    Measure(
        "vkprovider_decode_errors_total",
        "counter",
        ("informer",),
        "Objects skipped because they could not be read.",
        of_informers(lambda informer: informer.decode_errors_total),
    ),
    Measure(
        "vkprovider_events_written_total",
        "counter",
        (),
        "Kubernetes Events created or counted up.",
        lambda r: value(r.ctx.events.written_total),
    ),
    Measure(
        "vkprovider_events_dropped_total",
        "counter",
        (),
        "Kubernetes Events never written.",
        lambda r: value(r.ctx.events.dropped_total),
    ),
    Measure("vkprovider_tasks", "gauge", (), "Tasks in the replica's event loop.", tasks),
    Measure("process_cpu_seconds_total", "counter", (), "CPU time of the replica."),
    Measure("process_resident_memory_bytes", "gauge", (), "Resident memory of the replica."),
    Measure("process_virtual_memory_bytes", "gauge", (), "Virtual memory of the replica."),
    Measure("process_start_time_seconds", "gauge", (), "When the replica began, seconds since 1970."),
    Measure("process_open_fds", "gauge", (), "Open files and connections of the replica."),
    Measure("process_max_fds", "gauge", (), "How many it may open."),
)
