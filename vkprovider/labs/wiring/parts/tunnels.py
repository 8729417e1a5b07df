"""The part of tunnels: the agents beside workers that the cluster cannot dial, and the CMLWorkers made for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from vkprovider.labs.controllers.worker.registration import Registration
from vkprovider.labs.controllers.worker.tunnels import Tunnels
from vkprovider.labs.http.agents import Agents
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.metrics.tunnels import tunnels_measures
from vkprovider.labs.wiring.tunnels import agent_tokens, carriers, dialled, listening
from vkprovider.platform.runtime.parts import Part, Route, Work


@dataclass(frozen=True, kw_only=True)
class TunnelsPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        tunnels: The ways to workers through agents.
    """

    tunnels: Tunnels


def tunnels(base: Base, *, heard: Callable[[str], None], happened: Callable[[str], None]) -> TunnelsPart:
    """Build the part.

    Args:
        base: What all parts share.
        heard: Called by `Tunnels` with the name of an agent that came, left or says something else.
        happened: Called by `Tunnels` with the name of an agent that reports a change of its worker.

    Raises:
        InputError: `SettingInvalid`: a file that the settings name cannot be read.
    """
    ctx, settings, queues = base.ctx, base.settings, base.queues
    dialling = listening(settings.http_tunnel, ctx.process, partial(dialled, base.membership))
    known = Tunnels(carriers(settings.mqtt, ctx.process, dialling), heard=heard, happened=happened)
    registration = Registration(
        ctx,
        settings.tunnels,
        known,
        base.objects.workers.items,
        base.membership.leads,
        reconcile_s=settings.workers.reconcile_s,
    )
    return TunnelsPart(
        tunnels=known,
        works=(Work(queues.agents, registration.reconcile),),
        loops={f"tunnel-{kind}": hub.run for kind, hub in known.hubs.items()},  # to all workers by that way
        measures=tuple(tunnels_measures(known)),
        routes=(Route("GET", "/tunnel", Agents(agent_tokens(settings.http_tunnel), dialling).handle),),
    )
