"""The image definitions of a worker. Nothing is asked unless a worker says `images: On`."""

from typing import Protocol

import msgspec

from tunnels.outgoing.guard import Guard
from vkprovider.cml.factory import open_session, parse_worker_url
from vkprovider.cml.operations import IMAGES_API, LIST_IMAGES
from vkprovider.cml.spi import CredentialsReader
from vkprovider.rest.client import ServiceClient


class WorkerImages(Protocol):
    """The image definitions of one worker."""

    async def ids(self) -> list[str]:
        """List the ids of its image definitions.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """

    async def close(self) -> None:
        """Close the connections."""


class _Image(msgspec.Struct, frozen=True, gc=False):
    """One of `GET /image_definitions`: `{"id": "iosv-159-3-m3", "node_definition_id": "iosv", …}`; no size is told."""

    id: str


class CmlWorkerImages:
    """`WorkerImages` of a CML controller, over a session whose transport allows `IMAGES_API` only."""

    def __init__(self, session: ServiceClient) -> None:
        self._session = session

    async def ids(self) -> list[str]:
        """List the ids of its image definitions, one request.

        Raises:
            OutsideError: CML refused, failed or did not answer.
        """
        return [image.id for image in await self._session.fetch(LIST_IMAGES.to(), list[_Image])]

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


class NoImages:
    """`WorkerImages` of a null worker: it has none."""

    async def ids(self) -> list[str]:
        """Return no image definitions."""
        return []

    async def close(self) -> None:
        """Do nothing."""


def open_worker_images(
    url: str,
    credentials: CredentialsReader,
    *,
    verify: bool = True,
    ca_bundle: str | None = None,
    guard: Guard | None = None,
    user_agent: str = "",
) -> WorkerImages:
    """Open a session for a worker's image definitions; for the arguments see `factory.open_labs`.

    Raises:
        InputError: `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    if parse_worker_url(url).scheme == "null":
        return NoImages()
    session = open_session(
        url, credentials, verify=verify, ca_bundle=ca_bundle, allow=IMAGES_API, guard=guard, user_agent=user_agent
    )
    return CmlWorkerImages(session)
