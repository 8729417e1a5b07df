"""The cache of a collection, and the handlers of its changes."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic

from vkprovider.platform.kube.watch import Named, T

Handler = Callable[[T | None, T | None], None]
"""`(None, new)` is an addition, `(old, new)` a change, `(old, None)` a deletion, with `old` as last seen."""


def key_of(metadata: Named) -> str:
    """Return `namespace/name`, or `name` of a cluster-scoped object."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class Store(Generic[T]):
    """The cache of a collection.

    Attributes:
        items: By key. Read only.
        events_total: Changes passed to handlers.
        handler_errors_total: Exceptions that handlers raised.
    """

    def __init__(self, log: Any) -> None:
        self._items: dict[str, T] = {}
        self.items: Final[Mapping[str, T]] = self._items
        self.events_total = 0
        self.handler_errors_total = 0
        self._handlers: list[Handler[T]] = []
        self._log = log

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` for every object already cached, and for every change from now on."""
        self._handlers.append(handler)
        for item in list(self._items.values()):
            self._call(handler, None, item)

    def put(self, item: T) -> None:
        """Store an object; handlers are not called for a resourceVersion that is already cached."""
        key = key_of(item.metadata)
        old = self._items.get(key)
        self._items[key] = item
        if old is not None:
            if old.metadata.uid != item.metadata.uid:  # deleted and created again during a gap of the watch
                self._notify(old, None)
                old = None
            elif old.metadata.resource_version == item.metadata.resource_version:
                return
        self._notify(old, item)

    def remove(self, metadata: Named, uid: str = "") -> None:
        """Remove the object of that name; if `uid` is given, only if it has that UID."""
        key = key_of(metadata)
        old = self._items.get(key)
        if old is not None and (not uid or old.metadata.uid == uid):
            del self._items[key]
            self._notify(old, None)

    def replace(self, fresh: Mapping[str, T], unread: set[str]) -> None:
        """Replace the cache by a complete list; objects in `unread` could not be decoded and stay as they were."""
        for key in [key for key in self._items if key not in fresh and key not in unread]:
            self._notify(self._items.pop(key), None)
        for item in fresh.values():
            self.put(item)

    def _notify(self, old: T | None, new: T | None) -> None:
        self.events_total += 1
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler[T], old: T | None, new: T | None) -> None:
        try:
            handler(old, new)
        except Exception:  # noqa: BLE001 (one handler's bug must not keep changes from the others)
            self.handler_errors_total += 1
            item = new if new is not None else old
            self._log.exception("a handler failed", key=key_of(item.metadata) if item is not None else "")
