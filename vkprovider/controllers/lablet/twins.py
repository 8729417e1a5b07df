"""Keeps a lab from opening a port that a lab of another CMLWorker has, where both may be one CML controller.

Two urls of a controller that is still empty have nothing in common yet (`domain.worker.identity`): both CMLWorkers are
Ready, and both allocate the same ports. Their first labs are the first evidence. So a lab is started only after a look
at the labs on the controller: of two with one port the one that was imported later is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vkprovider.api.errors import InputError, NotFound
from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import Trouble
from vkprovider.controllers.lablet.state import Lablet
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.claims.ports import TCP, UDP
from vkprovider.domain.topology.tags import parse_tag
from vkprovider.domain.worker.identity import may_be_twin


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
        others = {
            lab_id: lab for lab_id, lab in labs.items() if lab.origin and self._is_elsewhere(lab.origin.pod_uid, worker)
        }
        if not others:
            return
        mine, held = await worker.labs.get_lab(claim.lab_id), {(slot.protocol, slot.port) for slot in claim.held}
        for lab_id, lab in others.items():
            try:
                tags = await worker.labs.list_tags(lab_id)
            except NotFound:
                continue
            shared = sorted(held & _ports_in(tags))
            if shared and lab.created <= (mine.created or ""):
                protocol, port = shared[0]
                raise InputError(
                    Trouble.PORT_CONFLICT,
                    f"{protocol} port {port} is that of lab {lab.title}, which another CMLWorker has on the "
                    "same CML controller: delete one of the two CMLWorkers, then this pod",
                )

    def _is_elsewhere(self, pod_uid: str, worker: Worker) -> bool:
        lablet = self.lablets.get(pod_uid)
        return lablet is not None and lablet.worker != worker.name


def _ports_in(tags: Mapping[str, tuple[str, ...]]) -> set[tuple[str, int]]:
    """Return the ports that a lab opens, with their protocols."""
    found = [parse_tag(text) for texts in tags.values() for text in texts]
    return {(UDP if tag.protocol == "udp" else TCP, tag.outside) for tag in found if tag is not None}
