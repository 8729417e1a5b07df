"""The finalizer of one CMLWorker: it cannot go as long as it has claims, for they are what its labs are deleted by.

It is there before the first claim is written, and so before the first lab is imported: a CMLWorker that is deleted a
moment later still waits for its lablets.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.claims.document import may_have_claims
from vkprovider.platform.errors import Conflict, InputError, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context


class Finalizer:
    """The finalizer of a CMLWorker whose Node this replica owns; nothing else adds or removes it there."""

    def __init__(
        self, ctx: Context, worker: str, guard: Guard, resource: Callable[[str], CustomResource | None]
    ) -> None:
        """Know nothing yet: another replica may just have removed it.

        Args:
            ctx: The replica.
            worker: The CMLWorker's name.
            guard: Called right before every write.
            resource: Returns the CMLWorker of a name, as the informer has it.
        """
        self._ctx: Final = ctx
        self._worker: Final = worker
        self._guard: Final = guard
        self._resource: Final = resource
        self._changing: Final = asyncio.Lock()
        self._held = False

    async def hold(self) -> None:
        """Make sure that the CMLWorker has it, before a claim is written.

        Raises:
            InputError: `InUse`: the CMLWorker is being deleted, and does not wait for lablets.
            Conflict: It changed meanwhile; try again.
            OutsideError: Any other of its kinds.
        """
        if self._held:
            return
        async with self._changing:
            try:
                await self._add(self._resource(self._worker))
            except Conflict:
                await self._add(await self._ctx.api.workers.get(self._worker))
            self._held = True

    async def follow(self, resource: CustomResource, *, needed: Callable[[], bool]) -> None:
        """Add or remove it as `needed` says; a CMLWorker that changed meanwhile is looked at again soon anyway."""
        async with self._changing:
            has, wanted = may_have_claims(resource), needed()
            if has == wanted or (wanted and _is_going(resource)):
                return
            self._held = False  # a claim that comes now waits for the lock, and adds it again
            with contextlib.suppress(Conflict, NotFound):
                await self._write(resource, needed=wanted)
                self._held = wanted

    async def drop(
        self, resource: CustomResource, *, needed: Callable[[], bool], clear: Callable[[], Awaitable[None]]
    ) -> bool:
        """Remove it from a deleted CMLWorker for good; return False, with nothing done, if it is needed after all.

        Args:
            resource: The CMLWorker.
            needed: Returns whether the CMLWorker has claims. It is called at the moment from which no further claim is
                written: one that comes later waits, and is refused.
            clear: Called after that; deletes what goes with the CMLWorker.

        Raises:
            Conflict: The CMLWorker, or what is deleted, changed meanwhile; try again.
            OutsideError: Any other of its kinds.
        """
        async with self._changing:
            if needed():
                return False
            self._held = False
            await clear()
            with contextlib.suppress(NotFound):
                await self._write(resource, needed=False)
            return True

    async def _add(self, resource: CustomResource | None) -> None:
        gone = InputError(WorkerReason.IN_USE, f"CMLWorker {self._worker} is being deleted; nothing begins on it")
        if resource is None or _is_going(resource):
            raise gone
        try:
            await self._write(resource, needed=True)
        except NotFound:
            raise gone from None

    async def _write(self, resource: CustomResource, *, needed: bool) -> None:
        """Write it even if the informer shows it: a precondition tells whether that is the newest version."""
        await write(self._ctx, resource, needed=needed, guard=self._guard)


async def write(ctx: Context, resource: CustomResource, *, needed: bool, guard: Guard | None) -> None:
    """Add or remove the finalizer of a CMLWorker, if this is its newest version.

    Raises:
        Conflict: It is not.
        NotFound: The CMLWorker is gone.
        OutsideError: Any other of its kinds.
    """
    others = [other for other in resource.metadata.finalizers if other != names.FINALIZER]
    body = {"metadata": {"finalizers": [*others, *([names.FINALIZER] if needed else [])]}}
    name, version = resource.metadata.name, resource.metadata.resource_version
    await ctx.api.workers.metadata_only.patch(name, body, resource_version=version, guard=guard)


def _is_going(resource: CustomResource) -> bool:
    """Return whether a CMLWorker is being deleted without it; the API server accepts no new finalizer then."""
    return resource.metadata.deletion_timestamp is not None and not may_have_claims(resource)
