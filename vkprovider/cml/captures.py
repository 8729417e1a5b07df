"""Packets of links, as CML captures them: bound to one session.

A capture ends by itself at its limits of packets and seconds, of which CML wants one. What CML says of a capture that
has ended, and how long it keeps the packets, no public document has.
"""

import asyncio
from typing import Final, NoReturn

from vkprovider.cml import operations
from vkprovider.cml.wire import CmlCaptureConfig, CmlCaptureStatus, CmlLink
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.lablet.observations import CaptureFact, LinkFact
from vkprovider.platform.errors import Invalid, Unavailable
from vkprovider.rest.client import ServiceClient

_READS_MAX: Final = 2
"""Files at once of a worker: each may be large, and holds a connection as long as it comes."""


class CmlCaptures:
    """Captures, bound to one session; see `spi.Captures` for the contract."""

    def __init__(self, session: ServiceClient) -> None:
        self._session = session
        self._reads = asyncio.Semaphore(_READS_MAX)

    async def list_links(self, lab_id: str) -> tuple[LinkFact, ...]:
        """List the links of a lab."""
        request = operations.LIST_LINKS.to(lab=lab_id, params={"data": "true"})
        found = await self._session.fetch(request, list[CmlLink])
        return tuple(LinkFact(e.id, e.label, (e.node_a, e.node_b), e.link_capture_key or "") for e in found)

    async def start(self, lab_id: str, link_id: str, wanted: CaptureRequest) -> str:
        """Begin a capture and return its key."""
        body = {"maxpackets": wanted.packets, "maxtime": wanted.seconds, "encap": "ethernet"}
        body |= {"bpfilter": wanted.expression} if wanted.expression else {}
        request = operations.START_CAPTURE.to(lab=lab_id, link=link_id, json=body)
        config = await self._session.fetch(request, CmlCaptureConfig)
        if not config.link_capture_key:
            raise Unavailable("CML has begun a capture, and gives no key for it")
        return config.link_capture_key

    async def stop(self, lab_id: str, link_id: str) -> None:
        """End a capture."""
        await self._session.send(operations.STOP_CAPTURE.to(lab=lab_id, link=link_id))

    async def status(self, lab_id: str, link_id: str) -> CaptureFact | None:
        """Get the capture of a link; None if none runs."""
        found = await self._session.fetch(operations.CAPTURE_STATUS.to(lab=lab_id, link=link_id), CmlCaptureStatus)
        if found.config is None or not found.config.link_capture_key or found.starttime is None:
            return None
        return CaptureFact(found.config.link_capture_key, found.packetscaptured or 0)

    async def read(self, key: str) -> bytes:
        """Get what was captured until now as a pcap file."""
        async with self._reads:
            return (await self._session.send(operations.GET_PCAP.to(key=key))).body


class NoCaptures:
    """`spi.Captures` of the null backend, which has no links."""

    async def list_links(self, lab_id: str) -> tuple[LinkFact, ...]:  # noqa: ARG002 (there are none)
        """Return nothing."""
        return ()

    async def start(self, lab_id: str, link_id: str, wanted: CaptureRequest) -> str:  # noqa: ARG002 (there are none)
        """Refuse."""
        _refuse()

    async def stop(self, lab_id: str, link_id: str) -> None:  # noqa: ARG002 (there are none)
        """Refuse."""
        _refuse()

    async def status(self, lab_id: str, link_id: str) -> CaptureFact | None:  # noqa: ARG002 (there are none)
        """Return nothing."""
        return None

    async def read(self, key: str) -> bytes:  # noqa: ARG002 (there are none)
        """Refuse."""
        _refuse()


def _refuse() -> NoReturn:
    raise Invalid("the null backend has no links")
