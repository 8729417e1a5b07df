"""Reads objects of the cluster, and times in them; what cannot be read is a finding, never an empty answer."""

from datetime import datetime
from typing import TypeVar

import msgspec

from vkprovider.doctor.findings import Finding, unchecked
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.errors import NotFound, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PAGE_SIZE, pages
from vkprovider.platform.objects import Lease

T = TypeVar("T")


class UserReading:
    """What one user may read.

    Attributes:
        found: What could not be read.
    """

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self.found: list[Finding] = []

    async def read(self, path: str, type_: type[T], about: str) -> T | None:
        """Read an object; None if there is none, or if that could not be found out, which is reported."""
        try:
            return msgspec.json.decode(await self._kube.get(path), type=type_)
        except NotFound:
            return None
        except OutsideError as error:
            self.found.append(unchecked(about, DoctorReason.NOT_READABLE, error.message))
            return None

    async def glance(self, path: str, type_: type[T]) -> T | None:
        """Read an object that few users may read, and on which little depends; that it cannot be read is no finding."""
        try:
            return msgspec.json.decode(await self._kube.get(path), type=type_)
        except OutsideError:
            return None

    async def list(self, path: str, type_: type[T], about: str, params: dict[str, str] | None = None) -> list[T]:
        """List a collection, page by page; empty if that could not be done, which is reported."""
        found: list[T] = []
        decoder = msgspec.json.Decoder(type_)
        try:
            async for page in pages(self._kube, path, params or {}, page_size=PAGE_SIZE):
                found += [decoder.decode(item) for item in page.items or ()]
        except NotFound:
            return []  # the definition of that kind is missing, which is reported elsewhere
        except OutsideError as error:
            self.found.append(unchecked(about, DoctorReason.NOT_READABLE, error.message))
            return []
        return found

    def failed(self, about: str) -> bool:
        """Return whether something about this object could not be read."""
        return any(finding.object == about for finding in self.found)


def renewed_unix_s(lease: Lease) -> float:
    """Return when a Lease was renewed; 0 if that is unreadable."""
    return unix_s(lease.spec.renew_time or "")


def unix_s(stamp: str) -> float:
    """Return the Unix time of a Kubernetes timestamp; 0 if it is unreadable."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0
