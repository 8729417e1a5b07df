"""A lab as a file, on any replica: reading needs no ownership, so nobody has to be sent to the owner.

Which lab is whose says the claim alone: those of our own workers are in memory, those of another replica's are read
from the API server, one worker's at a time. What a Pod reports is only a hint at which worker to look.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vkprovider.api import names
from vkprovider.api.errors import NotFound, Unavailable
from vkprovider.api.models import parse_worker_spec
from vkprovider.api.objects import CustomResource, Pod
from vkprovider.controllers.claims import reader
from vkprovider.controllers.context import Context
from vkprovider.controllers.worker.opening import open_worker
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim

_AT_ONCE_MAX: Final = 4
"""Of workers that are not ours: each download logs in to CML, which limits logins."""


@dataclass(frozen=True, slots=True)
class Found:
    """A lablet's lab.

    Attributes:
        worker: The CMLWorker's name.
        claim: Whose it is; without a lab id it is not there yet, or not known here.
    """

    worker: str
    claim: Claim


class Exports:
    """Finds labs and fetches them."""

    def __init__(
        self,
        ctx: Context,
        workers: Mapping[str, Worker],
        resource: Callable[[str], CustomResource | None],
        pods: Mapping[str, Pod],
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            workers: Ours.
            resource: Gives any CMLWorker.
            pods: All on our Nodes, whoever owns these.
        """
        self._ctx = ctx
        self._workers = workers
        self._resource = resource
        self._pods = pods
        self._gate = asyncio.Semaphore(_AT_ONCE_MAX)

    async def find(self, key: str) -> Found | None:
        """Find a lab by its own id or by its Pod's UID; None if no lablet has it.

        Raises:
            InputError: `ClaimStoreInvalid`.
            OutsideError: The API server was no help.
        """
        for name, worker in self._workers.items():
            if (claim := _pick(worker.claims.claims, key)) is not None:
                return Found(name, claim)
        for uid, name in self._hints(key):
            if name not in self._workers:
                rows = await reader.of_worker(self._ctx, name)
                if (claim := _pick(rows, key) or _unsaved(rows, uid)) is not None:
                    return Found(name, claim)
        return None

    def _hints(self, key: str) -> list[tuple[str, str]]:
        """Name the Pods that may have the lab, and where they are."""
        found = []
        for pod in self._pods.values():
            meta, worker = pod.metadata, names.worker_of(pod.spec.node_name)
            if worker is not None and key in {meta.uid, meta.annotations.get(names.ANNOTATION_LAB_ID)}:
                found.append((meta.uid, worker))
        return found

    async def fetch(self, found: Found) -> bytes:
        """Fetch a lab as YAML, with the configurations that CML has of it.

        Raises:
            InputError: The CMLWorker is unusable.
            NotFound: The lab or its worker is gone.
            Unavailable: The lab is not there yet.
            OutsideError: The worker did not give it.
        """
        lab_id = found.claim.lab_id
        if not lab_id:
            raise Unavailable(f"the lab of Pod {found.claim.pod} has only just been imported, or is about to be")
        worker = self._workers.get(found.worker)
        if worker is not None:
            return await worker.labs.download_lab(lab_id)
        resource = self._resource(found.worker)
        if resource is None:
            raise NotFound(f"CMLWorker {found.worker} does not exist any more")
        spec = parse_worker_spec(resource.spec)
        async with self._gate:
            labs = open_worker(self._ctx, spec)
            try:
                return await labs.download_lab(lab_id)
            finally:
                await labs.close()


def _pick(rows: Mapping[str, Claim], key: str) -> Claim | None:
    return rows.get(key) or next((row for row in rows.values() if row.lab_id == key), None)


def _unsaved(rows: Mapping[str, Claim], pod_uid: str) -> Claim | None:
    """Give the row of a Pod that reports a lab which its row does not name yet: ids are written a little later."""
    row = rows.get(pod_uid)
    return row if row is not None and not row.lab_id else None
