"""Every metric: its name, type, labels and meaning, and the reader of its samples.

Names without `vkprovider_` are those of the lablet controller, and stay; `process_*` are those of Prometheus' clients.
"""

from typing import Final

from vkprovider import __version__
from vkprovider.app.metrics.measure import counter, gauge, histogram
from vkprovider.app.metrics.readings import (
    agents,
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
    tunnel_counts,
    value,
)
from vkprovider.cml.factory import CALLS
from vkprovider.lds.factory import CALLS as LDS_CALLS

MEASURES: Final = (
    histogram(
        "instance_reconciliation_duration_seconds",
        "Time of a turn of one lablet, by its Pod's UID; ends with the lablet.",
        lambda r: by_name(r.queues.lablets.ran_s_of or {}),
        "instance_id",
    ),
    counter(
        "instance_state_transitions_total",
        "State changes of lablets; from nothing when a replica meets one.",
        lambda r: r.counters.transitions.items(),
        "from_state",
        "to_state",
    ),
    histogram(
        "lab_start_duration_seconds",
        "Time from the request to start a lab until all of its devices had booted.",
        lab_starts,
        "worker_id",
    ),
    gauge(
        "lab_nodes_booted",
        "Devices of a lablet's lab that have booted; ends with the lab.",
        booted,
        "instance_id",
        "lab_id",
    ),
    gauge("vkprovider_build_info", "1; the version is the label.", lambda _: [((__version__,), 1)], "version"),
    gauge(
        "vkprovider_ready",
        "Whether the replica knows all objects that it decides from and could renew its Lease.",
        lambda r: value(not r.unready()),
    ),
    gauge(
        "vkprovider_replica_fenced",
        "Whether the replica must not act, because it could not renew its Lease for too long.",
        lambda r: value(r.ownership.is_fenced),
    ),
    gauge(
        "vkprovider_leader",
        "Whether this replica writes what belongs to no worker, such as RuntimeClasses; one replica does.",
        lambda r: value(r.membership.leads()),
    ),
    gauge("vkprovider_owned_nodes", "Nodes of this replica.", lambda r: value(len(r.ownership.epochs))),
    gauge(
        "vkprovider_imbalance",
        "Nodes of the replica with most, less those of the one with least; at most 1 unless nodes are changing hands.",
        lambda r: value(r.ownership.plan.imbalance),
    ),
    gauge(
        "vkprovider_lease_age_seconds",
        "Time since this replica renewed its own Lease (`replica`), and that Lease of its Nodes whose "
        "renewal is longest ago (`node`).",
        lease_ages,
        "lease",
    ),
    gauge(
        "vkprovider_node_owned",
        "Whether this replica owns the Node of a CMLWorker; exactly one replica should.",
        lambda r: (((name,), name in r.ownership.epochs) for name in r.objects.workers.items),
        "worker",
    ),
    gauge(
        "vkprovider_worker_ready",
        "Whether a CMLWorker's condition Ready is True; every replica reports it for all.",
        ready,
        "worker",
    ),
    gauge(
        "vkprovider_lablets",
        "Pods on this replica's Nodes by state; `unreported` before the first report.",
        lablets,
        "state",
    ),
    gauge(
        "vkprovider_claims",
        "Claims of a worker: lablets that have, or may have, a lab on it.",
        lambda r: (((w.name,), len(w.claims.claims)) for w in r.fleet.items.values()),
        "worker",
    ),
    gauge(
        "vkprovider_claims_unwritable",
        "Whether a worker's claims cannot be written, so that no lablet may begin on it.",
        lambda r: (((w.name,), w.claims.fault is not None) for w in r.fleet.items.values()),
        "worker",
    ),
    counter("vkprovider_claim_writes_total", "Claim stores written.", lambda r: value(r.counters.claim_writes)),
    counter("vkprovider_status_writes_total", "Pod statuses written.", lambda r: value(r.counters.status_writes)),
    counter("vkprovider_steps_total", "Steps taken for lablets.", lambda r: by_name(r.counters.steps), "step"),
    counter(
        "vkprovider_step_failures_total",
        "Steps that failed: what they ask refused or did not answer, or an object they need was wrong.",
        lambda r: by_name(r.counters.step_failures),
        "step",
    ),
    counter(
        "vkprovider_state_transitions_refused_total",
        "State changes that no table allows.",
        lambda r: value(r.counters.transitions_refused),
    ),
    counter(
        "vkprovider_fenced_total",
        "Side effects that were stopped because the Node was not this replica's (any more).",
        lambda r: value(r.ownership.fenced_total),
    ),
    counter(
        "vkprovider_takeovers_total", "Nodes taken from a silent replica.", lambda r: value(r.ownership.takeovers_total)
    ),
    counter(
        "vkprovider_session_events_total",
        "Events of the Lab Delivery System that reached this replica, by what became of them.",
        lambda r: by_name(r.session_events),
        "outcome",
    ),
    gauge(
        "vkprovider_inbox_sessions",
        "Sessions of which an event is noted that no claim has taken over; every replica reports it for all.",
        lambda r: value(len(r.inbox.rows)),
    ),
    gauge(
        "vkprovider_queue_depth",
        "Keys that are due and wait for their turn.",
        of_queues(lambda queue: queue.depth),
        "queue",
    ),
    gauge(
        "vkprovider_queue_oldest_age_seconds",
        "For how long the first of them has been due.",
        of_queues(lambda queue: queue.oldest_age_s),
        "queue",
    ),
    counter(
        "vkprovider_queue_rushes_total",
        "Turns that asked for the next one at once and were made to wait, longer each time in a row.",
        of_queues(lambda queue: queue.rushes_total),
        "queue",
    ),
    histogram(
        "vkprovider_queue_wait_seconds",
        "Time between a key's being due and its turn.",
        of_queues(lambda queue: queue.waited_s),
        "queue",
    ),
    histogram(
        "vkprovider_reconcile_seconds",
        "Time of a turn; the result is `ok`, `error` or `fenced`.",
        reconciles,
        "queue",
        "result",
    ),
    histogram(
        "vkprovider_cml_call_seconds",
        "Time of a call of CML; the code is the HTTP status, or `timeout`, `lost`, `unreachable`, "
        "`certificate`, `not_allowed`.",
        lambda _: CALLS.took_s.items(),
        "operation",
        "code",
    ),
    histogram(
        "vkprovider_lds_call_seconds",
        "Time of a call of the Lab Delivery System, each repetition by itself; the code is as for CML.",
        lambda _: LDS_CALLS.took_s.items(),
        "deployment",
        "operation",
        "code",
    ),
    gauge(
        "vkprovider_tunnel_agents",
        "Agents by tunnel and state: `there`, `silent`, `left`; a tunnel that is not configured is missing.",
        agents,
        "tunnel",
        "state",
    ),
    counter(
        "vkprovider_tunnel_frames_total",
        "Frames and connections of a tunnel by what became of them: `sent`, `dropped` because there was no "
        "connection or no room, `refused` because they could not be used, `disconnected`.",
        tunnel_counts,
        "tunnel",
        "what",
    ),
    counter(
        "vkprovider_api_requests_total",
        "Requests to the API server, watches included.",
        lambda r: value(r.ctx.kube.requests_total),
    ),
    counter(
        "vkprovider_api_errors_total",
        "Requests that the API server refused, by status, or that got no answer (`none`).",
        lambda r: by_name(r.ctx.kube.errors),
        "code",
    ),
    counter(
        "vkprovider_api_writes_total",
        "Writes by resource and verb, as RBAC names them.",
        lambda r: r.ctx.kube.writes.items(),
        "resource",
        "verb",
    ),
    gauge(
        "vkprovider_api_in_flight",
        "Requests that await an answer of the API server, without Leases, claims and watches.",
        lambda r: value(r.ctx.kube.flow.in_flight),
    ),
    gauge(
        "vkprovider_api_in_flight_limit",
        "How many of them there may be now; fewer after the API server refused one or did not answer.",
        lambda r: value(r.ctx.kube.flow.limit),
    ),
    gauge(
        "vkprovider_api_waiting",
        "Requests that wait to be sent, by lane: first `result`, which a user or controller acts on, then `work`, then "
        "`news`.",
        lambda r: by_name(r.ctx.kube.flow.waiting),
        "lane",
    ),
    counter(
        "vkprovider_watch_restarts_total",
        "Watches begun after the first; a few per hour are normal.",
        of_informers(lambda informer: informer.restarts_total),
        "informer",
    ),
    counter(
        "vkprovider_relists_total",
        "Complete lists after the first.",
        of_informers(lambda informer: informer.relists_total),
        "informer",
    ),
    gauge(
        "vkprovider_watch_silence_seconds",
        "Time since the API server was last heard on a watch; bookmarks come every minute.",
        of_informers(silence_s),
        "informer",
    ),
    counter(
        "vkprovider_decode_errors_total",
        "Objects skipped because they could not be read.",
        of_informers(lambda informer: informer.decode_errors_total),
        "informer",
    ),
    counter(
        "vkprovider_events_written_total",
        "Kubernetes Events created or counted up.",
        lambda r: value(r.ctx.events.written_total),
    ),
    counter(
        "vkprovider_warnings_total",
        "Warnings about objects, by the reason of their Event; repeated ones count, too.",
        lambda r: by_name(r.ctx.events.warnings_total),
        "reason",
    ),
    counter(
        "vkprovider_http_refusals_total",
        "Requests to the HTTP page that were refused, by reason.",
        lambda r: by_name(r.http_refusals),
        "reason",
    ),
    gauge("vkprovider_kubelet_nodes", "Nodes whose kubelet API is served.", lambda r: value(len(r.kubelet.listeners))),
    gauge(
        "vkprovider_kubelet_certificate_signed",
        "Whether the certificate of the kubelet API is signed by the cluster; else it is the replica's own.",
        lambda r: value(r.kubelet.certificates is not None and r.kubelet.certificates.is_signed),
    ),
    gauge(
        "vkprovider_kubelet_sessions",
        "Open sessions of the kubelet API: `logs`, `attach`, `exec`, `portForward`.",
        lambda r: by_name(r.kubelet.sessions.open),
        "kind",
    ),
    counter(
        "vkprovider_kubelet_requests_total",
        "Requests to the kubelet API by path, without names, and status; a session counts when it ends.",
        lambda r: r.kubelet.requests.items(),
        "path",
        "code",
    ),
    counter(
        "vkprovider_events_dropped_total",
        "Kubernetes Events never written.",
        lambda r: value(r.ctx.events.dropped_total),
    ),
    gauge("vkprovider_tasks", "Tasks in the replica's event loop.", tasks),
    counter("process_cpu_seconds_total", "CPU time of the replica."),
    gauge("process_resident_memory_bytes", "Resident memory of the replica."),
    gauge("process_virtual_memory_bytes", "Virtual memory of the replica."),
    gauge("process_start_time_seconds", "When the replica began, seconds since 1970."),
    gauge("process_open_fds", "Open files and connections of the replica."),
    gauge("process_max_fds", "How many it may open."),
)
