"""`Labs` of a CML worker: the clients behind the seam."""

import asyncio
from collections.abc import Mapping
from typing import Final

from vkprovider.api.errors import NotFound, OutsideError
from vkprovider.cml.interfaces import CmlInterfacesClient
from vkprovider.cml.labs import CmlLabsClient
from vkprovider.cml.nodes import CmlNodesClient
from vkprovider.cml.session import CmlSession
from vkprovider.cml.spi import DeviceFact
from vkprovider.cml.wire import CmlLabDetail

_EXTRACTIONS_MAX: Final = 4
"""At a time on a worker: CML logs into each device's console for it."""


class CmlLabs:
    """The labs of one worker over one session; see `spi.Labs` for the contract.

    Attributes:
        labs: The labs client.
        nodes: The nodes client.
        interfaces: The interfaces client.
    """

    def __init__(self, session: CmlSession) -> None:
        self._session = session
        self._extractions = asyncio.Semaphore(_EXTRACTIONS_MAX)
        self.labs = CmlLabsClient(session)
        self.nodes = CmlNodesClient(session)
        self.interfaces = CmlInterfacesClient(session)

    @property
    def immediate(self) -> bool:
        """CML accepts first and acts later."""
        return False

    async def version(self) -> str:
        """Ask for CML's version; needs no login."""
        return (await self._session.system_information()).version

    async def list_labs(self) -> list[str]:
        """List the ids of all labs."""
        return await self.labs.list_lab_ids()

    async def list_all_nodes(self) -> dict[str, tuple[DeviceFact, ...]]:
        """Observe all nodes of the worker in one request, by lab id."""
        by_lab: dict[str, list[DeviceFact]] = {}
        for row in await self.nodes.list_all_nodes():
            fact = DeviceFact(row.id, row.label, row.node_definition, row.state)
            by_lab.setdefault(row.lab_id, []).append(fact)
        return {lab_id: tuple(facts) for lab_id, facts in by_lab.items()}

    async def get_lab(self, lab_id: str) -> CmlLabDetail:
        """Get one lab."""
        return await self.labs.get_lab(lab_id)

    async def download_lab(self, lab_id: str) -> bytes:
        """Get a lab as a topology file."""
        return await self.labs.download_lab(lab_id)

    async def get_nodes(self, lab_id: str) -> tuple[DeviceFact, ...]:
        """Get the nodes of one lab."""
        nodes = await self.nodes.list_nodes(lab_id)
        return tuple(DeviceFact(node.id, node.label, node.node_definition, node.state) for node in nodes)

    async def import_lab(self, topology_yaml: str, title: str) -> str:
        """Import a topology under a title and return the lab id."""
        return await self.labs.import_lab(topology_yaml, title)

    async def start_lab(self, lab_id: str) -> None:
        """Ask for all nodes to be started."""
        await self.labs.start_lab(lab_id)

    async def stop_lab(self, lab_id: str) -> None:
        """Ask for all nodes to be stopped."""
        await self.labs.stop_lab(lab_id)

    async def wipe_lab(self, lab_id: str) -> None:
        """Ask for the disks of a stopped lab to be wiped."""
        await self.labs.wipe_lab(lab_id)

    async def delete_lab(self, lab_id: str) -> None:
        """Delete a wiped lab."""
        await self.labs.delete_lab(lab_id)

    async def start_node(self, lab_id: str, node_id: str) -> None:
        """Ask for one node to be started."""
        await self.nodes.start_node(lab_id, node_id)

    async def extract_configs(
        self, lab_id: str, nodes: tuple[DeviceFact, ...]
    ) -> tuple[dict[str, str], dict[str, OutsideError]]:
        """Fetch the configurations of running nodes, a few at a time; one that fails stops no other."""
        configs: dict[str, str] = {}
        faults: dict[str, OutsideError] = {}

        async def extract(node: DeviceFact) -> None:
            async with self._extractions:
                try:
                    node_id = node.id or await self._node_id(lab_id, node.label)
                    if text := await self.nodes.extract_config(lab_id, node_id):
                        configs[node.label] = text
                except OutsideError as error:
                    faults[node.label] = error

        await asyncio.gather(*(extract(node) for node in nodes))
        return configs, faults

    async def _node_id(self, lab_id: str, label: str) -> str:
        """Look up a node that is known by its label only.

        Raises:
            NotFound: There is none.
        """
        for node in await self.get_nodes(lab_id):
            if node.label == label:
                return node.id
        raise NotFound(f"lab {lab_id} has no node {label!r}")

    def recall(self, labs: Mapping[str, bool]) -> None:
        """Do nothing: CML knows its labs."""

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
