"""The version of Kubernetes that our Nodes claim: that of the API server, which is upgraded while we run."""

import asyncio
from typing import Final

import structlog

from vkprovider.labs.pure.worker.kubeletversion import kubelet_version
from vkprovider.platform.errors import Forbidden, OutsideError
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_EVERY_S: Final = 300.0
"""How often the API server is asked; each replica asks once for all of its Nodes."""


class KubernetesVersion:
    """The API server's version, as a kubelet's.

    Attributes:
        kubelet: As last read; "" before.
    """

    def __init__(self, ctx: Context) -> None:
        """Create it; nothing is read yet."""
        self._ctx = ctx
        self._asking = asyncio.Lock()
        self._next_at = 0.0
        self.kubelet = ""

    async def look(self) -> str:
        """Return the version for Nodes, and ask the API server for its own if that was long ago.

        Raises:
            OutsideError: It was never read, and the API server did not answer.
        """
        async with self._asking:
            if self.kubelet and self._ctx.now() < self._next_at:
                return self.kubelet
            try:
                self.kubelet = kubelet_version(await self._ctx.kube.version())
            except Forbidden as error:
                self.kubelet = self.kubelet or kubelet_version("")
                _log.warning("the API server's version may not be read", error=str(error), nodes=self.kubelet)
            except OutsideError:
                if not self.kubelet:
                    raise
            self._next_at = self._ctx.now() + _EVERY_S
            return self.kubelet
