"""Figures of a worker: load, licences, node and image definitions. Nothing is asked unless a worker says so.

Only this module asks CML for more than labs.
"""

from typing import Protocol

import msgspec

from vkprovider.cml.operations import LICENSING, LIST_DEFINITIONS, LIST_IMAGES, SYSTEM_STATS
from vkprovider.lablet.observations import DeviceFigures, WorkerUsage
from vkprovider.rest.client import ServiceClient


class WorkerStats(Protocol):
    """Load, licences and node definitions of one worker."""

    async def usage(self) -> WorkerUsage:
        """Get load and licences.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """

    async def definitions(self) -> list[DeviceFigures]:
        """Get what one device of each node definition needs.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """

    async def close(self) -> None:
        """Close the connections."""


class _Cpu(msgspec.Struct, frozen=True, gc=False):
    count: int | None = None


class _Memory(msgspec.Struct, frozen=True, gc=False):
    total: float | None = None
    used: float | None = None


class _Dominfo(msgspec.Struct, frozen=True, gc=False):
    allocated_cpus: int | None = None
    allocated_memory: int | None = None  # KiB


class _Stats(msgspec.Struct, frozen=True, gc=False):
    cpu: _Cpu = _Cpu()
    memory: _Memory = _Memory()
    dominfo: _Dominfo = _Dominfo()


class _Compute(msgspec.Struct, frozen=True, gc=False):
    is_controller: bool = False
    stats: _Stats = _Stats()


class _SystemStats(msgspec.Struct, frozen=True, gc=False):
    """`GET /system_stats`: `{"computes": {"<id>": {"is_controller": true, "stats": {…}}}, "all": {"cpu": …}}`."""

    computes: dict[str, _Compute] = {}
    all: _Stats = _Stats()


class _Licensing(msgspec.Struct, frozen=True, gc=False):
    """`GET /diagnostics/licensing`: `{"quota": 20, "started": 3, …}`."""

    quota: int | None = None
    started: int | None = None


class _Native(msgspec.Struct, frozen=True, gc=False):
    cpus: int | None = None
    ram: int | None = None  # MiB
    cpu_limit: int | None = None  # percent


class _Sim(msgspec.Struct, frozen=True, gc=False):
    linux_native: _Native = _Native()


class _Boot(msgspec.Struct, frozen=True, gc=False):
    timeout: int | None = None


class _Definition(msgspec.Struct, frozen=True, gc=False):
    """One of `GET /node_definitions`; the simplified ones lack `boot`.

    `{"id": "iosv", "sim": {"linux_native": {"cpus": 1, "ram": 512, …}}, "boot": {"timeout": 240, …}, …}`.
    """

    id: str
    sim: _Sim = _Sim()
    boot: _Boot = _Boot()

    @property
    def figures(self) -> DeviceFigures:
        """What a device needs; CML waits longer for one that by its definition gets only a part of its CPU."""
        native = self.sim.linux_native
        timeout = (self.boot.timeout or 0) * 100 // min(100, max(1, native.cpu_limit or 100))
        return DeviceFigures(self.id, max(1, native.cpus or 0), native.ram or 0, timeout)


class CmlWorkerStats:
    """`WorkerStats` of a CML controller, over a session whose transport allows `STATS_API` only."""

    def __init__(self, session: ServiceClient) -> None:
        self._session = session

    async def usage(self) -> WorkerUsage:
        """Get load and licences, two requests.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        stats = await self._session.fetch(SYSTEM_STATS.to(), _SystemStats)
        licensing = await self._session.fetch(LICENSING.to(), _Licensing)
        hosts = [compute.stats.dominfo for compute in stats.computes.values()]
        cpus = [host.allocated_cpus for host in hosts if host.allocated_cpus is not None]
        kib = [host.allocated_memory for host in hosts if host.allocated_memory is not None]
        return WorkerUsage(
            host=min((name for name, compute in stats.computes.items() if compute.is_controller), default=""),
            cpus=stats.all.cpu.count,
            cpus_allocated=sum(cpus) if cpus else None,
            memory_bytes=_whole(stats.all.memory.total),
            memory_used_bytes=_whole(stats.all.memory.used),
            memory_allocated_bytes=1024 * sum(kib) if kib else None,
            licences=licensing.quota,
            licences_started=licensing.started,
        )

    async def definitions(self) -> list[DeviceFigures]:
        """Get what one device of each node definition needs, one request.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        found = await self._session.fetch(LIST_DEFINITIONS.to(), list[_Definition])
        return [one.figures for one in found]

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


class NoStats:
    """`WorkerStats` of a null worker: nothing is known."""

    async def usage(self) -> WorkerUsage:
        """Return unknown figures."""
        return WorkerUsage()

    async def definitions(self) -> list[DeviceFigures]:
        """Return no definitions."""
        return []

    async def close(self) -> None:
        """Do nothing."""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


class WorkerImages(Protocol):
    """The image definitions of one worker."""

    async def ids(self) -> list[str]:
        """List the ids of its image definitions.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """

    async def close(self) -> None:
        """Close the connections."""


class _Image(msgspec.Struct, frozen=True, gc=False):
    """One of `GET /image_definitions`: `{"id": "iosv-159-3-m3", "node_definition_id": "iosv", …}`; no size is told."""

    id: str


class CmlWorkerImages:
    """`WorkerImages` of a CML controller, over a session whose transport allows `IMAGES_API` only."""

    def __init__(self, session: ServiceClient) -> None:
        self._session = session

    async def ids(self) -> list[str]:
        """List the ids of its image definitions, one request.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        return [image.id for image in await self._session.fetch(LIST_IMAGES.to(), list[_Image])]

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


class NoImages:
    """`WorkerImages` of a null worker: it has none."""

    async def ids(self) -> list[str]:
        """Return no image definitions."""
        return []

    async def close(self) -> None:
        """Do nothing."""
