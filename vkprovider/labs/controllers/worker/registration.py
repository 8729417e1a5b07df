"""CMLWorkers for agents that present themselves; `labs.pure.worker.registration` decides, the leading replica acts."""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from tunnels.protocol.presence import State
from vkprovider.carriers.hello import parse_facts
from vkprovider.carriers.settings import TunnelSettings
from vkprovider.labs.controllers.worker.tunnels import Tunnels
from vkprovider.labs.pure.worker.registration import Create, Deny, Hello, decide
from vkprovider.platform.errors import Conflict, Forbidden, InputError, Invalid
from vkprovider.platform.kube.queue import Result
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)


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
        """Do what is to be done about the agents of a name.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
        if not self._leads():
            return Result()
        refused = False
        for kind, hub in self._tunnels.hubs.items():
            view = hub.view(name)
            if view.state is not State.THERE:
                continue
            try:
                hello = Hello(name, kind, parse_facts(view.facts))
            except InputError as error:
                self._say(name, error.message)
                continue
            refused |= await self._do(hello)
        return Result(self._reconcile_s if refused else None)

    async def _do(self, hello: Hello) -> bool:
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
