"""Rebuilds the claims of a worker whose ConfigMap was lost, from the labs on it.

A missing ConfigMap is not "no claims": until every lab of the worker was looked at, no lablet on it begins or ends.
What cannot be read is not "no lab" either; the worker is asked again until it can, unless its CMLWorker never had
claims. Nor is content that is not stored yet content that is gone: the namespace with claims and content may have been
deleted as a whole.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet.reasons import Happened
from vkprovider.labs.controllers.lablet.index import Lablet
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.document import may_have_claims
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.identity import shown_lab
from vkprovider.labs.pure.lablet.recovered import MarkedLab, recovered
from vkprovider.labs.pure.worker.identity import unfound
from vkprovider.platform.errors import Unavailable
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Rebuilds lost claims.

    Attributes:
        lablets: By Pod UID.
        contents: By digest.
        awaits_content: Returns whether a definition of which no version is known may still get one.
    """

    ctx: Context
    lablets: Mapping[str, Lablet]
    contents: Mapping[str, Content]
    awaits_content: Callable[[str], bool]

    async def recover(self, worker: Worker) -> None:
        """Rebuild the claims of a worker, unless they are complete.

        Raises:
            OutsideError: A lab of the worker could not be read, or content is not stored yet; nothing has changed.
        """
        if worker.claims.complete:
            return
        pods = {uid: lablet.pod for uid, lablet in self.lablets.items() if lablet.pod is not None}
        elsewhere = {uid for uid in pods if self.lablets[uid].worker != worker.name}  # on the same CML controller
        living = [pod for uid, pod in pods.items() if uid not in elsewhere and not pod.terminal]
        labs = await self._read(worker, {lab_id for pod in living if (lab_id := shown_lab(pod))})
        labs = [lab for lab in labs if lab.origin.pod_uid not in elsewhere]
        unknown = {lab.origin.definition for lab in labs if lab.origin.digest not in self.contents}
        if awaited := sorted(name for name in unknown if self.awaits_content(name)):
            raise Unavailable(
                f"worker {worker.name} has labs of definitions whose content is not stored yet: {', '.join(awaited)}"
            )
        rows = recovered(labs, pods, self.contents)
        worker.claims.recover(rows)
        if rows:
            _log.warning(
                "the claims of the worker were lost and are rebuilt from its labs", worker=worker.name, rows=len(rows)
            )
        for row in rows:
            if (pod := pods.get(row.pod_uid)) is not None and row.lab_id:
                ref = ObjectRef("v1", "Pod", pod.metadata.namespace, pod.metadata.name, row.pod_uid)
                note = f"found lab {row.title} on worker {worker.name} after its claim was lost"
                self.ctx.events.emit(ref, "Normal", Happened.ADOPTED, note, guard=worker.guard)

    async def _read(self, worker: Worker, shown: AbstractSet[str]) -> list[MarkedLab]:
        """Read the marked labs.

        Args:
            worker: Whose.
            shown: Those that living Pods show; another user, or url, than before must see all of them.
        """
        found = list[MarkedLab]()
        resource = await self.ctx.api.workers.get(worker.name)
        had_claims = resource is None or may_have_claims(resource)
        if had_claims:
            await worker.log_in()
        access = worker.access
        marked = await worker.lab_index.marked(strict=had_claims)
        if had_claims and not (marked and shown <= marked.keys()) and worker.doubt(access) is not None:
            raise Unavailable(unfound(worker.seen.access, access))
        for lab in marked.values():
            if lab.origin is None:
                _log.warning(
                    "a marked lab does not say whose it is", worker=worker.name, lab=lab.lab_id, title=lab.title
                )
            else:
                found.append(MarkedLab(lab.lab_id, lab.title, lab.created, lab.origin, lab.tags))
        return found
