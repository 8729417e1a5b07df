"""Consoles, screens and ports of devices, and what devices use: bound to one session and its way to CML's host.

CML hands out a key for each console and screen; the key is the credential for a WebSocket of CML's own user interface,
and says which device it leads to. The path of screens follows that of consoles and is not documented. A port is one
that PATty, CML's port forwarder, opens on the controller by a tag.
"""

from collections.abc import Mapping
from typing import Final

from tunnels import base as transport_errors
from tunnels.base import ByteChannel, StreamOpener
from vkprovider.cml import operations
from vkprovider.cml.wire import CmlSimulationStats
from vkprovider.platform.errors import DeadlineExceeded, Forbidden, Invalid, OutsideError, TlsFailed, Unavailable
from vkprovider.rest.client import ServiceClient
from vkprovider.rest.dialect import Unsent

_OPEN_S: Final = 10.0


class CmlConsoles:
    """Consoles of devices, bound to one session; see `spi.Consoles` for the contract.

    Args:
        session: For keys and logs.
        streams: For the connections.
        address: CML's, for messages.
    """

    def __init__(self, session: ServiceClient, streams: StreamOpener, address: str) -> None:
        self._session = session
        self._streams = streams
        self._address = address

    async def read_log(self, lab_id: str, node_id: str, line: int = 0, *, lines: int | None = None) -> str:
        """Get the history of a console, each line as `|<milliseconds>|text`."""
        params = {"lines": str(lines)} if lines is not None else None
        request = operations.CONSOLE_LOG.to(lab=lab_id, node=node_id, line=str(line), params=params)
        return await self._session.fetch(request, str)

    async def open_console(self, lab_id: str, node_id: str, line: int = 0) -> ByteChannel:
        """Connect to a serial console, which all who are connected share."""
        request = operations.GET_CONSOLE_KEY.to(lab=lab_id, node=node_id, params={"line": str(line)})
        key = await self._session.fetch(request, str)
        return await self._open(operations.CONSOLE_PATH, f"the console of node {node_id}", {"uuid": key})

    async def open_screen(self, lab_id: str, node_id: str) -> ByteChannel:
        """Connect to the VNC server of a device."""
        key = await self._session.fetch(operations.GET_VNC_KEY.to(lab=lab_id, node=node_id), str)
        return await self._open(operations.SCREEN_PATH, f"the screen of node {node_id}", {"uuid": key})

    async def open_port(self, port: int) -> ByteChannel:
        """Connect to a TCP port of CML's host."""
        return await self._open(operations.PORT_PATH.format(port=port), f"port {port}", {})

    async def cpu_percent(self, lab_id: str) -> dict[str, float]:
        """Get how much CPU each running node of a lab uses, in percent of a core, by node id."""
        stats = await self._session.fetch(operations.SIMULATION_STATS.to(lab=lab_id), CmlSimulationStats)
        return {node: used.cpu_usage for node, used in stats.nodes.items() if used.cpu_usage is not None}

    async def _open(self, path: str, what: str, params: Mapping[str, str]) -> ByteChannel:
        try:
            return await self._streams.open_stream(path, params=params, deadline_s=_OPEN_S)
        except transport_errors.TransportError as error:
            raise _translated(f"{self._address}: {what}", error) from error


def _translated(what: str, error: transport_errors.TransportError) -> OutsideError:
    match error:
        case transport_errors.CertificateInvalid():
            return TlsFailed(f"{what}: {error}")
        case transport_errors.DeadlineExceeded():
            return DeadlineExceeded(f"{what}: {error}")
        case transport_errors.ConnectFailed():
            return Unsent(f"{what}: {error}")
        case transport_errors.RequestRefused():
            return Forbidden(f"{what}: {error}")
        case _:
            return Unavailable(f"{what}: {error}")


class NoConsoles:
    """`spi.Consoles` of the null backend, whose devices have none."""

    async def read_log(self, lab_id: str, node_id: str, line: int = 0, *, lines: int | None = None) -> str:  # noqa: ARG002 (there are none)
        """Refuse."""
        raise _none()

    async def open_console(self, lab_id: str, node_id: str, line: int = 0) -> ByteChannel:  # noqa: ARG002 (there are none)
        """Refuse."""
        raise _none()

    async def open_screen(self, lab_id: str, node_id: str) -> ByteChannel:  # noqa: ARG002 (there are none)
        """Refuse."""
        raise _none()

    async def open_port(self, port: int) -> ByteChannel:  # noqa: ARG002 (there are none)
        """Refuse."""
        raise _none()

    async def cpu_percent(self, lab_id: str) -> dict[str, float]:  # noqa: ARG002 (nothing is known)
        """Return nothing."""
        return {}


def _none() -> Invalid:
    return Invalid("the null backend has no consoles")
