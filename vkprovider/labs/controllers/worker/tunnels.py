"""The tunnels of a replica, the agents at them, and CMLWorkers for agents that present themselves."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from tunnels.base import AllowList
from tunnels.link.carrier import Carrier
from tunnels.link.hub import Hub, TunnelTransport
from tunnels.protocol.presence import AgentState, AgentView
from vkprovider.carriers.hello import AgentFacts, parse_facts
from vkprovider.carriers.settings import TunnelSettings
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.worker.node import Health, unhealthy
from vkprovider.labs.pure.worker.registration import Bearer, Create, Deny, PresentAgent, decide
from vkprovider.platform.errors import Conflict, Forbidden, InputError, Invalid
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.queue import Result
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

NOTHING: Final = AgentFacts()
"""The report of an absent agent: empty."""
SETTINGS: Final[Mapping[str, str]] = {
    "mqtt": "VKPROVIDER_TUNNEL_MQTT_URL",
    "http": "VKPROVIDER_TUNNEL_HTTP_TOKENS",
}
"""The setting without which a tunnel is not there, by its word in `spec.tunnel`."""


@dataclass(frozen=True, slots=True)
class WorkerRoute:
    """The way to a worker.

    Attributes:
        name: The CMLWorker's.
        guard: Called right before a request leaves; None for a caller that only reads.
        term: Returns the number of this replica's ownership; 0 if it owns nothing.
    """

    name: str
    guard: Guard | None
    term: Callable[[], int]


class Tunnels:
    """The tunnels of this replica: one hub, with one connection, for all workers of a kind of tunnel.

    Attributes:
        hubs: By the word in `spec.tunnel`.

    Args:
        carriers: By the word in `spec.tunnel`, those that are configured.
        heard: Called with the name of an agent that came, left or changed what it says of itself, but for its worker's
            usage.
        happened: Called with the name of an agent that reports a change of its worker.
    """

    def __init__(
        self,
        carriers: Mapping[str, Carrier],
        *,
        heard: Callable[[str], None],
        happened: Callable[[str], None],
    ) -> None:
        self._ears = {kind: _HeardAgents(kind, heard, happened) for kind in carriers}
        self.hubs: Final = {kind: Hub(carrier, self._ears[kind]) for kind, carrier in carriers.items()}

    @property
    def names(self) -> frozenset[str]:
        """The names of all agents that were heard."""
        return frozenset(name for ear in self._ears.values() for name in ear.known)

    def states(self) -> dict[str, Counter[str]]:
        """Count the agents by state, for each kind of tunnel."""
        return {
            kind: Counter(self.hubs[kind].view(name).state.value for name in ear.known)
            for kind, ear in self._ears.items()
        }

    def transport(self, kind: str, way: WorkerRoute, allow: AllowList, user_agent: str) -> TunnelTransport:
        """Return the transport to a worker, which also opens streams.

        Raises:
            InputError: `TunnelNotConfigured`.
        """
        hub = self.hubs.get(kind)
        if hub is not None:
            return TunnelTransport(hub, way.name, allow=allow, guard=way.guard, epoch=way.term, user_agent=user_agent)
        raise InputError(
            WorkerReason.TUNNEL_NOT_CONFIGURED, f"spec.tunnel is {kind}, which is not configured: set {SETTINGS[kind]}"
        )

    def bearers(self, name: str) -> list[Bearer]:
        """Return the agents of a name that are there, one for each kind of tunnel."""
        views = {kind: hub.view(name) for kind, hub in self.hubs.items()}
        return [Bearer(kind, view.boot, view.rival) for kind, view in views.items() if view.state is AgentState.THERE]

    def facts(self, kind: str, name: str) -> AgentFacts:
        """Return an agent's report; an empty one if it is not there."""
        ear, hub = self._ears.get(kind), self.hubs.get(kind)
        if ear is None or hub is None or hub.view(name).state is not AgentState.THERE:
            return NOTHING
        return ear.facts.get(name, NOTHING)

    def away(self, kind: str, name: str) -> Health | None:
        """Return why an agent cannot be asked; None if it can, or the tunnel has none."""
        hub = self.hubs.get(kind)
        return _away(name, hub.view(name)) if hub is not None else None

    def heard_term(self, kind: str, name: str) -> int:
        """Return the number of the latest owner that an agent has heard; 0 if there is no agent."""
        hub = self.hubs.get(kind)
        view = hub.view(name) if hub is not None else AgentView()
        return view.epoch if view.state is AgentState.THERE else 0


