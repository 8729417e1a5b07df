"""Keeps a lab from opening a port that a lab of another CMLWorker has, where both may be one CML controller.

Two urls of a controller that is still empty have nothing in common yet (`labs.pure.worker.identity`): both CMLWorkers
are Ready, and both allocate the same ports. Their first labs are the first evidence. So a lab is started only after a
look at the labs on the controller: of two with one port the one that was imported later is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vkprovider.lablet import labs as words
from vkprovider.lablet import mappings
from vkprovider.labs.controllers.lablet.state import Lablet
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.matching import KnownLab
from vkprovider.labs.pure.worker.identity import may_be_twin
from vkprovider.platform.errors import InputError, NotFound
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.ports.allocator import PortReason


@dataclass(frozen=True, slots=True)
class Twins:
    """Looks at the labs of other CMLWorkers on a controller.

    Attributes:
        lablets: All lablets, by Pod UID.
        resources: All CMLWorkers, by name.
    """

    lablets: Mapping[str, Lablet]
    resources: Mapping[str, CustomResource]

    async def check(self, claim: Claim, worker: Worker) -> None:
        """Refuse to start a lab whose ports an older lab of another CMLWorker has, or one of the same second.

        Raises:
            InputError: `PortConflict`.
            OutsideError: The worker could not be asked.
        """
        if not claim.ports or worker.labs.immediate:
            return
        if not may_be_twin(worker.name, worker.identity, self.resources.values()):
            return
        labs = await worker.lab_index.unknown_to(worker.claims.claims)
        others = {lab_id: lab for lab_id, lab in labs.items() if not self._is_of(lab, worker)}
        if not others:
            return
        mine, held = await worker.labs.get_lab(claim.lab_id), {(slot.protocol, slot.port) for slot in claim.held}
        for lab_id, lab in others.items():
            shared = sorted(held & await self._opened_by(lab_id, lab, mine.created or "", worker))
            if shared:
                protocol, port = shared[0]
                raise InputError(
                    PortReason.PORT_CONFLICT,
                    f"{protocol} port {port} is that of lab {lab.title}, which is not of this CMLWorker: if two "
                    "CMLWorkers are one CML controller, delete one of them, then this pod",
                )

    def _is_of(self, lab: KnownLab, worker: Worker) -> bool:
        lablet = self.lablets.get(lab.origin.pod_uid) if lab.origin is not None else None
        return lablet is not None and lablet.worker == worker.name

    async def _opened_by(self, lab_id: str, lab: KnownLab, mine_created: str, worker: Worker) -> set[tuple[str, int]]:
        """Return the ports that a lab opens, or may open before one that was created at `mine_created`."""
        waits = lab.origin is not None and lab.origin.pod_uid in self.lablets  # its own start looks, too
        try:
            if waits and lab.created > mine_created:
                return set()
            if not waits and (await worker.labs.get_lab(lab_id)).state == words.DEFINED:
                return set()  # a saved copy
            return set(mappings.named_by(await worker.labs.list_tags(lab_id)))
        except NotFound:
            return set()
