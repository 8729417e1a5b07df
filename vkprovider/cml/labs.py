"""The labs client: life cycle of labs on one worker."""

from typing import Final

from vkprovider.cml import operations
from vkprovider.cml.wire import CmlImport, CmlLabDetail, CmlLabInfo
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import NotFound
from vkprovider.rest.client import ServiceClient

_READS_MAX: Final = 8


class CmlLabsClient:
    """Labs, `/api/v0/labs`, bound to one session (address and token).

    Every method raises `OutsideError` if CML refused, failed or did not answer; `NotFound` only if CML itself said
    that the lab does not exist.
    """

    def __init__(self, session: ServiceClient) -> None:
        self._session = session

    async def list_lab_ids(self) -> list[str]:
        """List the ids of all labs, other users' included; short deadline, fit for a probe."""
        return await self._session.fetch(operations.LIST_LABS.to(params={"show_all": "true"}), list[str])

    async def list_labs(self) -> list[CmlLabInfo]:
        """List all labs in short: one request for the ids and one per lab.

        CML's only call for all at once (`populate_lab_tiles`) carries every topology. A lab deleted meanwhile is left
        out.
        """

        async def read(lab_id: str) -> CmlLabInfo | None:
            try:
                return await self._session.fetch(operations.GET_LAB.to(lab=lab_id), CmlLabInfo)
            except NotFound:
                return None

        found = await at_most(_READS_MAX, read, await self.list_lab_ids())
        return [lab for lab in found if lab is not None]

    async def get_lab(self, lab_id: str) -> CmlLabDetail:
        """Get one lab."""
        return await self._session.fetch(operations.GET_LAB.to(lab=lab_id), CmlLabDetail)

    async def download_lab(self, lab_id: str) -> bytes:
        """Get a lab as a topology file in YAML, with the configurations that CML has."""
        return (await self._session.send(operations.DOWNLOAD_LAB.to(lab=lab_id))).body

    async def import_lab(self, topology_yaml: str, title: str | None = None) -> CmlImport:
        """Import a topology; return the lab's id, and what CML warns of.

        Args:
            topology_yaml: The topology.
            title: Overrides the topology's title, at most 64 characters.

        Raises:
            Invalid: CML refuses the topology.
            Unavailable: There was no answer; the lab may exist.
        """
        params = None if title is None else {"title": title}
        request = operations.IMPORT_LAB.to(params=params, body=topology_yaml.encode())
        return await self._session.fetch(request, CmlImport)

    async def note_lab(self, lab_id: str, notes: str, description: str | None = None) -> None:
        """Replace the notes of a lab, and its description unless that is None; allowed in every state.

        Notes have at most 32768 characters, a description 4096.
        """
        changes = {"notes": notes} if description is None else {"notes": notes, "description": description}
        await self._session.send(operations.NOTE_LAB.to(lab=lab_id, json=changes))

    async def start_lab(self, lab_id: str) -> None:
        """Start all nodes of a lab; those that run stay as they are.

        Raises:
            Invalid: CML cannot start it: licences, capacity.
        """
        await self._session.send(operations.START_LAB.to(lab=lab_id))

    async def stop_lab(self, lab_id: str) -> None:
        """Stop all nodes of a lab."""
        await self._session.send(operations.STOP_LAB.to(lab=lab_id))

    async def wipe_lab(self, lab_id: str) -> None:
        """Reset a stopped lab to what was imported.

        Raises:
            Invalid: It runs.
        """
        await self._session.send(operations.WIPE_LAB.to(lab=lab_id))

    async def delete_lab(self, lab_id: str) -> None:
        """Delete a wiped lab for good.

        Raises:
            Invalid: It runs or is not wiped.
        """
        await self._session.send(operations.DELETE_LAB.to(lab=lab_id))
