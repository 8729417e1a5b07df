"""The metrics of tunnels: their agents and frames."""

from collections.abc import Iterator

from vkprovider.labs.controllers.worker.tunnels import Tunnels
from vkprovider.platform.runtime.metrics.measure import Measure, Sample, counter, gauge


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
