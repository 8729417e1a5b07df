"""Reads objects of the cluster; what cannot be read is a finding, never an empty answer that looks like one."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from vkprovider.api.errors import NotFound, OutsideError
from vkprovider.doctor.findings import Finding, unchecked
from vkprovider.kube.client import KubeClient

_PAGE: Final = 500

T = TypeVar("T")


class _Page(msgspec.Struct, frozen=True):
    """A page of any list: `metadata.continue` leads to the next."""

    items: list[msgspec.Raw] = []
    metadata: dict[str, Any] = {}


_page: Final = msgspec.json.Decoder(_Page)


class Reading:
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
            self.found.append(unchecked(about, "NotReadable", error.message))
            return None

    async def list(self, path: str, type_: type[T], about: str, params: dict[str, str] | None = None) -> list[T]:
        """List a collection, page by page; empty if that could not be done, which is reported."""
        found: list[T] = []
        query = {"limit": str(_PAGE), **(params or {})}
        decoder = msgspec.json.Decoder(type_)
        try:
            while True:
                page = _page.decode(await self._kube.get(path, query))
                found += _decoded(page.items, decoder)
                if not (go_on := page.metadata.get("continue")):
                    return found
                query["continue"] = go_on
        except NotFound:
            return []  # the definition of that kind is missing, which is reported elsewhere
        except OutsideError as error:
            self.found.append(unchecked(about, "NotReadable", error.message))
            return []

    def failed(self, about: str) -> bool:
        """Return whether something about this object could not be read."""
        return any(finding.object == about for finding in self.found)


def _decoded(items: Iterable[msgspec.Raw], decoder: "msgspec.json.Decoder[T]") -> list[T]:
    return [decoder.decode(item) for item in items]
