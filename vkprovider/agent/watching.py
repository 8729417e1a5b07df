"""Looks at CML beside the agent, so that a change crosses the tunnel as one event and nobody asks for it from afar."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from tunnels.base import Response, Transport
from tunnels.wire import READS
from vkprovider.cml.dialect import BY_OWN_SETTINGS, Trust
from vkprovider.cml.factory import session_over
from vkprovider.cml.stats import CmlWorkerStats
from vkprovider.cml.worker import CmlLabs
from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact, WorkerUsage
from vkprovider.platform.errors import OutsideError

CALM: Final = 5
"""How many times longer the pauses are while nothing on the worker moves."""
BUSY_S: Final = 10.0
"""A command may show its effect only after a while."""
USAGE_EVERY_S: Final = 20.0

Labs = tuple[frozenset[str], dict[str, tuple[DeviceFact, ...]]]
"""Ids of all labs, and their devices by lab."""

_log: Final = structlog.get_logger(__name__)


class Watch:
    """A `Transport` to CML that also looks at CML by itself, and soon after a command has passed.

    Attributes:
        usage: What the worker has and uses; None while CML does not say, or is not asked.

    Args:
        transport: To CML, logged in.
        address: CML's URL, for messages.
        every_s: Between two looks while something moves.
        with_stats: Whether CML is asked what it has and uses.
        trust: Where the authorities stand that may sign CML's certificate.
    """

    def __init__(
        self,
        transport: Transport,
        address: str,
        every_s: float,
        *,
        with_stats: bool,
        trust: Trust = BY_OWN_SETTINGS,
    ) -> None:
        self.usage: WorkerUsage | None = None
        self._transport: Final = transport
        self._every_s: Final = every_s
        self._with_stats: Final = with_stats
        session = session_over(transport, address, None, trust=trust)
        self._labs: Final = CmlLabs(session, address)
        self._stats: Final = CmlWorkerStats(session)
        self._busy_until_s = 0.0
        self._woken: Final = asyncio.Event()
        self._trouble: str | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> Response:
        """Pass on a request; see `Transport.request`.

        Raises:
            TransportError: See there.
        """
        try:
            return await self._transport.request(
                method, path, params=params, body=body, headers=headers, deadline_s=deadline_s
            )
        finally:
            if method not in READS:
                self._busy_until_s = _now_s() + BUSY_S
                self._woken.set()

    async def close(self) -> None:
        """Close the connections to CML."""
        await self._transport.close()

    async def run(self, changed: Callable[[], None]) -> None:
        """Look at CML until cancelled.

        Args:
            changed: Called whenever labs, devices or CML's readiness differ from the last look, and after the first.
        """
        seen: Labs | str | None = None
        usage_at_s = float("-inf")
        while True:
            found = await self._look()
            if found != seen:
                seen = found
                changed()
            if self._with_stats and _now_s() - usage_at_s >= USAGE_EVERY_S and not isinstance(found, str):
                usage_at_s = _now_s()
                self.usage = await self._ask_usage()
            await self._pause(seen)

    async def _look(self) -> Labs | str:
        """Return CML's figures, or the word for the reason why there are none; log either if it is news."""
        try:
            found = frozenset(await self._labs.list_lab_ids()), await self._labs.list_all_devices()
        except OutsideError as error:
            if self._trouble != error.message:
                self._trouble = error.message
                _log.warning("CML cannot be asked", error=error.message)
            return type(error).__name__
        if self._trouble != "":
            self._trouble = ""
            _log.info("CML answers", labs=len(found[0]))
        return found

    async def _ask_usage(self) -> WorkerUsage | None:
        try:
            return await self._stats.usage()
        except OutsideError as error:
            if self.usage is not None:
                _log.warning("CML sends no statistics", error=str(error))
            return None

    async def _pause(self, seen: Labs | str) -> None:
        self._woken.clear()
        if _now_s() < self._busy_until_s or _is_moving(seen):
            await asyncio.sleep(self._every_s)
            return
        try:
            async with asyncio.timeout(CALM * self._every_s):
                await self._woken.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._every_s)


def _is_moving(seen: Labs | str) -> bool:
    """Return whether a device is about to change, or in a state that says nothing."""
    if isinstance(seen, str):
        return False
    states = {device.state for devices in seen[1].values() for device in devices}
    return bool(states & observations.BOOTING or states - observations.KNOWN)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
