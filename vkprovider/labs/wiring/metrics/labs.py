"""The metrics of labs. Names without `vkprovider_` are those of the lablet controller, and stay."""

from collections import Counter
from collections.abc import Iterator, Mapping

from vkprovider.cml.factory import CALLS
from vkprovider.lablet import labs as words
from vkprovider.lablet.lifecycle import State
from vkprovider.labs.controllers.counters import Counters
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.wiring.base import Base
from vkprovider.platform.runtime.metrics.measure import Measure, Sample, by_name, counter, gauge, histogram, value


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
