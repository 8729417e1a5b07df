"""A typed cache of one collection, kept up to date by list and watch.

List, then watch from the list's resourceVersion, for ever:

    list ──ok──▶ watch ──ends, breaks, falls silent──▶ watch again at once, from the last resourceVersion
     ▲             │
     │             ├──cannot be opened──▶ back off, watch again from the last resourceVersion
     │             │
     └──410, ERROR, silent twice──┘

Under load an API server ends watches several times a minute, so an end is normal and costs neither a wait nor a list.
A list that fails changes nothing: "could not list" is never "empty".
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple

import msgspec
import structlog

from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import Gone, OutsideError, Throttled, Unavailable
from vkprovider.platform.kube import watch
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.http import answers
from vkprovider.platform.kube.watch import (
    CollectionDecoder,
    CollectionStore,
    Handler,
    HasMetadata,
    Head,
    NamedMetadata,
    T,
    key_of,
)

__all__ = ["ALERT", "CALM", "HasMetadata", "Head", "Informer", "WatchPatience"]

_log: Final = structlog.get_logger(__name__)

_BACKOFF_FLOOR: Final = 0.1  # full jitter would now and then not wait at all
_JITTER_S_MAX: Final = 3.0
"""Before a list after a silence: all replicas may have been silenced at once."""
_DEAF_SHARE: Final = 1 / 3
"""Of the patience with silence, after one, and while lists find what no watch tells: facts follow from one another."""
_BRIEF_S: Final = 1.0
_ODD_MAX: Final = 3
_ODD_ANSWERS: Final = {400, 504}  # a version from before etcd was restored is refused like this for ever


class WatchPatience(NamedTuple):
    """How long a watch may last and be silent, and how long the pauses after an error are.

    Attributes:
        watch_s: The server ends a watch after a time between these, at random: not all of all clients end together.
        silence_s: A watch is opened again after so long without a byte. Bookmarks come every minute, and one before the
            end.
        silences: After so many silences in a row everything is listed again.
        list_s: The deadline of a page of a list.
        backoff_s: First and greatest bound of the back-off after an error.
        outage_cap_s: The greatest bound while the server is unreachable: requests cost it nothing then, and changes
            wait behind this.
    """

    watch_s: tuple[int, int]
    silence_s: float
    silences: int
    list_s: float = 60.0
    backoff_s: tuple[float, float] = (0.8, 30.0)
    outage_cap_s: float = 5.0


CALM: Final = WatchPatience((240, 300), 120.0, 2)
ALERT: Final = WatchPatience((20, 25), 30.0, 1)
"""For what must not be missed for long, also on a watch that stays open and delivers nothing: a request more each 20 s,
because the end of a short watch is its sign of life."""


class _Written(NamedTuple):
    """What this process wrote of an object: its version, and when, on the monotonic clock."""

    version: int
    at_s: float


def _number(version: str) -> int:
    """Return a resourceVersion as a number, by which those of one collection compare (KEP-5504); 0 if it is none."""
    return int(version) if version.isdecimal() else 0


class Informer(Generic[T]):
    """A typed cache of one collection, kept up to date by list and watch.

    Attributes:
        items: The cache, by `namespace/name`, or by `name` if cluster-scoped. Read only.
        synced: Set once the first list is complete.
        relists_total: Complete lists after the first.
        restarts_total: Watches opened after the first.
        decode_errors_total: Objects and lines skipped because they could not be decoded.
        last_event_monotonic_s: When data last arrived, bookmarks included; 0 if never.
    """

    def __init__(
        self,
        client: KubeClient,
        path: str,
        type_: type[T],
        *,
        name: str,
        label_selector: str = "",
        field_selector: str = "",
        keep: Callable[[Head], bool] | None = None,
        sign: bytes | None = None,
        slim: Callable[[T], T] | None = None,
        brief: bool = False,
        page_size: int = 100,
        patience: WatchPatience = CALM,
        lane: Lane = Lane.WORK,
    ) -> None:
        """Configure the informer; nothing is sent before `run`.

        Args:
            client: Sends the requests.
            path: The collection: `/api/v1/pods`.
            type_: A slim struct; fields that it does not declare are never decoded.
            name: For logs.
            label_selector: Applied by the server.
            field_selector: Applied by the server.
            keep: Decides by the head of an object; one that it rejects is neither decoded nor in `items`.
            sign: Bytes that only objects contain which `keep` accepts; spares decoding their heads.
            slim: Returns the part of an object to cache.
            brief: Watch only the metadata of large objects; lists still return all of them.
            page_size: Objects per page of a list; bounds the memory that a list takes.
            patience: How long a watch may last and be silent, and pauses after errors.
            lane: What its lists are for.
        """
        self.name = name
        self.synced = asyncio.Event()
        self.relists_total = self.restarts_total = self.decode_errors_total = 0
        self.last_event_monotonic_s = 0.0
        self._log = _log.bind(informer=name)
        self._store: CollectionStore[T] = CollectionStore(self._log)
        self.items: Mapping[str, T] = self._store.items
        self._client = client
        self._path = path
        self._decoder = CollectionDecoder(type_, keep, sign)
        self._slim: Callable[[T], T] = slim or (lambda item: item)
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selectors = {field: value for field, value in selectors.items() if value}
        self._brief = brief
        self._page_size = page_size
        self._patience = patience
        self._lane = lane
        self._version = ""  # where the watch goes on; empty: list first
        self._failures = 0  # in a row
        self._odd = 0  # watches in a row that were refused, or over at once with nothing said
        self._silences = 0  # watches in a row that were open and said nothing
        self._silenced = False  # whether that is why it lists again
        self._deaf = False  # whether that was so lately, or lists since have found changes, and no watch was heard
        self._watched_s = 0.0  # when a watch last delivered something, or the first list
        self._passed = 0  # the version that list and watch have reached; 0 if versions are no numbers
        self._written: dict[str, _Written] = {}  # what this process wrote and no watch has shown, by key

    @property
    def silent_s(self) -> float:
        """For how long its watches have said nothing, if that is longer than they ever are silent; else 0.

        What it shows may be younger: it lists again when a watch has fallen silent.
        """
        quiet_s = self._client.now() - self._watched_s if self._watched_s else 0.0
        return quiet_s if quiet_s > self._patience.silence_s + _JITTER_S_MAX else 0.0

    @property
    def age_s(self) -> float:
        """For how long it has heard nothing, by watch or list: what it shows may be that old."""
        return self._client.now() - self.last_event_monotonic_s if self.last_event_monotonic_s else 0.0

    @property
    def stale_s(self) -> float:
        """How old what it shows may be, if its watches are silent, or nothing was heard for long; else 0."""
        age_s = self.age_s
        return age_s if self.silent_s or age_s > self._patience.silence_s + _JITTER_S_MAX else 0.0

    @property
    def events_total(self) -> int:
        """Changes passed to handlers."""
        return self._store.events_total

    @property
    def handler_errors_total(self) -> int:
        """Exceptions that handlers raised."""
        return self._store.handler_errors_total

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler(old, new)` for every change, and at once for every object already cached.

        `(None, new)` is an addition, `(old, new)` a change, `(old, None)` a deletion, with `old` as last seen.
        It is called in the event loop after `items` has changed, and must not block. Its exceptions are logged.
        """
        self._store.add_handler(handler)

    def wrote(self, item: T) -> None:
        """Show an object of the collection that this process has just written or read, until a watch or list does.

        One that list and watch have passed already is not taken: it may be gone again.
        """
        version, key = _number(item.metadata.resource_version), key_of(item.metadata)
        known = self._written.get(key)
        if version <= max(self._passed, known.version if known is not None else 0) or not self._passed:
            return
        self._written[key] = _Written(version, self._client.now())
        self._store.put(self._slim(item))

    async def run(self) -> None:
        """List and watch until cancelled."""
        lists = watches = 0
        while True:
            try:
                if not self._version:
                    await (self._list_in_turn() if self._silenced else self._list())
                    self.relists_total = lists
                    lists += 1
                self.restarts_total = watches
                watches += 1
                wait_s = await self._watch()
            except OutsideError as error:
                wait_s = self._after(error)
            except Exception as error:  # noqa: BLE001 (after a bug of ours, too, the cache must catch up)
                self._log.exception("informer failed; lists again")
                self._version = ""
                wait_s = self._after(Unavailable(repr(error)))
            await asyncio.sleep(wait_s)

    def _after(self, error: OutsideError) -> float:
        """Decide where to resume after an error; return the seconds to wait before."""
        self._failures += 1
        wait_s = self._delay_s(self._failures, outage=isinstance(error, Unavailable))
        if isinstance(error, Gone):
            self._version = ""
            self._log.info("history is gone; lists again", error=str(error))
            return 0.0 if self._failures == 1 else wait_s
        if isinstance(error, Throttled):
            wait_s += error.after_s
        if error.status in _ODD_ANSWERS and self._version:
            self._count_odd()
        self._log.warning("cannot follow; tries again", error=str(error), failures=self._failures, wait_s=wait_s)
        return wait_s

    def _count_odd(self) -> bool:
        """Count a watch that brought nothing; return True if there were so many that the next step is a list."""
        self._odd += 1
        if self._odd < _ODD_MAX:
            return False
        self._version, self._odd = "", 0
        return True

    async def _list(self) -> None:
        """List everything and replace the cache by it.

        Raises:
            OutsideError: Any of its kinds; the cache is unchanged.
        """
        began_s = self._client.now()
        fresh: dict[str, T] = {}
        unread: set[str] = set()
        params = {**self._selectors, "limit": str(self._page_size)}
        while True:
            body = await self._client.get(self._path, params, timeout_s=self._patience.list_s, lane=self._lane)
            try:
                page = watch.page(body)
            except watch.UNDECODABLE as error:
                raise Unavailable(f"GET {self._path}: the response is not a list: {error}") from error
            for raw in page.items or ():
                self._read_item(raw, fresh, unread)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        listed = _number(page.metadata.resource_version)
        self._written = {
            key: each for key, each in self._written.items() if each.at_s > began_s and each.version > listed
        }
        self._store.replace(
            {key: item for key, item in fresh.items() if key not in self._written}, unread | {*self._written}
        )
        self._version, self._passed = page.metadata.resource_version, listed
        self.last_event_monotonic_s = self._client.now()
        self._watched_s = self._watched_s or self.last_event_monotonic_s
        self.synced.set()

    async def _list_in_turn(self) -> None:
        """List again, one informer of a client at a time: what has silenced one watch has often silenced all.

        Raises:
            OutsideError: As of `_list`.
        """
        await asyncio.sleep(self._client.dice() * min(_JITTER_S_MAX, self._silence_s / 10))
        told = self.events_total
        async with self._client.relisting:
            await self._list()
        # What another collection tells may follow from what this process does now, so that nothing new is no proof yet.
        self._silenced, self._deaf = False, not self._deaf or self.events_total > told

    def _read_item(self, raw: msgspec.Raw, fresh: dict[str, T], unread: set[str]) -> None:
        try:
            item = self._decoder.item(raw)
        except watch.UNDECODABLE as error:
            unread.add(self._skip(watch.head_in(raw).metadata, error))
            return
        if item is not None:
            fresh[key_of(item.metadata)] = self._slim(item)

    async def _watch(self) -> float:
        """Follow one watch to its end; return the seconds to wait before the next.

        Raises:
            OutsideError: The watch could not be opened, or reported an error.
        """
        params = {
            **self._selectors,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": self._watch_s(),
        }
        opened, silence_s = False, self._silence_s
        began_s, heard_s = self._client.now(), self.last_event_monotonic_s
        try:
            async with self._client.stream(self._path, params, inactivity_s=silence_s, brief=self._brief) as batches:
                opened = True
                async for lines in batches:
                    self.last_event_monotonic_s = self._watched_s = self._client.now()
                    for line in lines:
                        if line:
                            self._read_line(line)
                    self._failures = self._odd = self._silences = 0
                    self._deaf = False
        except Unavailable as error:
            unanswered = self._client.now() - began_s >= silence_s / 2
            if error.status or not (opened or unanswered):
                raise
            # One that is never answered is silent, too; what is refused at once is not. A silence may mean that the way
            # of a watch is dead, while other requests go on; or that our resourceVersion is in the future, as after a
            # restore of etcd: the API server then sends nothing until its versions have caught up.
            self._silences += 1
            if self._deaf or self._silences >= self._patience.silences:
                self._version, self._silences, self._silenced = "", 0, True
            self._log.info("the watch fell silent", error=str(error), lists_again=not self._version)
        if self.last_event_monotonic_s != heard_s or self._client.now() - began_s >= _BRIEF_S:
            return 0.0
        # Some servers signal only like this that they have compacted our version (kubernetes #137089).
        return self._delay_s(1) if self._count_odd() else 0.0

    @property
    def _silence_s(self) -> float:
        return self._patience.silence_s * (_DEAF_SHARE if self._deaf else 1)

    def _watch_s(self) -> str:
        """Return how long the server is to keep a watch open."""
        least, most = self._patience.watch_s
        return str(least + int(self._client.dice() * (most - least)))

    def _delay_s(self, failures: int, *, outage: bool = False) -> float:
        first_s, cap_s = self._patience.backoff_s
        cap_s = self._patience.outage_cap_s if outage else cap_s
        return delay_s(failures, first_s=first_s, cap_s=cap_s, dice=self._client.dice(), floor=_BACKOFF_FLOOR)

    def _read_line(self, line: bytes) -> None:
        """Apply one watch line to the cache.

        Raises:
            OutsideError: It is an ERROR event.
        """
        metadata: NamedMetadata
        try:
            kind = watch.kind_of(line)
            if kind in {"ADDED", "MODIFIED"}:
                found = self._decoder.event(line)
                metadata = found.metadata
                if self._is_old(metadata):
                    pass  # what this process has written since is shown
                elif isinstance(found, Head):
                    self._store.remove(metadata)
                else:
                    self._store.put(self._slim(found))
            elif kind == "ERROR":
                self._version = ""
                raise answers.error_event(watch.object_in(line), f"GET {self._path}")
            else:
                metadata = watch.head_of(line).metadata
                if kind == "DELETED":
                    self._is_old(metadata)
                    self._store.remove(metadata, metadata.uid)
        except watch.UNDECODABLE as error:
            metadata = watch.head_in(watch.object_in(line)).metadata
            self._skip(metadata, error)
        self._version = metadata.resource_version or self._version
        self._passed = _number(self._version)

    def _is_old(self, metadata: NamedMetadata) -> bool:
        """Return whether a watch shows an object as it was before this process wrote it; else forget that it did."""
        if not self._written:
            return False
        key = key_of(metadata)
        written = self._written.get(key)
        if written is None:
            return False
        if _number(metadata.resource_version) < written.version:
            return True
        del self._written[key]
        return False

    def _skip(self, metadata: NamedMetadata, error: Exception) -> str:
        """Count and log an object that cannot be decoded; return its key."""
        self.decode_errors_total += 1
        key = key_of(metadata)
        self._log.warning("an object cannot be decoded; its cached state is kept", key=key, error=str(error))
        return key
