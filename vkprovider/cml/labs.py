"""The labs client: life cycle of labs on one worker."""

import asyncio
from typing import Final

from vkprovider.api.errors import NotFound
from vkprovider.cml.session import CmlSession
from vkprovider.cml.wire import CmlImport, CmlLabDetail, CmlLabInfo

_READS_MAX: Final = 8


class CmlLabsClient:
    """Labs, `/api/v0/labs`, bound to one session (address and token)."""

    def __init__(self, session: CmlSession) -> None:
        self._session = session

    async def list_lab_ids(self) -> list[str]:
        """List the ids of all labs, other users' included.

        Raises:
            OutsideError: As every request.
        """
        return await self._session.fetch("probe", "/labs", list[str], params={"show_all": "true"})

    async def list_labs(self) -> list[CmlLabInfo]:
        """List all labs in short: one request for the ids and one per lab.

        CML's only call for all at once (`populate_lab_tiles`) carries every topology. A lab deleted meanwhile is left
        out.

        Raises:
            OutsideError: As every request; then nothing is known about any lab.
        """
        gate = asyncio.Semaphore(_READS_MAX)

        async def read(lab_id: str) -> CmlLabInfo | None:
            async with gate:
                try:
                    return await self._session.fetch("read", f"/labs/{lab_id}", CmlLabInfo)
                except NotFound:
                    return None

        found = await asyncio.gather(*map(read, await self.list_lab_ids()))
        return [lab for lab in found if lab is not None]

    async def get_lab(self, lab_id: str) -> CmlLabDetail:
        """Get one lab.

        Raises:
            NotFound: There is no such lab.
            OutsideError: As every request.
        """
        return await self._session.fetch("read", f"/labs/{lab_id}", CmlLabDetail)

    async def download_lab(self, lab_id: str) -> bytes:
        """Get a lab as a topology file in YAML, with the configurations that CML has.

        Raises:
            NotFound: There is no such lab.
            OutsideError: As every request.
        """
        return (await self._session.request("read", "GET", f"/labs/{lab_id}/download")).body

    async def import_lab(self, topology_yaml: str, title: str | None = None) -> str:
        """Import a topology and return the lab id.

        Args:
            topology_yaml: The topology.
            title: Overrides the topology's title, at most 64 characters.

        Raises:
            Invalid: CML refuses the topology.
            DeadlineExceeded: No answer; the lab may exist.
            OutsideError: As every request.
        """
        params = None if title is None else {"title": title}
        body = topology_yaml.encode()
        response = await self._session.request("import", "POST", "/import", params=params, body=body)
        return self._session.decode("POST /import", response, CmlImport).id

    async def start_lab(self, lab_id: str) -> None:
        """Start all nodes of a lab.

        Raises:
            NotFound: There is no such lab.
            Invalid: CML cannot start it: licences, capacity.
            OutsideError: As every request.
        """
        await self._session.request("action", "PUT", f"/labs/{lab_id}/start")

    async def stop_lab(self, lab_id: str) -> None:
        """Stop all nodes of a lab.

        Raises:
            NotFound: There is no such lab.
            OutsideError: As every request.
        """
        await self._session.request("action", "PUT", f"/labs/{lab_id}/stop")

    async def wipe_lab(self, lab_id: str) -> None:
        """Reset a stopped lab to what was imported.

        Raises:
            NotFound: There is no such lab.
            Invalid: It runs.
            OutsideError: As every request.
        """
        await self._session.request("action", "PUT", f"/labs/{lab_id}/wipe")

    async def delete_lab(self, lab_id: str) -> None:
        """Delete a wiped lab for good.

        Raises:
            NotFound: There is no such lab.
            Invalid: It runs or is not wiped.
            OutsideError: As every request.
        """
        await self._session.request("action", "DELETE", f"/labs/{lab_id}")
