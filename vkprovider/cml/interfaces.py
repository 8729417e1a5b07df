"""The interfaces client: how to reach the consoles of a lab's devices.

CML's REST API has no TCP ports of consoles. They are what the tags of the imported topology say (`serial:5041`,
`vnc:5044`), which PATty, CML's port forwarder, opens while the node runs.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from vkprovider.cml import operations
from vkprovider.cml.wire import CmlNode
from vkprovider.rest.client import ServiceClient

_SERIAL: Final = re.compile(r"serial:(\d{1,5})(?::(\d{1,2}))?", re.ASCII)
_VNC: Final = re.compile(r"vnc:(\d{1,5})", re.ASCII)


class CmlInterfacesClient:
    """Consoles, `/api/v0/labs/{lab}/nodes/{node}`, bound to one session (address and token).

    Every method raises `OutsideError` if CML refused, failed or did not answer; `NotFound` only if CML itself said
    that the lab or node does not exist.
    """

    def __init__(self, session: ServiceClient, address: str) -> None:
        self._session = session
        self._address = urlsplit(address)

    async def get_console_ports(self, lab_id: str) -> dict[str, int]:
        """Get the serial consoles of a lab: `{"r1": 5041, "r1:1": 5042}`, the second being r1's line 1."""
        request = operations.LIST_NODES.to(lab=lab_id, params={"data": "true"})
        return console_ports(await self._session.fetch(request, list[CmlNode]))

    async def get_vnc_url(self, lab_id: str, node_id: str) -> str:
        """Return the URL of a graphical node's screen.

        `vnc://host:port` if the node has a tag for it. Otherwise the address of CML's own web client, with the key as
        the credential: `wss://host/ws/dispatch/frontend/vnc?uuid=<key>`. Its path follows that of the consoles and is
        not documented.

        Raises:
            NotFound: There is no such lab or node, or it has no screen.
        """
        url = self._address
        node = await self._session.fetch(operations.GET_NODE.to(lab=lab_id, node=node_id), CmlNode)
        for tag in node.tags:
            if match := _VNC.fullmatch(tag):
                host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
                return f"vnc://{host}:{match[1]}"
        key = await self._session.fetch(operations.GET_VNC_KEY.to(lab=lab_id, node=node_id), str)
        scheme = "wss" if url.scheme == "https" else "ws"
        return f"{scheme}://{url.netloc}/ws/dispatch/frontend/vnc?uuid={key}"


def console_ports(nodes: Iterable[CmlNode]) -> dict[str, int]:
    """Return the serial ports of the nodes' tags; see `CmlInterfacesClient.get_console_ports`."""
    ports: dict[str, int] = {}
    for node in nodes:
        for tag in node.tags:
            if match := _SERIAL.fullmatch(tag):
                line = int(match[2] or 0)
                ports[f"{node.label}:{line}" if line else node.label] = int(match[1])
    return ports
