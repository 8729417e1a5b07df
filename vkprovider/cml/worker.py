"""`Labs` of a CML worker: its clients, and the few calls that join them."""

import asyncio
from collections.abc import Mapping
from typing import Final

from tunnels.base import StreamOpener
from vkprovider.cml import operations
from vkprovider.cml.consoles import CmlConsoles, NoConsoles
from vkprovider.cml.interfaces import CmlInterfacesClient
from vkprovider.cml.labs import CmlLabsClient
from vkprovider.cml.nodes import CmlNodesClient
from vkprovider.cml.spi import Consoles, DeviceFact
from vkprovider.cml.wire import CmlNode, CmlNodeRow, CmlSystemInformation
from vkprovider.platform.errors import NotFound, OutsideError
from vkprovider.rest.client import ServiceClient

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
        self._extractions = asyncio.Semaphore(_EXTRACTIONS_MAX)

    @property
    def immediate(self) -> bool:
        """CML accepts first and acts later."""
        return False

    @property
    def consoles(self) -> Consoles:
        """The consoles of the devices."""
        return self._consoles

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

    async def _node_id(self, lab_id: str, label: str) -> str:
        """Look up a device that is known by its label only.

        Raises:
            NotFound: The lab does not have it.
        """
        for device in await self.list_devices(lab_id):
            if device.label == label:
                return device.id
        raise NotFound(f"lab {lab_id} has no device {label!r}")

    async def check_login(self) -> None:
        """Log in with credentials that have changed since the login."""
        await self._session.check_login()

    def recall(self, labs: Mapping[str, bool]) -> None:
        """Do nothing: CML knows its labs."""

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
        if self._streams is not None:
            await self._streams.close()


def _device(node: CmlNode | CmlNodeRow) -> DeviceFact:
    return DeviceFact(node.id, node.label, node.node_definition, node.state)
