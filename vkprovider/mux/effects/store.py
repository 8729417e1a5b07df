"""Every write for muxes, guarded; and the ConfigMap of a mux, read with each pass, written before all else.

A write is seen by the watch a moment later. A pass in between would write it again; so a write is remembered until the
watch shows a change of its object.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from vkprovider.mux.pure import state as muxstate
from vkprovider.mux.pure.facts import Mux
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.state import MuxState
from vkprovider.platform.errors import Forbidden, InputError, shorten
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.watch import key_of
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.ports.store import DATA_KEY, GZIP_KEY
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_LOGGED_CHARS: Final = 2000
"""The characters of a write that a dry run logs."""


class Writes:
    """Carries out writes.

    Attributes:
        total: Writes that were carried out.
    """

    def __init__(self, *, dry: bool) -> None:
        """Begin with nothing written.

        Args:
            dry: Whether writes are only logged.
        """
        self._dry = dry
        self._sent: dict[str, dict[str, tuple[str, bytes]]] = {}
        self._under_way: set[str] = set()
        self._logged: dict[str, bytes] = {}
        self.total = 0

    async def send(self, what: str, wanted: object, call: Callable[[], Awaitable[object]]) -> None:
        """Carry out a write.

        Args:
            what: Verb and object, for the log of a dry run.
            wanted: What is written, for the same.
            call: Called here to write, unless this is a dry run.
        """
        if self._dry:
            text = msgspec.json.encode(wanted, order="sorted")
            if self._logged.get(what) != text:  # with every pass it would be the same again
                self._logged[what] = text
                _log.info("dry run: would write", what=what, wanted=shorten(text.decode(), _LOGGED_CHARS))
            return
        await call()
        self.total += 1

    async def send_once(
        self,
        what: str,
        seen: Metadata | None,
        name: str,
        wanted: Mapping[str, Any],
        call: Callable[[], Awaitable[object]],
    ) -> None:
        """Carry out a write of an object that is followed, unless it was carried out and is not seen yet.

        Args:
            what: Verb and kind, for the log of a dry run.
            seen: The object as the watch showed it last; None if it showed none.
            name: `namespace/name` of the object.
            wanted: What is written.
            call: Called here to write.
        """
        mark = (seen.resource_version if seen is not None else "", msgspec.json.encode(wanted, order="sorted"))
        if self._sent.get(name, {}).get(what) == mark:
            return
        self._under_way.add(name)
        try:
            await self.send(f"{what} {name}", wanted, call)
            if name in self._under_way:
                self._sent.setdefault(name, {})[what] = mark
        finally:
            self._under_way.discard(name)

    def seen(self, old: Any, new: Any) -> None:
        """Note that the watch shows a change of an object: what is remembered about it may be out of date."""
        name = key_of((new or old).metadata)
        self._sent.pop(name, None)
        if new is None:
            self._under_way.discard(name)  # it came and went before the answer to its creation is here


_ROLE: Final = "vkprovider-mux-store"


class StoredMux(NamedTuple):
    """What was read.

    Attributes:
        config_map: The ConfigMap; None if there is none yet.
        state: What it says.
    """

    config_map: ConfigMap | None
    state: MuxState


class MuxStore:
    """Reads and writes the ConfigMaps of muxes."""

    def __init__(self, ctx: Context, prefix: str, writes: Writes) -> None:
        self._config_maps = ctx.api.config_maps
        self._prefix = prefix
        self._writes = writes

    async def read(self, mux: Mux, last: StoredMux | None = None) -> StoredMux:
        """Read what a mux remembers.

        Args:
            mux: The mux.
            last: What was read last: if nothing has changed since, its state is not made of the document again.

        Raises:
            InputError: `PortAllocationStoreInvalid`, or `MuxWriteRefused`: no admin lets the program keep ports there.
                The pass must be skipped.
            OutsideError: It cannot be read: the pass must be skipped.
        """
        name = muxstate.store_name(mux, self._prefix)
        try:
            found = await self._config_maps.within(mux.ref.namespace).get(name)
        except Forbidden as error:
            remedy = f"bind ClusterRole {_ROLE} in namespace {mux.ref.namespace} (docs/mux.md, Install)"
            raise InputError(MuxReason.MUX_WRITE_REFUSED, f"{remedy}: {error.message}") from None
        if last is not None and last.config_map == found:
            return last
        return StoredMux(found, MuxState() if found is None else muxstate.read(found, mux.ref, self._prefix))

    async def write(self, mux: Mux, stored: StoredMux, state: MuxState, guard: Guard) -> None:
        """Write what a mux is to remember, if that is something else.

        Raises:
            InputError: `MuxStoreFull`.
            Conflict: Another client wrote since: the pass must be repeated.
        """
        data, binary = muxstate.write(state, mux.ref)
        name = muxstate.store_name(mux, self._prefix)
        found, config_maps = stored.config_map, self._config_maps.within(mux.ref.namespace)
        meta = {
            "labels": muxstate.store_labels(),
            "annotations": muxstate.store_annotations(mux.ref, self._prefix),
        }
        what = f"the ports of mux {mux.ref} into ConfigMap {name}"
        if found is None:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": mux.ref.namespace, **meta},
                "data": data,
                "binaryData": binary,
            }
            await self._writes.send(what, body, lambda: config_maps.create(body, guard=guard))
            return
        labels = found.metadata.labels
        if (
            found.data.get(DATA_KEY) == data.get(DATA_KEY)
            and found.binary_data.get(GZIP_KEY) == binary.get(GZIP_KEY)
            and all(labels.get(key) == value for key, value in meta["labels"].items())
        ):
            return
        change = {
            "metadata": meta,
            "data": {DATA_KEY: data.get(DATA_KEY)},
            "binaryData": {GZIP_KEY: binary.get(GZIP_KEY)},
        }
        version = found.metadata.resource_version
        await self._writes.send(
            what, change, lambda: config_maps.patch(name, change, resource_version=version, guard=guard)
        )
