"""The nodes client: devices of a lab."""

from typing import Final

from vkprovider.cml.session import CmlSession
from vkprovider.cml.wire import CmlNode, CmlNodeConfiguration, CmlNodeRow, CmlNodeState

_SLIM: Final = {"operational": "false", "exclude_configurations": "true"}


class CmlNodesClient:
    """Nodes, `/api/v0/labs/{lab}/nodes`, bound to one session (address and token)."""

    def __init__(self, session: CmlSession) -> None:
        self._session = session

    async def list_nodes(self, lab_id: str) -> list[CmlNode]:
        """List the nodes of a lab.

        Raises:
            NotFound: There is no such lab.
            OutsideError: As every request.
        """
        path = f"/labs/{lab_id}/nodes"
        return await self._session.fetch("read", path, list[CmlNode], params={"data": "true", **_SLIM})

    async def list_all_nodes(self) -> list[CmlNodeRow]:
        """List the nodes of all labs that the user sees, in one request.

        Raises:
            OutsideError: As every request.
        """
        return await self._session.fetch("observe", "/nodes", list[CmlNodeRow], params=_SLIM)

    async def get_node_state(self, lab_id: str, node_id: str) -> CmlNodeState:
        """Get a node's state: `BOOTED`, `STOPPED`, ….

        Raises:
            NotFound: There is no such lab or node.
            OutsideError: As every request.
        """
        return await self._session.fetch("read", f"/labs/{lab_id}/nodes/{node_id}/state", CmlNodeState)

    async def start_node(self, lab_id: str, node_id: str) -> None:
        """Start one node.

        Raises:
            NotFound: There is no such lab or node.
            Invalid: CML cannot start it.
            OutsideError: As every request.
        """
        await self._session.request("action", "PUT", f"/labs/{lab_id}/nodes/{node_id}/state/start")

    async def extract_config(self, lab_id: str, node_id: str) -> str:
        """Let CML fetch a running node's configuration from the device and return it.

        Raises:
            NotFound: There is no such lab or node.
            Invalid: The node does not run, or its kind has no configuration to extract.
            OutsideError: As every request.
        """
        path = f"/labs/{lab_id}/nodes/{node_id}"
        await self._session.request("extract", "PUT", f"{path}/extract_configuration")
        found = await self._session.fetch(
            "read", path, CmlNodeConfiguration, params={"exclude_configurations": "false"}
        )
        return found.text()
