"""The stored versions of all definitions: content ConfigMaps, written once, dropped when nobody runs them any more."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from vkprovider.api.errors import Conflict, InputError, NotFound
from vkprovider.api.models import LabletDefinitionSpec
from vkprovider.api.objects import ConfigMap, CustomResource
from vkprovider.api.times import iso
from vkprovider.controllers.claims import reader
from vkprovider.controllers.context import Context
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition import package as packages
from vkprovider.domain.definition.content import Content
from vkprovider.domain.definition.package import Package
from vkprovider.domain.topology.resources import need_of

_log: Final = structlog.get_logger(__name__)
_encode: Final = msgspec.json.encode
_DROP_AFTER_S: Final = 60.0
"""How long a version stays after no new pod may name it: a replica may just be writing a claim on it."""


_config_map: Final = msgspec.json.Decoder(ConfigMap)


class Versions:
    """The stored versions.

    Attributes:
        contents: By digest, every version that exists.
    """

    def __init__(self, ctx: Context, stored: Callable[[], list[ConfigMap]]) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            stored: The content ConfigMaps.
        """
        self._ctx = ctx
        self._stored = stored
        self._path = f"/api/v1/namespaces/{ctx.namespace}/configmaps"
        self._dropped_at: dict[str, float] = {}
        self.contents: dict[str, Content] = {}

    def of(self, definition: str) -> list[Content]:
        """Give what is known of a definition, without asking anybody."""
        return [content for content in self.contents.values() if content.definition == definition]

    def forget(self, definition: str) -> None:
        """Forget a definition that is gone."""
        for content in self.of(definition):
            del self.contents[content.digest]

    async def current(self, resource: CustomResource, spec: LabletDefinitionSpec) -> Content | None:
        """Give the newest version of a definition."""
        return max(await self._read_all(resource, spec), key=lambda c: c.sequence, default=None)

    async def check_current(self, resource: CustomResource, spec: LabletDefinitionSpec) -> None:
        """Make sure that the newest version can still be charged for.

        Raises:
            InputError: `ResourcesUnknown`: a setting changed.
        """
        current = await self.current(resource, spec)
        if current is not None:
            need_of(current.topology, spec.resources, self._ctx.node_definitions)

    async def take(
        self, resource: CustomResource, spec: LabletDefinitionSpec, package: Package, request: str
    ) -> tuple[Content, bool]:
        """Make a package the current version; gives it, and whether that is news.

        Raises:
            InputError: It is wrong; what is stored stays.
            OutsideError: The API server did not take it.
        """
        digest = contents.digest_of(resource.metadata.uid, package)
        mine = {c.digest: c for c in await self._read_all(resource, spec)}
        newest = max((c.sequence for c in mine.values()), default=0)
        found = mine.get(digest)
        if found is not None:
            need_of(found.topology, spec.resources, self._ctx.node_definitions)
            if found.sequence == newest:
                return found, False
            return await self._move(found, newest + 1), True
        topology = await asyncio.to_thread(packages.validate, package)
        need_of(topology, spec.resources, self._ctx.node_definitions)
        body = await asyncio.to_thread(
            contents.build,
            definition=resource.metadata.name,
            uid=resource.metadata.uid,
            namespace=self._ctx.namespace,
            package=package,
            sequence=newest + 1,
            request=request,
            stored_at=iso(self._ctx.now_unix),
        )
        try:
            raw = await self._ctx.kube.create(self._path, _encode(body))
        except Conflict:
            raw = await self._ctx.kube.get(f"{self._path}/{body['metadata']['name']}")
        content = await self._read(_config_map.decode(raw), spec)
        self.contents[content.digest] = content
        return content, True

    async def _move(self, content: Content, sequence: int) -> Content:
        """Make an older version the current one; its place is in its annotations, which an immutable object may change.

        Raises:
            OutsideError: It did not work.
        """
        path = f"{self._path}/{content.config_map}"
        document = msgspec.json.decode(await self._ctx.kube.get(path))
        document["metadata"]["annotations"][contents.ANNOTATION_SEQUENCE] = str(sequence)
        await self._ctx.kube.replace(path, _encode(document))
        moved = self.contents[content.digest] = contents.at(content, sequence)
        return moved

    async def _read(self, config_map: ConfigMap, spec: LabletDefinitionSpec) -> Content:
        """Read a stored version, in a thread: a large topology takes seconds, and Leases must be renewed meanwhile."""
        return await asyncio.to_thread(contents.read, config_map, spec, self._ctx.node_definitions)

    async def _read_all(self, resource: CustomResource, spec: LabletDefinitionSpec) -> list[Content]:
        """Read every stored version of a definition."""
        name, found = resource.metadata.name, {}
        known = {content.config_map: content for content in self.of(name)}
        for config_map in self._stored():
            if config_map.metadata.annotations.get(contents.ANNOTATION_DEFINITION) != name:
                continue
            if all(o.uid != resource.metadata.uid for o in config_map.metadata.owner_references):
                continue  # of a deleted definition of the same name
            content = known.get(config_map.metadata.name)
            if content is None:
                try:
                    content = await self._read(config_map, spec)
                except InputError as error:
                    _log.warning("content cannot be read", config_map=config_map.metadata.name, error=str(error))
                    continue
            elif (sequence := contents.sequence_of(config_map)) > content.sequence:
                content = contents.at(content, sequence)  # whoever led before made it current again
            found[content.digest] = content
        for content in self.of(name):
            found.setdefault(content.digest, content)
        self.contents |= found
        return list(found.values())

    async def sort(self, resource: CustomResource, spec: LabletDefinitionSpec) -> tuple[list[Content], list[Content]]:
        """Split the versions into those that new pods may run, newest first, and those to drop."""
        everything = []
        for content in await self._read_all(resource, spec):
            try:
                need = need_of(content.topology, spec.resources, self._ctx.node_definitions)
            except InputError:
                continue  # nobody can be charged for it (any more); if it is the current one, its fault says so
            if need != content.need:
                content = contents.with_need(content, need)  # noqa: PLW2901 (the overrides changed)
                self.contents[content.digest] = content
            everything.append(content)
        kept, dropped = contents.split_kept(everything, keep=spec.keep_versions, used=())
        for content in kept:
            self._dropped_at.pop(content.digest, None)
        return kept, dropped

    async def drop(self, dropped: list[Content]) -> float:
        """Delete versions that no new pod may name and no lablet runs; gives the seconds until the next look."""
        now = self._ctx.now()
        since = {c.digest: self._dropped_at.setdefault(c.digest, now) for c in dropped}
        due = [c for c in dropped if since[c.digest] + _DROP_AFTER_S <= now]
        if not due:
            return max(0.0, min(since.values()) + _DROP_AFTER_S - now)
        try:
            used = {claim.digest for claim in await reader.of_all(self._ctx)}
        except InputError as error:
            _log.warning("nothing is dropped", error=str(error))
            return _DROP_AFTER_S
        for content in due:
            if content.digest in used:
                continue
            with contextlib.suppress(NotFound):
                await self._ctx.kube.delete(f"{self._path}/{content.config_map}")
            self.contents.pop(content.digest, None)
            self._dropped_at.pop(content.digest, None)
        return _DROP_AFTER_S
