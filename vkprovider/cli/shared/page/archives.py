"""What learners of a namespace left: from the page, or from the ConfigMaps themselves with an admin's right."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import click

from vkprovider.classroom.archives import NamespaceArchives, PageArchives, in_order
from vkprovider.cli.shared.page.asking import open_page
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.lablet import names
from vkprovider.lablet.archives import ArchiveEntry, Leftovers
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import ConfigMap
from vkprovider.platform.selectors import Selector

_PAGE_SIZE: Final = 50


class StoredArchives:
    """Reads it where the provider stores it."""

    def __init__(self, stored: Resource[ConfigMap], namespace: str) -> None:
        self._stored = stored
        self._namespace = namespace

    async def list(self, *, labels: str = "") -> list[ArchiveEntry]:
        """See `NamespaceArchives.list`."""
        found: list[ArchiveEntry] = []
        try:
            selector = Selector.parsed(labels)
        except ValueError as error:
            raise click.UsageError(f"-l: {error}") from None
        kept = f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS}"
        async for page in self._stored.metadata_only.pages(labels=kept, page_size=_PAGE_SIZE):
            for item in page:
                of = item.metadata.annotations.get(leftovers.ANNOTATION_POD, "")
                if of.startswith(f"{self._namespace}/") and (entry := await self._entry(ConfigMap(item.metadata))):
                    found.append(entry)
        return in_order([entry for entry in found if selector.accepts(entry.labels)])

    async def _entry(self, config_map: ConfigMap) -> ArchiveEntry | None:
        entry = leftovers.entry_of(config_map.metadata)
        if entry is not None:
            return entry
        whole = await self._stored.get(config_map.metadata.name)  # an older version wrote it
        return leftovers.described(leftovers.read(whole), config_map.metadata.name) if whole is not None else None

    async def read(self, id_: str) -> Leftovers | None:
        """See `NamespaceArchives.read`."""
        found = await self._stored.get(leftovers.name_of(id_))
        left = leftovers.read(found) if found is not None else None
        return left if left is not None and left.namespace == self._namespace else None


@asynccontextmanager
async def open_archives(
    kube: KubeClient, namespace: str, place: Place, page: PageOptions, provider_namespace: str = ""
) -> AsyncIterator[NamespaceArchives]:
    """Open what learners of a namespace left.

    Args:
        kube: The API server.
        namespace: Of the learners' lablets.
        place: Whose credentials count.
        page: How the page is asked.
        provider_namespace: Where the provider stores it, to be read without the page; "" for the page.

    Raises:
        ClickException: The page cannot be found, or there is no token for it.
    """
    if provider_namespace:
        yield StoredArchives(Api(kube, provider_namespace).config_maps, namespace)
        return
    async with open_page(kube, namespace, place, page) as asked:
        yield PageArchives(asked, namespace)
