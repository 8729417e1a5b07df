"""A lab as a file, on any replica: reading needs no ownership, so no client is redirected to the owner.

Only the claim says whose a lab is. The claims of this replica's workers are in memory; those of other workers are read
from the API server, one worker at a time. What a Pod reports is only a hint at which worker to look.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vkprovider.lablet import names
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.controllers.claims import reader
from vkprovider.labs.controllers.worker.connection import Readers
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.errors import NotFound, Unavailable
from vkprovider.platform.objects import CustomResource, Pod
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class LabOfLablet:
    """A lablet's lab.

    Attributes:
        worker: The CMLWorker's name.
        claim: The lablet's; without a lab id the lab is not imported yet, or not known here.
        session: The session that the Pod reports, where the claim is a stored one: that a session is ready is written
            up to ten seconds later than it is reported. "" if it reports none, or another learner's.
    """

    worker: str
    claim: Claim
    session: str = ""


@dataclass(frozen=True, slots=True)
class Exports:
    """Finds labs and downloads them.

    Attributes:
        workers: Those that this replica acts for, by name.
        resource: Return a CMLWorker by name.
        pods: All on our Nodes, of any owner.
        readers: Connections to workers that other replicas act for.
    """

    ctx: Context
    workers: Mapping[str, Worker]
    resource: Callable[[str], CustomResource | None]
    pods: Mapping[str, Pod]
    readers: Readers

    async def find(self, key: str) -> LabOfLablet | None:
        """Find a lab by its own id or by its Pod's UID; None if no lablet has it.

        Raises:
            InputError: `ClaimStoreInvalid`.
        """
        for name, worker in self.workers.items():
            if (claim := _pick(worker.claims.claims, key)) is not None:
                return LabOfLablet(name, claim)
        for uid, name in self._hints(key):
            if name not in self.workers:
                rows = await reader.of_worker(self.ctx, name)
                if (claim := _pick(rows, key) or _unsaved(rows, uid)) is not None:
                    return LabOfLablet(name, claim, self._reported(claim))
        return None

    def _reported(self, claim: Claim) -> str:
        pod = self.pods.get(f"{claim.namespace}/{claim.pod}")
        if pod is None or pod.metadata.uid != claim.pod_uid or claim.session is None:
            return ""
        notes = pod.metadata.annotations
        same = notes.get(names.ANNOTATION_LEARNER) == claim.session.username
        return notes.get(names.ANNOTATION_SESSION_ID, "") if same else ""

    def _hints(self, key: str) -> list[tuple[str, str]]:
        """Return the UIDs and workers of the Pods that may have the lab."""
        found = []
        for pod in self.pods.values():
            meta, worker = pod.metadata, names.worker_of(pod.spec.node_name)
            if worker is not None and key in {meta.uid, meta.annotations.get(names.ANNOTATION_LAB_ID)}:
                found.append((meta.uid, worker))
        return found

    async def fetch(self, found: LabOfLablet) -> bytes:
        """Fetch a lab as YAML, with the configurations that CML has of it.

        Raises:
            InputError: The CMLWorker is unusable.
            NotFound: The lab or its worker is gone.
            Unavailable: The lab is not imported yet.
            OutsideError: The worker refused, or did not answer.
        """
        lab_id = found.claim.lab_id
        if not lab_id:
            raise Unavailable(f"the lab of Pod {found.claim.pod} has only just been imported, or is about to be")
        worker = self.workers.get(found.worker)
        if worker is not None:
            return await worker.labs.download_lab(lab_id)
        resource = self.resource(found.worker)
        if resource is None:
            raise NotFound(f"CMLWorker {found.worker} does not exist any more")
        spec = parse_worker_spec(resource.spec)
        async with self.readers.labs(found.worker, spec) as labs:
            return await labs.download_lab(lab_id)


def _pick(rows: Mapping[str, Claim], key: str) -> Claim | None:
    return rows.get(key) or next((row for row in rows.values() if row.lab_id == key), None)


def _unsaved(rows: Mapping[str, Claim], pod_uid: str) -> Claim | None:
    """Return the claim of a Pod that reports a lab which its claim does not name yet: ids are written lazily."""
    row = rows.get(pod_uid)
    return row if row is not None and not row.lab_id else None