def _away(name: str, view: AgentView) -> Health | None:
    match view.state:
        case AgentState.THERE:
            return None
        case AgentState.UNKNOWN:
            text = (
                f"the replica that owns its Node (status.owner) hears no agent {name}: see that `vkprovider agent` "
                "runs with that name, and that it logs a connection to that replica or its broker"
            )
        case AgentState.SILENT:
            text = f"agent {name} is silent; see that it runs and has a connection. Nothing is deleted meanwhile"
        case _:
            text = f"agent {name} has left ({view.reason or 'no reason given'}). Nothing is deleted meanwhile"
    return unhealthy(WorkerReason.AGENT_AWAY, text)


def _facts_of(said: bytes) -> AgentFacts:
    """Return an agent's report; an empty one if it cannot be read, which its registration says."""
    try:
        return parse_facts(said)
    except InputError:
        return NOTHING


class _HeardAgents:
    """Receives unsolicited messages of agents, and reports changes.

    Args:
        kind: Of the tunnel.
        heard: See `Tunnels`.
        happened: See `Tunnels`.

    Attributes:
        known: The last reported state, by the agent's name.
        facts: The last report of each agent.
    """

    def __init__(self, kind: str, heard: Callable[[str], None], happened: Callable[[str], None]) -> None:
        self._kind = kind
        self._heard = heard
        self._happened = happened
        self.known: dict[str, tuple[object, ...]] = {}
        self.facts: dict[str, AgentFacts] = {}
        self._said: dict[str, bytes] = {}

    def presence(self, name: str, view: AgentView) -> None:
        """Note that something about an agent changed; what heartbeats change all the time is not news."""
        if self._said.get(name) != view.facts:
            self._said[name] = view.facts
            self.facts[name] = _facts_of(view.facts)
        now = view.state, view.boot, view.rival, msgspec.structs.replace(self.facts.get(name, NOTHING), usage=None)
        if self.known.get(name) == now:
            return
        self.known[name] = now
        _log.info("agent", tunnel=self._kind, agent=name, state=view.state.value, boot=view.boot, rival=view.rival)
        self._heard(name)

    def event(self, name: str, kind: str, data: bytes, *, lost: bool) -> None:  # noqa: ARG002 (a look shows all)
        """Note that something changed at a worker, or that word of it was lost."""
        self._happened(name)


class Registration:
    """The agents of all tunnels and their CMLWorkers.

    Args:
        ctx: The replica.
        settings: What happens to an agent that no CMLWorker names.
        tunnels: By which agents come.
        resources: All CMLWorkers, by name.
        leads: Returns whether this replica leads; only that one writes.
        reconcile_s: Seconds until creating a refused CMLWorker is tried again: nothing announces that it would succeed.
    """

    def __init__(
        self,
        ctx: Context,
        settings: TunnelSettings,
        tunnels: Tunnels,
        resources: Mapping[str, CustomResource],
        leads: Callable[[], bool],
        *,
        reconcile_s: float,
    ) -> None:
        self._ctx = ctx
        self._settings = settings
        self._tunnels = tunnels
        self._resources = resources
        self._leads = leads
        self._reconcile_s = reconcile_s
        self._said: set[tuple[str, str]] = set()

    async def reconcile(self, name: str) -> Result:
        """Do what is to be done about the agents of a name."""
        if not self._leads():
            return Result()
        refused = False
        for kind, hub in self._tunnels.hubs.items():
            view = hub.view(name)
            if view.state is not AgentState.THERE:
                continue
            try:
                hello = PresentAgent(name, kind, parse_facts(view.facts))
            except InputError as error:
                self._say(name, error.message)
                continue
            refused |= await self._do(hello)
        return Result(self._reconcile_s if refused else None)

    async def _do(self, hello: PresentAgent) -> bool:
        """Do what is decided about an agent; return whether the API server refuses it."""
        match decide(hello, self._resources.get(hello.name), self._settings.register_policy):
            case Create(body):
                try:
                    await self._ctx.api.workers.metadata_only.create(body)
                except Conflict:
                    return False  # it exists already: its event queues the name again
                except (Invalid, Forbidden) as error:
                    self._say(hello.name, f"its CMLWorker cannot be created: {error.message}")
                    return True
                _log.info("a CMLWorker was made for an agent", worker=hello.name, tunnel=hello.tunnel)
            case Deny(why):
                self._say(hello.name, why)
            case None:
                pass
        return False

    def _say(self, name: str, why: str) -> None:
        """Log once why an agent remains without a CMLWorker."""
        if (name, why) not in self._said:
            self._said.add((name, why))
            _log.warning("an agent remains without a CMLWorker", agent=name, why=why)
