"""`Labs` of a CML worker: life cycle of labs, their devices, and how their consoles are reached.

CML's REST API has no TCP ports of consoles. They are what the tags of the imported topology say (`serial:5041`,
`vnc:5044`), which PATty, CML's port forwarder, opens while the node runs.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from tunnels.base import StreamOpener
from vkprovider.cml import operations
from vkprovider.cml.captures import CmlCaptures
from vkprovider.cml.consoles import CmlConsoles, NoConsoles
from vkprovider.cml.spi import Captures, Consoles, DeviceFact
from vkprovider.cml.wire import (
    CmlImport,
    CmlLabDetail,
    CmlLabInfo,
    CmlNode,
    CmlNodeConfiguration,
    CmlNodeRow,
    CmlNodeState,
    CmlSystemInformation,
)
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import NotFound, OutsideError
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

    async def start_node(self, lab_id: str, node_id: str) -> None:
        """Start a node.

        Raises:
            Invalid: CML cannot start it: licences, capacity.
        """
        await self._session.send(operations.START_NODE.to(lab=lab_id, node=node_id))

    async def stop_node(self, lab_id: str, node_id: str) -> None:
        """Stop a node."""
        await self._session.send(operations.STOP_NODE.to(lab=lab_id, node=node_id))

    async def wipe_node(self, lab_id: str, node_id: str) -> None:
        """Reset a stopped node to what was imported.

        Raises:
            Invalid: It runs.
        """
        await self._session.send(operations.WIPE_NODE.to(lab=lab_id, node=node_id))

    async def extract_config(self, lab_id: str, node_id: str) -> str:
        """Make CML fetch a running node's configuration from the device, and return it.

        Raises:
            Invalid: The node does not run, or its kind has no configuration to extract.
        """
        await self._session.send(operations.EXTRACT_CONFIG.to(lab=lab_id, node=node_id))
        request = operations.GET_NODE.to(lab=lab_id, node=node_id, params={"exclude_configurations": "false"})
        return (await self._session.fetch(request, CmlNodeConfiguration)).text()


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


_EXTRACTIONS_MAX: Final = 4
"""The most extractions at once on a worker: CML logs into each device's console for one."""


class CmlLabs(CmlLabsClient, CmlNodesClient, CmlInterfacesClient):
    """The labs of one worker over one session; see `spi.Labs` for the contract.

    Args:
        session: Carries the requests; closed with this.
        address: CML's, for messages and URLs.
        streams: Opens consoles; closed with this. None: there are none.
    """

    def __init__(self, session: ServiceClient, address: str, streams: StreamOpener | None = None) -> None:
        CmlInterfacesClient.__init__(self, session, address)
        self._streams = streams
        self._consoles: Consoles = NoConsoles() if streams is None else CmlConsoles(session, streams, address)
        self._captures = CmlCaptures(session)
        self._extractions = asyncio.Semaphore(_EXTRACTIONS_MAX)

    @property
    def immediate(self) -> bool:
        """CML accepts first and acts later."""
        return False

    @property
    def consoles(self) -> Consoles:
        """The consoles of the devices."""
        return self._consoles

    @property
    def captures(self) -> Captures:
        """The captures of the links."""
        return self._captures

    def time(self) -> int:
        """Return CML's time by its last answer."""
        return self._session.server_time()

    async def version(self) -> str:
        """Get CML's version; needs no login."""
        return (await self._session.fetch(operations.HANDSHAKE.to(), CmlSystemInformation)).version

    async def list_all_devices(self) -> dict[str, tuple[DeviceFact, ...]]:
        """Observe all devices of the worker in one request, by lab id."""
        by_lab: dict[str, list[DeviceFact]] = {}
        for row in await self.list_all_nodes():
            by_lab.setdefault(row.lab_id, []).append(_device(row))
        return {lab_id: tuple(devices) for lab_id, devices in by_lab.items()}

    async def list_devices(self, lab_id: str) -> tuple[DeviceFact, ...]:
        """List the devices of one lab."""
        return tuple(map(_device, await self.list_nodes(lab_id)))

    async def list_tags(self, lab_id: str) -> dict[str, tuple[str, ...]]:
        """List the tags of a lab's devices, by label."""
        return {node.label: node.tags for node in await self.list_nodes(lab_id)}

    async def extract_configs(
        self, lab_id: str, devices: tuple[DeviceFact, ...]
    ) -> tuple[dict[str, str], dict[str, OutsideError]]:
        """Fetch the configurations of running devices, a few at a time; one that fails stops no other."""
        configs: dict[str, str] = {}
        faults: dict[str, OutsideError] = {}

        async def extract(device: DeviceFact) -> None:
            async with self._extractions:
                try:
                    node_id = device.id or await self._node_id(lab_id, device.label)
                    if text := await self.extract_config(lab_id, node_id):
                        configs[device.label] = text
                except OutsideError as error:
                    faults[device.label] = error

        await asyncio.gather(*map(extract, devices))
        return configs, faults

    async def change_device(self, lab_id: str, device: DeviceFact, act: DeviceAct) -> None:
        """Start, stop or wipe one device."""
        node_id = device.id or await self._node_id(lab_id, device.label)
        match act:
            case DeviceAct.START:
                await self.start_node(lab_id, node_id)
            case DeviceAct.STOP:
                await self.stop_node(lab_id, node_id)
            case DeviceAct.WIPE:
                await self.wipe_node(lab_id, node_id)
            case DeviceAct.RESTART:
                raise ValueError("CML knows no restart")

    async def _node_id(self, lab_id: str, label: str) -> str:
        """Look up a device that is known by its label only.

        Raises:
            NotFound: The lab does not have it.
        """
        for device in await self.list_devices(lab_id):
            if device.label == label:
                return device.id
        raise NotFound(f"lab {lab_id} has no device {label!r}")

    def user(self) -> str:
        """Return the user of the last login."""
        return self._session.user()

    async def check_login(self) -> None:
        """Log in with credentials that have changed since the login."""
        await self._session.check_login()

    def recall(self, labs: Mapping[str, bool]) -> None:
        """Do nothing: CML knows its labs."""

    async def close(self) -> None:
        """Close the connections, each whatever becomes of the other."""
        try:
            await self._session.close()
        finally:
            if self._streams is not None:
                await self._streams.close()


def _device(node: CmlNode | CmlNodeRow) -> DeviceFact:
    return DeviceFact(node.id, node.label, node.node_definition, node.state)
