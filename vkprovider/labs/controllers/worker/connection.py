"""The connections to a worker: by the way that its CMLWorker names; those of others only read.

CML limits logins, and the owner of a worker needs its own. So a replica that does not own it has one connection for all
downloads, until none came for a while.

A Secret is read before every login and kept nowhere, so that a changed password needs no restart. Its password goes
only to the hosts that the Secret itself names, whatever url the CMLWorker has now.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from tunnels.base import AllowList, Transport
from vkprovider.cml.dialect import BY_AGENT
from vkprovider.cml.factory import open_labs, open_session, parse_worker_url, session_over
from vkprovider.cml.operations import IMAGES_API, LABS_API, STATS_API, STREAMS_API
from vkprovider.cml.spi import Credentials, CredentialsReader, Labs
from vkprovider.cml.stats import CmlWorkerImages, CmlWorkerStats, NoImages, NoStats, WorkerImages, WorkerStats
from vkprovider.cml.worker import CmlLabs
from vkprovider.lablet import names
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.observations import DeviceFigures, WorkerUsage
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.secrets import read_secret
from vkprovider.labs.controllers.worker.lab_index import LabIndex
from vkprovider.labs.controllers.worker.tunnels import Tunnels, WorkerRoute
from vkprovider.labs.pure.worker.node import Health
from vkprovider.labs.pure.worker.reach import destination_of
from vkprovider.labs.pure.worker.secrets import credentials_of, password_source
from vkprovider.platform.errors import CredentialsUnread, InputError, OutsideError, Unauthorized, Withheld
from vkprovider.platform.kube.client import Guard, user_agent
from vkprovider.platform.messages import Fault
from vkprovider.platform.runtime.context import Context
from vkprovider.rest.client import ServiceClient

IDLE_S: Final = 60.0
_OPEN_MAX: Final = 8
_AT_ONCE_MAX: Final = 4
_SWEEP_S: Final = 10.0


@dataclass(slots=True)
class _Reader:
    spec: CMLWorkerSpec
    labs: Labs
    users: int = 0
    used_at: float = 0.0


class Readers:
    """The connections, by the worker's name, the one that was used last at the end."""

    def __init__(
        self, connect: Callable[[str, CMLWorkerSpec], Labs], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Open nothing yet.

        Args:
            connect: Opens a connection to a worker, by its name; raises `InputError` if the CMLWorker is unusable.
            now: A clock.
        """
        self._connect = connect
        self._now = now
        self._open: dict[str, _Reader] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE_MAX)

    @asynccontextmanager
    async def labs(self, worker: str, spec: CMLWorkerSpec) -> AsyncIterator[Labs]:
        """Lend the connection to a worker; a changed spec opens another one.

        Raises:
            InputError: The CMLWorker is unusable.
        """
        async with self._gate:
            reader = self._open.pop(worker, None)
            if reader is not None and reader.spec != spec:
                await self._close(reader)
                reader = None
            if reader is None:
                reader = _Reader(spec, self._connect(worker, spec))
            self._open[worker] = reader
            reader.users += 1
            try:
                yield reader.labs
            finally:
                reader.users -= 1
                reader.used_at = self._now()
                if self._open.get(worker) is not reader:  # replaced meanwhile
                    await self._close(reader)
                await self._close_surplus()

    async def run(self) -> None:
        """Close idle connections from time to time; when cancelled, all of them."""
        try:
            while True:
                await asyncio.sleep(_SWEEP_S)
                await self.sweep()
        finally:
            for worker in [*self._open]:
                await self._close(self._open.pop(worker))

    async def sweep(self) -> None:
        """Close the connections that were not used for a while."""
        for worker, reader in [*self._open.items()]:
            if not reader.users and reader.used_at + IDLE_S <= self._now():
                del self._open[worker]
                await self._close(reader)

    async def _close_surplus(self) -> None:
        idle = [worker for worker, reader in self._open.items() if not reader.users]
        for worker in idle[: max(0, len(self._open) - _OPEN_MAX)]:
            await self._close(self._open.pop(worker))

    @staticmethod
    async def _close(reader: _Reader) -> None:
        """Log out, unless the connection is in use: its last user closes it then."""
        if not reader.users:
            with suppress(OutsideError):
                await reader.labs.close()


@dataclass(frozen=True, slots=True)
class WorkerConnection:
    """The connections to one worker.

    Attributes:
        spec: The CMLWorker's, by which they were opened.
        labs: For labs.
        lab_index: The labs that no claim names.
        away: Returns why the agent between here and the worker cannot be asked; None if it can, or there is none.
        heard_term: Returns the number of the latest owner that the agent has heard; 0 if there is none.
        is_watched: Returns whether an agent reports every change of the worker, so that nobody need ask for it.
        stats: For statistics; None unless the CMLWorker asks for them.
        images: For image definitions; the same.
    """

    spec: CMLWorkerSpec
    labs: Labs
    lab_index: LabIndex
    away: Callable[[], Health | None]
    heard_term: Callable[[], int]
    is_watched: Callable[[], bool]
    stats: WorkerStats | None = None
    images: WorkerImages | None = None

    async def close(self) -> None:
        """Close the connections, each whatever becomes of the others."""
        async with AsyncExitStack() as closing:
            for each in (self.images, self.stats, self.labs):
                if each is not None:
                    closing.push_async_callback(each.close)


class Connector:
    """Opens connections to workers, each by the way that its CMLWorker names.

    Args:
        ctx: The replica.
        tunnels: The ways that lead through agents.
        term: Returns by worker's name the number of this replica's ownership, see `Ownership.term`.
    """

    def __init__(self, ctx: Context, tunnels: Tunnels, term: Callable[[str], int]) -> None:
        self._ctx = ctx
        self._tunnels = tunnels
        self._term = term

    def connect(
        self, name: str, spec: CMLWorkerSpec, guard: Guard, before: WorkerConnection | None = None
    ) -> WorkerConnection:
        """Open all connections to a worker; nothing is sent before the first call.

        Args:
            name: The CMLWorker's.
            spec: The CMLWorker's.
            guard: Called right before a request is written.
            before: The connections that these replace; what was learned of the labs of the same controller stays.

        Raises:
            InputError: `TunnelNotConfigured`, `WorkerUrlInvalid` or `CaBundleInvalid`.
        """
        way = WorkerRoute(name, guard, partial(self._term, name))
        labs = self._open_labs(spec, way)
        stats = self._open_stats(spec, way) if spec.stats == "On" else None
        images = self._open_images(spec, way) if spec.images == "On" else None
        away = partial(self._tunnels.away, spec.tunnel, name)
        heard_term = partial(self._tunnels.heard_term, spec.tunnel, name)
        if before is not None and (before.spec.cml_url, before.spec.tunnel) == (spec.cml_url, spec.tunnel):
            lab_index = before.lab_index
            lab_index.reconnect(labs)
        else:
            lab_index = LabIndex(self._ctx.installation, name, labs)

        def is_watched() -> bool:
            return self._tunnels.facts(spec.tunnel, name).watches

        return WorkerConnection(spec, labs, lab_index, away, heard_term, is_watched, stats, images)

    def open_reader(self, name: str, spec: CMLWorkerSpec) -> Labs:
        """Open a connection to a worker's labs for a caller that only reads.

        Raises:
            InputError: As in `connect`.
        """
        return self._open_labs(spec, WorkerRoute(name, None, _owns_nothing))

    def _open_labs(self, spec: CMLWorkerSpec, way: WorkerRoute) -> Labs:
        credentials = _credentials_of(self._ctx, way.name, spec)
        if spec.tunnel == "direct":
            return open_labs(
                spec.cml_url,
                credentials,
                verify=not spec.tls.insecure_skip_verify,
                ca_bundle=spec.tls.ca_bundle,
                guard=way.guard,
                user_agent=user_agent(self._ctx.replica),
            )
        allow = AllowList((*LABS_API.entries, *STREAMS_API.entries))
        transport = self._tunnels.transport(spec.tunnel, way, allow, user_agent(self._ctx.replica))
        return CmlLabs(self._over(transport, spec, way), destination_of(way.name, spec), transport)

    def _open_stats(self, spec: CMLWorkerSpec, way: WorkerRoute) -> WorkerStats:
        session = self._session(spec, way, STATS_API)
        if session is None:
            return NoStats()
        asked = CmlWorkerStats(session)
        if spec.tunnel == "direct":
            return asked
        return _ReportedStats(lambda: self._tunnels.facts(spec.tunnel, way.name).usage, asked)

    def _open_images(self, spec: CMLWorkerSpec, way: WorkerRoute) -> WorkerImages:
        session = self._session(spec, way, IMAGES_API)
        return NoImages() if session is None else CmlWorkerImages(session)

    def _session(self, spec: CMLWorkerSpec, way: WorkerRoute, allow: AllowList) -> ServiceClient | None:
        """Open a session for some requests; None for a null worker, which answers none."""
        if spec.tunnel != "direct":
            transport = self._tunnels.transport(spec.tunnel, way, allow, user_agent(self._ctx.replica))
            return self._over(transport, spec, way)
        if parse_worker_url(spec.cml_url).scheme == "null":
            return None
        return open_session(
            spec.cml_url,
            _credentials_of(self._ctx, way.name, spec),
            verify=not spec.tls.insecure_skip_verify,
            ca_bundle=spec.tls.ca_bundle,
            allow=allow,
            guard=way.guard,
            user_agent=user_agent(self._ctx.replica),
        )

    def _over(self, transport: Transport, spec: CMLWorkerSpec, way: WorkerRoute) -> ServiceClient:
        """Open a session through an agent, which logs in itself unless the CMLWorker names a Secret."""
        credentials = _credentials_of(self._ctx, way.name, spec) if spec.credentials_secret_name else None
        return session_over(transport, destination_of(way.name, spec), credentials, trust=BY_AGENT)


class _ReportedStats:
    """`WorkerStats` that an agent reports with its heartbeats; CML is asked only if it does not.

    Args:
        reported: Returns what the agent said last.
        asked: CML.
    """

    def __init__(self, reported: Callable[[], WorkerUsage | None], asked: WorkerStats) -> None:
        self._reported = reported
        self._asked = asked

    async def usage(self) -> WorkerUsage:
        """Get load and licences.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        return self._reported() or await self._asked.usage()

    async def definitions(self) -> list[DeviceFigures]:
        """Get what one device of each node definition needs; an agent reports nothing of it.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        return await self._asked.definitions()

    async def close(self) -> None:
        """Close the connections."""
        await self._asked.close()


def _owns_nothing() -> int:
    """Return the number of a caller that may only read."""
    return 0


def _credentials_of(ctx: Context, worker: str, spec: CMLWorkerSpec) -> CredentialsReader:
    """Return the function that reads a worker's credentials; it is called before every login."""
    name = spec.credentials_secret_name

    async def read() -> Credentials:
        if not name:
            raise Unauthorized("spec.credentialsSecretName is not set; name a Secret with keys username and password")
        try:
            keys = "username and password"
            secret = await read_secret(
                ctx, name, reason=WorkerReason.CREDENTIALS_INVALID, keys=keys, used_for=names.USED_FOR_WORKER
            )
        except InputError as error:
            raise CredentialsUnread(error.message) from None
        found = credentials_of(secret, ctx.logins_namespace, destination_of(worker, spec))
        if isinstance(found, Fault):
            refused = Withheld if found.reason == WorkerReason.SECRET_NOT_ALLOWED else Unauthorized
            raise refused(found.message)
        return Credentials(*found, source=password_source(ctx.logins_namespace, name))

    return read
