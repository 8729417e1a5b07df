"""Typed handles for Kubernetes resources, so that no caller holds a URL, a decoder or a paging loop.

    api = Api(kube, "vkprovider")                              # of `kube.api`; a controller has it as `ctx.api`
    worker = await api.workers.get("a")                        # CustomResource, or None if there is none
    stores = await api.config_maps.list(labels="vkprovider.io/component=claims")
    await api.nodes.delete("vnode.a", uid=node.metadata.uid)   # False if it is gone already
    pods = api.pods.within("default")
    await pods.metadata_only.patch_status("a", body, strategic=True, uid=uid, guard=worker.guard)

Objects are sent as mappings and returned as slim structs of `vkprovider.platform.objects`. `within` binds a handle to
another namespace. Two views of a handle decode something else: `metadata_only` has the API server answer with metadata
alone, `unstructured` keeps every field, for read-modify-replace. `path` is what an informer follows.

Errors are those of `KubeClient`, with three differences: `get` returns None and `delete` False for 404, and a patch
whose `uid` is not that of the object raises `Conflict`, as the other preconditions do.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from vkprovider.platform.errors import Conflict, Invalid, NotFound, Unavailable
from vkprovider.platform.kube import watch
from vkprovider.platform.kube.client import Guard, KubeClient
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.objects import Metadata

T = TypeVar("T")
S = TypeVar("S")

PAGE_SIZE: Final = 500
"""Objects per page of a list, as in client-go."""

_encode: Final = msgspec.json.encode


class PartialObject(msgspec.Struct, frozen=True):
    """The metadata of any object."""

    metadata: Metadata


class How(TypedDict, total=False):
    """Options of one request; see `KubeClient.request`."""

    guard: Guard | None
    lane: Lane
    timeout_s: float


class ChangeHow(How, total=False):
    """Options and preconditions of a patch.

    Attributes:
        strategic: Merge lists such as `conditions` by their keys; for built-in kinds only.
        uid: Change only this object, not a later one of the same name.
        resource_version: Change only this version.
    """

    strategic: bool
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """Where the objects of one kind are served, and how they are decoded.

    Attributes:
        prefix: `/api/v1`, or `/apis/GROUP/VERSION`.
        plural: The resource's name in URLs, such as `configmaps`.
    """

    prefix: str
    plural: str
    decoder: "msgspec.json.Decoder[T]"

    def decoded_by(self, decoder: "msgspec.json.Decoder[S]") -> "Kind[S]":
        """Return the kind with another decoder."""
        return Kind(self.prefix, self.plural, decoder)


def kind(prefix: str, plural: str, type_: type[T]) -> Kind[T]:
    """Describe a kind whose objects decode as `type_`."""
    return Kind(prefix, plural, msgspec.json.Decoder(type_))


_partial: Final = msgspec.json.Decoder(PartialObject)
_unstructured: Final = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """The objects of one kind in one namespace, or in the cluster.

    Attributes:
        namespace: Empty for a kind without namespaces, and to list all namespaces.
        brief: Whether answers about one object carry nothing but its metadata.
    """

    kube: KubeClient
    kind: Kind[T]
    namespace: str = ""
    brief: bool = False

    @property
    def path(self) -> str:
        """The path of the collection.

        Raises:
            Invalid: The namespace's name cannot stand in a path.
        """
        namespaced = f"/namespaces/{_segment(self.namespace)}" if self.namespace else ""
        return f"{self.kind.prefix}{namespaced}/{self.kind.plural}"

    @property
    def metadata_only(self) -> "Resource[PartialObject]":
        """The same objects, reduced to their metadata by the API server."""
        return Resource(self.kube, self.kind.decoded_by(_partial), self.namespace, brief=True)

    @property
    def unstructured(self) -> "Resource[dict[str, Any]]":
        """The same objects with every field, as dictionaries."""
        return Resource(self.kube, self.kind.decoded_by(_unstructured), self.namespace)

    def within(self, namespace: str) -> "Resource[T]":
        """Return the handle for another namespace; for all of them if it is empty."""
        return replace(self, namespace=namespace)

    async def get(self, name: str, **how: Unpack[How]) -> T | None:
        """Read an object; None if it does not exist.

        Raises:
            OutsideError: Any of its kinds but `NotFound`.
        """
        path = self._path_of(name)
        try:
            answer = await self.kube.get(path, brief=self.brief, **how)
        except NotFound:
            return None
        return self._decode(answer, path)

    async def create(self, body: Mapping[str, Any], **how: Unpack[How]) -> T:
        """Create an object.

        Raises:
            Conflict: The name is taken.
            OutsideError: Any other of its kinds.
        """
        return self._decode(await self.kube.create(self.path, _encode(body), brief=self.brief, **how), self.path)

    async def replace(self, body: Mapping[str, Any], **how: Unpack[How]) -> T:
        """Replace the object that `body` names; a resourceVersion in it must be the current one.

        Raises:
            Conflict: The object was written since.
            NotFound: It does not exist.
            OutsideError: Any other of its kinds.
        """
        path = self._path_of(body["metadata"]["name"])
        return self._decode(await self.kube.replace(path, _encode(body), brief=self.brief, **how), path)

    async def patch(self, name: str, body: Mapping[str, Any], *, subresource: str = "", **how: Unpack[ChangeHow]) -> T:
        """Change the fields that `body` names: mappings are merged, lists are replaced, None deletes.

        Raises:
            Conflict: The object has another `uid` or `resource_version`.
            NotFound: It does not exist.
            OutsideError: Any other of its kinds.
        """
        held = {"uid": how.pop("uid", None), "resourceVersion": how.pop("resource_version", None)}
        if given := {field: value for field, value in held.items() if value is not None}:
            body = {**body, "metadata": {**body.get("metadata", {}), **given}}
        send = self.kube.strategic_patch if how.pop("strategic", False) else self.kube.merge_patch
        path = self._path_of(name) + (f"/{subresource}" if subresource else "")
        try:
            answer = await send(path, _encode(body), brief=self.brief, **how)
        except Invalid as error:  # a patch has no precondition for the UID: what is refused is to change it
            if "uid" in given and "metadata.uid" in error.message:
                raise Conflict(error.message, status=error.status) from None
            raise
        return self._decode(answer, path)

    async def json_patch(self, name: str, operations: Sequence[Mapping[str, Any]], **how: Unpack[How]) -> T:
        """Change an object by operations of RFC 6902; `Invalid` if one of its tests fails.

        Raises:
            NotFound: It does not exist.
            OutsideError: Any other of its kinds.
        """
        path = self._path_of(name)
        return self._decode(await self.kube.json_patch(path, _encode(operations), brief=self.brief, **how), path)

    async def patch_status(self, name: str, body: Mapping[str, Any], **how: Unpack[ChangeHow]) -> T:
        """Change fields of `status` and `metadata`; see `patch`.

        Raises:
            OutsideError: As `patch`.
        """
        return await self.patch(name, body, subresource="status", **how)

    async def delete(
        self,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_s: int | None = None,
        **how: Unpack[How],
    ) -> bool:
        """Delete an object; False if it does not exist.

        Args:
            name: The object's.
            uid: Delete only this object, not a later one of the same name.
            resource_version: Delete only this version.
            grace_s: `gracePeriodSeconds`; 0 removes a Pod that its kubelet has stopped.
            **how: See `How`.

        Raises:
            Conflict: It has another `uid` or `resource_version`.
            OutsideError: Any other of its kinds but `NotFound`.
        """
        path, version = self._path_of(name), resource_version
        try:
            await self.kube.delete(path, uid=uid, resource_version=version, grace_s=grace_s, brief=self.brief, **how)
        except NotFound:
            return False
        return True

    async def pages(
        self, *, labels: str = "", fields: str = "", page_size: int = PAGE_SIZE, **how: Unpack[How]
    ) -> AsyncIterator[list[T]]:
        """List objects, one page after the other; a page is read only when the iteration comes to it.

        Args:
            labels: A label selector.
            fields: A field selector.
            page_size: Objects per page.
            **how: See `How`.

        Raises:
            Gone: The API server has forgotten the list between two pages.
            OutsideError: Any other of its kinds.
        """
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        params = {name: value for name, value in selectors.items() if value}
        async for page in pages(self.kube, self.path, params, page_size=page_size, brief=self.brief, **how):
            yield [self._decode(item, self.path) for item in page.items or ()]

    async def page(self, *, labels: str, page_size: int, after: str, **how: Unpack[How]) -> tuple[list[T], str]:
        """List one page of objects.

        Args:
            labels: A label selector.
            page_size: Objects per page.
            after: The token with which the page before ended; "" for the first.
            **how: See `How`.

        Returns:
            The objects, and the token of the next page; "" if there is none.

        Raises:
            Gone: The token has expired.
            Invalid: It is not one.
            OutsideError: Any other of its kinds.
        """
        query = {"labelSelector": labels, "limit": str(page_size)} | ({"continue": after} if after else {})
        page = await _page(self.kube, self.path, query, brief=self.brief, **how)
        return [self._decode(item, self.path) for item in page.items or ()], page.metadata.continue_

    async def list(
        self, *, labels: str = "", fields: str = "", page_size: int = PAGE_SIZE, **how: Unpack[How]
    ) -> list[T]:
        """List objects completely, or raise: what cannot be listed is never an empty list.

        Raises:
            OutsideError: Any of its kinds.
        """
        found = self.pages(labels=labels, fields=fields, page_size=page_size, **how)
        return [item async for page in found for item in page]

    def _path_of(self, name: str) -> str:
        return f"{self.path}/{_segment(name)}"

    def _decode(self, answer: bytes | msgspec.Raw, path: str) -> T:
        try:
            return self.kind.decoder.decode(answer)
        except watch.UNDECODABLE as error:
            raise Unavailable(f"{path}: the answer cannot be decoded: {error}") from error


async def pages(
    kube: KubeClient, path: str, params: Mapping[str, str], *, page_size: int, brief: bool = False, **how: Unpack[How]
) -> AsyncIterator[watch.ListPage]:
    """List a collection, one page after the other, with its items not decoded yet.

    Raises:
        OutsideError: Any of its kinds.
    """
    query = {**params, "limit": str(page_size)}
    while True:
        page = await _page(kube, path, query, brief=brief, **how)
        yield page
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_


async def _page(
    kube: KubeClient, path: str, query: Mapping[str, str], *, brief: bool, **how: Unpack[How]
) -> watch.ListPage:
    answer = await kube.get(path, query, brief=brief, **how)
    try:
        return watch.page(answer)
    except watch.UNDECODABLE as error:
        raise Unavailable(f"GET {path}: the answer is not a list: {error}") from error


def _segment(name: str) -> str:
    """Escape a name for a path; an empty one would address the whole collection.

    Raises:
        Invalid: It is empty, `.` or `..`.
    """
    if name in {"", ".", ".."}:
        raise Invalid(f"{name!r} is not the name of an object")
    return quote(name, safe="")
