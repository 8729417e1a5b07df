"""What learners of a namespace left, as the provider's page lists and shows it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from vkprovider.lablet.archives import ArchiveEntry, Leftovers

T = TypeVar("T")


class ArchivePage(Protocol):
    """The provider's page, as somebody asks it; it raises what who asks understands."""

    async def get(self, path: str, type_: type[T], params: Mapping[str, str] | None = None) -> T:
        """Ask for a path, and decode the answer."""

    async def find(self, path: str, type_: type[T], absent: str) -> T | None:
        """Ask for a path, and decode the answer; None if the page refuses with the reason `absent`."""


class NamespaceArchives(Protocol):
    """What learners of one namespace left. Each method raises what its page does."""

    async def list(self, *, labels: str = "") -> list[ArchiveEntry]:
        """List it: that of learners first, then the newest first.

        Args:
            labels: Only of Pods that this label selector selects.

        Raises:
            InputError: What is stored is damaged.
        """

    async def read(self, id_: str) -> Leftovers | None:
        """Read what is kept under an id; None if nothing is. Errors are those of `list`."""


class _Listed(msgspec.Struct, frozen=True):
    items: list[ArchiveEntry]
    after: str = msgspec.field(name="continue", default="")


class PageArchives:
    """Reads it from the page."""

    def __init__(self, page: ArchivePage, namespace: str) -> None:
        self._page = page
        self._path = f"/namespaces/{namespace}/archives"

    async def list(self, *, labels: str = "") -> list[ArchiveEntry]:
        """See `NamespaceArchives.list`."""
        found: list[ArchiveEntry] = []
        params = {"labelSelector": labels} if labels else {}
        while True:
            listed = await self._page.get(self._path, _Listed, params)
            found += listed.items
            if not listed.after:
                return in_order(found)
            params["continue"] = listed.after

    async def read(self, id_: str) -> Leftovers | None:
        """See `NamespaceArchives.read`."""
        return await self._page.find(f"{self._path}/{id_}", Leftovers, "ArchiveUnknown")


async def newest_kept(archives: NamespaceArchives, entries: Iterable[ArchiveEntry]) -> Leftovers | None:
    """Read the first of some entries that is still kept; None if none is. Errors are those of the archives."""
    for entry in entries:
        if (left := await archives.read(entry.id)) is not None:
            return left
    return None


def in_order(entries: Sequence[ArchiveEntry]) -> list[ArchiveEntry]:
    """Sort entries: those of learners first, then the newest first."""
    return sorted(entries, key=lambda entry: (not entry.learner, -entry.at))


def by_learner(entries: Sequence[ArchiveEntry]) -> dict[str, list[ArchiveEntry]]:
    """Return by learner, in the order of their names, what each left, in the order of the entries."""
    found: dict[str, list[ArchiveEntry]] = {}
    for entry in entries:
        if entry.learner:
            found.setdefault(entry.learner, []).append(entry)
    return dict(sorted(found.items()))
