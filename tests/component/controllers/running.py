"""A replica in the test's own loop, and settings with short intervals for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from tests.support.inloop import InLoop
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.wiring.provider import Provider
from vkprovider.platform.http.page import Page
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.settings import HttpSettings

Groups = Mapping[str, Mapping[str, object]]
"""Fields of groups of settings, by group."""
SHORT: Final[Groups] = {
    "workers": {
        "probe_s": 0.4,
        "refresh_probes": 1,
        "transition_s": 0.1,
        "reconcile_s": 86_400.0,
        "write_retry_first_s": 0.1,
        "write_retry_cap_s": 0.5,
    },
    "kubelet": {"internal_ip": "127.0.0.1", "host": "127.0.0.1", "ports": "0"},
    "lablets": {
        "transition_s": 0.1,
        "progress_after_s": 0.3,
        "progress_every_s": 1.0,
        "step_retry_first_s": 0.1,
        "step_retry_cap_s": 0.5,
    },
}
"""Short intervals, and no periodic passes: nothing is found later that was missed. Everything else as it is shipped."""
WITH_PASSES: Final[Groups] = {**SHORT, "workers": {**SHORT["workers"], "reconcile_s": 2.0}}
"""For the few tests of what passes find."""
MORTAL: Final[Groups] = {**SHORT, "replica": {"lease_ttl_s": 6.0}}
"""For replicas whose loss others notice: after 4 s instead of 10."""


class Replica:
    """A replica of the provider, and what tests look at in its parts."""

    def __init__(self, provider: Provider) -> None:
        base, sessions, labs = provider.base, provider.sessions, provider.labs
        self.process = provider.process
        self.ctx = base.ctx
        self.membership = base.membership
        self.counters = base.counters
        self.queues = base.queues
        self.objects = base.objects
        self.fleet = base.fleet
        self.index = base.index
        self.ownership = provider.nodes.ownership
        self.tunnels = provider.tunnels.tunnels
        self.devices = provider.kubelet.devices
        self.kubelet = provider.kubelet.kubelet
        self.inbox = sessions.inbox
        self.deliveries = sessions.sessions
        self.strays = sessions.strays
        self.archive = labs.archive
        self.exports = labs.exports
        self.http_refusals = provider.process.refusals


@dataclass
class Running(InLoop):
    """A replica that runs in this loop."""

    replica: Replica
    deployments: Deployments | None = None
    grader: HttpGrader | None = None

    @property
    def name(self) -> str:
        """Its identity, as Leases show it."""
        return self.replica.ctx.replica

    @property
    def ctx(self) -> Context:
        """Its context."""
        return self.replica.ctx

    @asynccontextmanager
    async def page(self, port: int = 0) -> AsyncIterator[str]:
        """Serve its page, and return the page's URL."""
        page = Page(HttpSettings(host="127.0.0.1", port=port), self.name, starting={})
        await page.start()
        page.serve(self.replica.process)
        try:
            yield f"http://127.0.0.1:{page.port}"
        finally:
            await page.stop()

    async def close(self) -> None:
        """Close its connections."""
        await self.ctx.kube.close()
        if self.deployments is not None:
            await self.deployments.close()
        if self.grader is not None:
            await self.grader.close()
