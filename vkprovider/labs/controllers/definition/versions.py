"""The stored versions of all definitions: content ConfigMaps, written once, deleted when no lablet runs them."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.content.spi import Parser
from vkprovider.labs.controllers.claims import reader
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import status as definitionstatus
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.resources import NodeDefinition, need_of
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.platform.errors import Conflict, InputError, Unavailable
from vkprovider.platform.objects import ConfigMap, CustomResource
from vkprovider.platform.ports.allocator import check_count
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import iso

_log: Final = structlog.get_logger(__name__)
_DROP_AFTER_S: Final = 60.0
"""How long a version stays once no new Pod may name it: a replica may just be writing a claim for it."""


class ContentRefusedError(InputError):
    """Content is wrong by itself: it stays refused until it changes.

    Attributes:
        digest: Of the content.
    """

    def __init__(self, error: InputError, digest: str) -> None:
        super().__init__(error.reason, error.message)
        self.digest = digest


class Versions:
    """The stored versions.

    Attributes:
        contents: By digest, every version that exists.
    """

    def __init__(
        self,
        ctx: Context,
        parser: Parser,
        stored: Callable[[], list[ConfigMap]],
        node_definitions: Mapping[str, NodeDefinition],
        ports_max: int,
    ) -> None:
        """Create an empty collection.

        Args:
            ctx: The replica.
            parser: Parses untrusted content.
            stored: Returns the content ConfigMaps, as the informer knows them.
            node_definitions: What devices need, by node definition.
            ports_max: External ports of one lablet, at most.
        """
        self._ctx = ctx
        self._parser = parser
        self._stored = stored
        self._node_definitions = node_definitions
        self._ports_max = ports_max
        self._dropped_at: dict[str, float] = {}
        self._missing: dict[str, ConfigMap] = {}  # by name, what another client deleted
        self._deleted: set[str] = set()  # names of what this replica deleted; the watch may still show them
        self.contents: dict[str, Content] = {}

    def of(self, definition: str) -> list[Content]:
        """Return the known versions of a definition, from memory."""
        return [content for content in self.contents.values() if content.definition == definition]

    def forget(self, definition: str) -> None:
        """Forget the versions of a definition that was deleted."""
        for content in self.of(definition):
            del self.contents[content.digest]
            self._missing.pop(content.config_map, None)

    def exists(self, config_map: ConfigMap) -> None:
        """Note that the watch shows a ConfigMap."""
        self._missing.pop(config_map.metadata.name, None)
        self._deleted.discard(config_map.metadata.name)

    def removed(self, config_map: ConfigMap) -> None:
        """Note that a ConfigMap is gone: if it holds a known version, and another client deleted it, it is missing."""
        name = config_map.metadata.name
        if name in self._deleted:
            self._deleted.discard(name)
        elif any(content.config_map == name for content in self.contents.values()):
            self._missing[name] = config_map

    def leave(self, dropped: list[Content]) -> None:
        """Forget that versions to delete are missing: the leading replica may have deleted them."""
        for content in dropped:
            self._missing.pop(content.config_map, None)

    async def restore(self, resource: CustomResource) -> None:
        """Store each version of a definition again that another client deleted; what no Pod needs is dropped later.

        Raises:
            OutsideError: The API server refused a ConfigMap, or did not answer.
        """
        for content in self.of(resource.metadata.name):
            config_map = self._missing.get(content.config_map)
            if config_map is None:
                continue
            body = await asyncio.to_thread(contents.rebuild, content, config_map, resource.metadata.uid)
            if body is not None:
                await self._store(body)
                _log.warning("content was deleted by another client and is stored again", config_map=content.config_map)
            self._missing.pop(content.config_map, None)

    async def current(self, resource: CustomResource, spec: LabletDefinitionSpec) -> Content | None:
        """Return the newest version of a definition."""
        return max(await self._read_all(resource, spec), key=lambda c: c.sequence, default=None)

    async def check_current(self, resource: CustomResource, spec: LabletDefinitionSpec) -> None:
        """Check that the newest version can still be charged for, and be given its ports.

        Raises:
            InputError: `ResourcesUnknown`, `TooManyPorts`: a setting changed since it was stored.
        """
        current = await self.current(resource, spec)
        if current is not None:
            self._check(current.topology, spec)

    def _check(self, topology: Topology, spec: LabletDefinitionSpec) -> None:
        """Check a topology against the settings.

        Raises:
            InputError: `ResourcesUnknown`, `TooManyPorts`.
        """
        need_of(topology, spec.resources, self._node_definitions)
        check_count(len(topology.template.slots), self._ports_max)

    async def adopt(
        self, resource: CustomResource, spec: LabletDefinitionSpec, package: Package, request: str
    ) -> tuple[Content, bool]:
        """Make a package the current version.

        Returns:
            The version, and whether it was not the current one before.

        Raises:
            InputError: The package is wrong; the stored versions stay as they are.
            OutsideError: The API server refused the ConfigMap, or did not answer.
        """
        digest = contents.digest_of(resource.metadata.uid, package)
        known = {c.digest: c for c in await self._read_all(resource, spec)}
        newest = max((c.sequence for c in known.values()), default=0)
        found = known.get(digest)
        if found is not None:
            self._check(found.topology, spec)
            if found.sequence == newest:
                return found, False
            if (raised := await self._raise_sequence(found, newest + 1, request)) is not None:
                return raised, True
            del self.contents[digest]  # the replica that led before has deleted it
        if (fault := definitionstatus.refused_content(resource, digest)) is not None:
            raise ContentRefusedError(InputError(fault.reason, fault.message), digest)
        topology = await self._parse(digest, package)
        if without := topology.tags_without_ports():
            _log.debug("tags request no port", definition=resource.metadata.name, tags=without)
        self._check(topology, spec)
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
        content = await self._read(await self._store(body), spec)
        self.contents[content.digest] = content
        return content, True

    async def _store(self, body: dict[str, Any]) -> ConfigMap:
        """Create a content ConfigMap; its name is a digest, so an existing one holds the same."""
        name = body["metadata"]["name"]
        try:
            return await self._ctx.api.config_maps.create(body)
        except Conflict:
            found = await self._ctx.api.config_maps.get(name)
        if found is None:
            raise Unavailable(f"ConfigMap {name} existed, and was deleted before it could be read")
        return found

    async def _raise_sequence(self, content: Content, sequence: int, request: str) -> Content | None:
        """Make an older version the current one, by its annotation: data of an immutable ConfigMap cannot change.

        None if the ConfigMap was deleted.
        """
        handle = self._ctx.api.config_maps.unstructured
        document = await handle.get(content.config_map)
        if document is None:
            return None
        document["metadata"]["annotations"] |= {
            contents.ANNOTATION_SEQUENCE: str(sequence),
            names.ANNOTATION_REFRESH: request,
        }
        await handle.replace(document)
        raised = self.contents[content.digest] = dataclasses.replace(content, sequence=sequence, request=request)
        return raised

    async def _read(self, config_map: ConfigMap, spec: LabletDefinitionSpec) -> Content:
        """Parse a stored version; an earlier release, with fewer limits, may have written it."""
        package = await asyncio.to_thread(contents.package_of, config_map)
        topology = await self._parser.topology(package)
        return contents.read(config_map, package, topology, spec, self._node_definitions)

    async def _parse(self, digest: str, package: Package) -> Topology:
        """Parse new content.

        Raises:
            ContentRefusedError: It is wrong.
            OutsideError: It could not be parsed now.
        """
        try:
            topology = await self._parser.topology(package)
        except InputError as error:
            raise ContentRefusedError(error, digest) from None
        if faults := topology.faults:  # not of stored content: an earlier release took it, and lablets may run it
            more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
            raise ContentRefusedError(InputError(DefinitionReason.TOPOLOGY_INVALID, faults[0] + more), digest)
        return topology

    async def _read_all(self, resource: CustomResource, spec: LabletDefinitionSpec) -> list[Content]:
        """Return every stored version of a definition; parse those that are new."""
        name, found = resource.metadata.name, {}
        known = {content.config_map: content for content in self.of(name)}
        for config_map in self._stored():
            if config_map.metadata.annotations.get(contents.ANNOTATION_DEFINITION) != name:
                continue
            if all(o.uid != resource.metadata.uid for o in config_map.metadata.owner_references):
                continue  # of a deleted definition of the same name
            if config_map.metadata.name in self._deleted:
                continue
            content = known.get(config_map.metadata.name)
            if content is None:
                try:
                    content = await self._read(config_map, spec)
                except InputError as error:
                    _log.warning("content cannot be read", config_map=config_map.metadata.name, error=str(error))
                    continue
            elif (sequence := contents.sequence_of(config_map)) > content.sequence:  # the former leader raised it
                content = dataclasses.replace(content, sequence=sequence, request=contents.request_of(config_map))
            found[content.digest] = content
        for content in self.of(name):
            found.setdefault(content.digest, content)
        self.contents |= found
        return list(found.values())

    async def sort(self, resource: CustomResource, spec: LabletDefinitionSpec) -> tuple[list[Content], list[Content]]:
        """Split the versions into those that new Pods may run, newest first, and those to delete."""
        everything = []
        for content in await self._read_all(resource, spec):
            try:
                need = need_of(content.topology, spec.resources, self._node_definitions)
            except InputError:
                continue  # its resources are unknown now; if it is the current one, the definition's fault says so
            if need != content.need:
                content = dataclasses.replace(content, need=need)  # noqa: PLW2901 (the overrides changed)
                self.contents[content.digest] = content
            everything.append(content)
        kept, dropped = contents.split_kept(everything, keep=spec.keep_versions, used=())
        for content in kept:
            self._dropped_at.pop(content.digest, None)
        return kept, dropped

    async def drop(self, dropped: list[Content]) -> float:
        """Delete versions that no new Pod may name and no lablet runs; return the seconds until the next check."""
        now = self._ctx.now()
        since = {c.digest: self._dropped_at.setdefault(c.digest, now) for c in dropped}
        due = [c for c in dropped if since[c.digest] + _DROP_AFTER_S <= now]
        if not due:
            return max(0.0, min(since.values()) + _DROP_AFTER_S - now)
        try:
            used = {claim.digest for claim in await reader.of_all(self._ctx)}
        except InputError as error:
            _log.warning("no version is deleted", error=str(error))
            return _DROP_AFTER_S
        for content in due:
            if content.digest in used:
                continue
            self._deleted.add(content.config_map)
            await self._ctx.api.config_maps.delete(content.config_map)
            self.contents.pop(content.digest, None)
            self._dropped_at.pop(content.digest, None)
        return _DROP_AFTER_S
