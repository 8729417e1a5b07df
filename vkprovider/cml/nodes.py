"""The nodes client: devices of a lab, which CML calls nodes."""

from typing import Final

from vkprovider.cml import operations
from vkprovider.cml.wire import CmlNode, CmlNodeConfiguration, CmlNodeRow, CmlNodeState
from vkprovider.rest.client import ServiceClient

_SLIM: Final = {"operational": "false", "exclude_configurations": "true"}


class CmlNodesClient:
    """Nodes, `/api/v0/labs/{lab}/nodes`, bound to one session (address and token).

    Every method raises `OutsideError` if CML refused, failed or did not answer; `NotFound` only if CML itself said
    that the lab or node does not exist.
    """

    def __init__(self, session: ServiceClient) -> None:
        self._session = session

    async def list_nodes(self, lab_id: str) -> list[CmlNode]:
        """List the nodes of a lab."""
        request = operations.LIST_NODES.to(lab=lab_id, params={"data": "true", **_SLIM})
        return await self._session.fetch(request, list[CmlNode])

    async def list_all_nodes(self) -> list[CmlNodeRow]:
        """List the nodes of all labs that the user sees, in one request."""
        return await self._session.fetch(operations.LIST_ALL_NODES.to(params=_SLIM), list[CmlNodeRow])

    async def get_node_state(self, lab_id: str, node_id: str) -> CmlNodeState:
        """Get a node's state: `BOOTED`, `STOPPED` and others."""
        return await self._session.fetch(operations.GET_NODE_STATE.to(lab=lab_id, node=node_id), CmlNodeState)

    async def extract_config(self, lab_id: str, node_id: str) -> str:
        """Make CML fetch a running node's configuration from the device, and return it.

        Raises:
            Invalid: The node does not run, or its kind has no configuration to extract.
        """
        await self._session.send(operations.EXTRACT_CONFIG.to(lab=lab_id, node=node_id))
        request = operations.GET_NODE.to(lab=lab_id, node=node_id, params={"exclude_configurations": "false"})
        return (await self._session.fetch(request, CmlNodeConfiguration)).text()
