"""The objects that carry the backends of a mux: its EndpointSlices, or its Endpoints."""

from collections.abc import Container, Mapping
from typing import Any, Final, Literal

from vkprovider.mux.effects.reports import AT_ONCE
from vkprovider.mux.effects.store import Writes
from vkprovider.mux.index import MuxIndex
from vkprovider.mux.pure import slices as muxslices
from vkprovider.mux.pure.endpoints import Target, slice_without_ended, subsets_without_ended
from vkprovider.mux.pure.facts import MuxRef
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.slices import MuxObject, Sources
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict, InputError, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.platform.messages import count as counted
from vkprovider.platform.objects import EndpointSlice
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import unix

_ENDPOINTS: Final = kind("/api/v1", "endpoints", dict[str, Any])
Form = Literal["slices", "endpoints"]
Change = tuple[Reason, str] | None
"""What happened, for an Event."""


class Carriers:
    """Writes the backends of muxes."""

    def __init__(self, ctx: Context, form: Form, index: MuxIndex, writes: Writes) -> None:
        self._slices = ctx.api.endpoint_slices
        self._endpoints = Resource(ctx.kube, _ENDPOINTS)
        self._form = form
        self._index = index
        self._writes = writes

    async def write(self, mux: MuxObject, sources: Sources, guard: Guard) -> Change:
        """Write the backends of a mux where they differ, those that go first; return what changed."""
        if self._form == "endpoints":
            await self._write_slices(mux, {}, guard)
            return await self._write_endpoints(mux, sources, guard)
        return await self._write_slices(mux, muxslices.wanted_slices(mux, sources), guard)

    def since(self, mux: MuxObject, sources: Sources) -> float | None:
        """Return since when slices carry all these backends, in Unix seconds; None if they do not, or that is unknown.

        Only slices that never carry other ones tell it: a slice has the stamp of its creation.
        """
        if self._form == "endpoints":
            return None
        found = self._index.own_slices(mux.ref)
        stamps = [
            unix(found[name].metadata.creation_timestamp) if name in found else None
            for name in muxslices.wanted_slices(mux, sources)
        ]
        known = [stamp for stamp in stamps if stamp is not None]
        return max(known) + 1 if known and len(known) == len(stamps) else None  # whole seconds, cut off

    async def withdraw_ended(self, ref: MuxRef, lent: Container[Target], guard: Guard) -> bool:
        """Withdraw the backends that nobody lends any more; return whether there were any."""
        changes = {
            name: change
            for name, found in self._index.own_slices(ref).items()
            if (change := slice_without_ended(found, lent)) is not None
        }
        await at_most(AT_ONCE, lambda item: self._shrink(ref, *item, guard), changes.items())
        if self._form == "endpoints":
            return await self._shrink_endpoints(ref, lent, guard) or bool(changes)
        return bool(changes)

    async def withdraw(self, ref: MuxRef, guard: Guard) -> None:
        """Delete what carries the backends of a mux, also what the watch does not show yet."""
        labels = ",".join(f"{key}={value}" for key, value in muxslices.own_labels(ref).items())
        found = await self._slices.within(ref.namespace).list(labels=labels)
        await at_most(AT_ONCE, lambda each: self._delete(each, guard), found)
        if self._form == "endpoints":
            endpoints = self._endpoints.within(ref.namespace)
            seen = await endpoints.get(ref.name)
            if seen is not None and muxslices.are_our_endpoints(seen):
                uid = seen["metadata"]["uid"]
                what = f"delete Endpoints {ref}"
                await self._writes.send(what, {}, lambda: endpoints.delete(ref.name, uid=uid, guard=guard))

    # ------------------------------------------------------------------------------------------ slices

    async def _write_slices(self, mux: MuxObject, wanted: Mapping[str, dict[str, Any]], guard: Guard) -> Change:
        found = self._index.own_slices(mux.ref)
        gone = [each for name, each in found.items() if name not in wanted]
        await at_most(AT_ONCE, lambda each: self._delete(each, guard), gone)
        other = [name for name, body in wanted.items() if name not in found or muxslices.differs(found[name], body)]
        await at_most(AT_ONCE, lambda name: self._put(mux.ref, found.get(name), wanted[name], guard), other)
        if not (gone or other):
            return None
        if not found:
            return MuxReason.MUX_ENDPOINTS_CREATED, f"backends in {counted(len(other), 'EndpointSlice')}"
        text = f"{counted(len(other), 'EndpointSlice')} written, {len(gone)} deleted"
        return MuxReason.MUX_ENDPOINTS_CHANGED, text

    async def _put(self, ref: MuxRef, found: EndpointSlice | None, body: dict[str, Any], guard: Guard) -> None:
        slices, name = self._slices.within(ref.namespace).metadata_only, str(body["metadata"]["name"])
        key = f"{ref.namespace}/{name}"
        if found is None:
            try:
                await self._writes.send_once(
                    "create EndpointSlice", None, key, body, lambda: slices.create(body, guard=guard)
                )
            except Conflict:  # it is there: the watch will show it, unless somebody took its labels
                own = muxslices.own_labels(ref).items()
                there = await slices.list(fields=f"metadata.name={name}")
                if any(own - each.metadata.labels.items() for each in there):
                    text = f"EndpointSlice {key} lacks the labels of mux {ref}, and is not followed; delete it"
                    raise InputError(MuxReason.MUX_WRITE_REFUSED, text) from None
            return
        change = {field: body[field] for field in ("endpoints", "ports")} | {
            "metadata": {field: body["metadata"][field] for field in ("labels", "annotations", "ownerReferences")}
        }
        uid = found.metadata.uid
        try:
            await self._writes.send_once(
                "patch EndpointSlice",
                found.metadata,
                key,
                change,
                lambda: slices.patch(name, change, uid=uid, guard=guard),
            )
        except (Conflict, NotFound):  # it was deleted: the watch will show that, and the next pass creates it
            return

    async def _shrink(self, ref: MuxRef, name: str, change: Mapping[str, Any], guard: Guard) -> None:
        found = self._index.own_slices(ref).get(name)
        if found is None:
            return
        if not change["ports"]:
            await self._delete(found, guard)
            return
        meta, slices = found.metadata, self._slices.within(ref.namespace).metadata_only
        await self._writes.send_once(
            "patch EndpointSlice",
            meta,
            f"{ref.namespace}/{name}",
            change,
            lambda: slices.patch(name, change, resource_version=meta.resource_version, guard=guard),
        )

    async def _delete(self, found: EndpointSlice, guard: Guard) -> None:
        meta = found.metadata
        slices = self._slices.within(meta.namespace)
        await self._writes.send_once(
            "delete EndpointSlice",
            meta,
            f"{meta.namespace}/{meta.name}",
            {},
            lambda: slices.delete(meta.name, uid=meta.uid, guard=guard),
        )

    # ------------------------------------------------------------------------------------------ Endpoints

    async def _write_endpoints(self, mux: MuxObject, sources: Sources, guard: Guard) -> Change:
        wanted = muxslices.wanted_endpoints(mux, sources)
        endpoints, name = self._endpoints.within(mux.ref.namespace), mux.ref.name
        found = await endpoints.get(name)
        if found is None:
            what = f"create Endpoints {mux.ref}"
            await self._writes.send(what, wanted, lambda: endpoints.create(wanted, guard=guard))
            return MuxReason.MUX_ENDPOINTS_CREATED, f"backends of {counted(len(sources), 'channel')}"
        if not muxslices.endpoints_differ(found, wanted):
            return None
        meta = {field: wanted["metadata"][field] for field in ("labels", "annotations")}
        change = {"metadata": meta, "subsets": wanted["subsets"]}
        version = found["metadata"]["resourceVersion"]
        what = f"patch Endpoints {mux.ref}"
        await self._writes.send(
            what, change, lambda: endpoints.patch(name, change, resource_version=version, guard=guard)
        )
        return MuxReason.MUX_ENDPOINTS_CHANGED, f"backends of {counted(len(sources), 'channel')}"

    async def _shrink_endpoints(self, ref: MuxRef, lent: Container[Target], guard: Guard) -> bool:
        endpoints = self._endpoints.within(ref.namespace)
        found = await endpoints.get(ref.name)
        if found is None or not muxslices.are_our_endpoints(found):
            return False
        subsets = found.get("subsets") or []
        kept = subsets_without_ended(subsets, lent)
        if kept == subsets:
            return False
        change, version = {"subsets": kept}, found["metadata"]["resourceVersion"]
        await self._writes.send(
            f"patch Endpoints {ref}",
            change,
            lambda: endpoints.patch(ref.name, change, resource_version=version, guard=guard),
        )
        return True
