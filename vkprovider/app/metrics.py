"""Every metric, in one place: read from the controllers' own counts when somebody asks."""

from collections import Counter as Tally
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ReplicaCollector(Collector):
    """Turns the counts of one replica into metrics; costs nothing between two scrapes."""

    def __init__(self, replica: Any) -> None:
        self._replica = replica

    def collect(self) -> Iterator[Metric]:
        """Read all counts."""
        replica, counters = self._replica, self._replica.ctx.counters
        yield _labelled("vkprovider_steps", "Steps taken for lablets.", ["step"], counters.steps)
        yield _labelled("vkprovider_step_failures", "Steps that failed.", ["step"], counters.step_failures)
        transitions = CounterMetricFamily(
            "instance_state_transitions", "State changes of lablets.", labels=["from_state", "to_state"]
        )
        for (old, new), count in counters.transitions.items():
            transitions.add_metric([old, new], count)
        yield transitions
        for name, text, value in (
            (
                "vkprovider_state_transitions_refused",
                "State changes that no table allows.",
                counters.transitions_refused,
            ),
            ("vkprovider_status_writes", "Pod statuses written.", counters.status_writes),
            ("vkprovider_claim_writes", "Claim stores written.", counters.claim_writes),
            ("vkprovider_fenced", "Side effects refused because the node was not ours.", counters.fenced),
            ("vkprovider_takeovers", "Nodes taken from a silent replica.", counters.takeovers),
            ("vkprovider_api_requests", "Requests to the API server.", replica.ctx.kube.requests_total),
        ):
            yield CounterMetricFamily(name, text, value=value)
        depth = GaugeMetricFamily("vkprovider_queue_depth", "Keys that are due.", labels=["queue"])
        age = GaugeMetricFamily("vkprovider_queue_oldest_age_seconds", "How late the oldest is.", labels=["queue"])
        queues = {
            "workers": replica.workers.queue,
            "claims": replica.workers.flushes,
            "lablets": replica.lablets.queue,
            "definitions": replica.definitions.queue,
        }
        for name, queue in queues.items():
            depth.add_metric([name], queue.depth)
            age.add_metric([name], queue.oldest_age_s)
        yield depth
        yield age
        watches = CounterMetricFamily("vkprovider_watch_restarts", "Watches begun again.", labels=["informer"])
        for informer in replica.informers:
            watches.add_metric([informer.name], informer.restarts_total)
        yield watches
        yield GaugeMetricFamily("vkprovider_owned_nodes", "Nodes of this replica.", value=len(replica.ownership.epochs))
        states = Tally(str(lablet.state or "") for lablet in replica.lablets.items.values())
        lablets = GaugeMetricFamily("vkprovider_lablets", "Lablets by state.", labels=["state"])
        for state, count in states.items():
            lablets.add_metric([state], count)
        yield lablets


def _labelled(name: str, text: str, labels: list[str], counts: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, count in counts.items():
        family.add_metric([key], count)
    return family


def registry_of(replica: Any) -> CollectorRegistry:
    """Make a registry of its own for one replica."""
    registry = CollectorRegistry()
    registry.register(ReplicaCollector(replica))
    return registry
