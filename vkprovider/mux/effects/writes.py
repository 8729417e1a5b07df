"""Every write for muxes: guarded by the epoch of the mux, and only logged in a dry run.

What was written is seen by the watch a moment later. A pass in between would write it again; so a write is remembered
until the watch shows a change of its object.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from vkprovider.platform.errors import shorten
from vkprovider.platform.kube.store import key_of
from vkprovider.platform.objects import Metadata

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
        self._logged: dict[str, bytes] = {}
        self.total = 0

    async def send(self, what: str, wanted: object, call: Callable[[], Awaitable[object]]) -> None:
        """Carry out a write.

        Args:
            what: Verb and object, for the log of a dry run.
            wanted: What is written, for the same.
            call: Called here to write, unless this is a dry run.

        Raises:
            Fenced: This replica no longer serves the mux.
            OutsideError: The API server refused or did not answer.
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

        Raises:
            Fenced: This replica no longer serves the mux.
            OutsideError: The API server refused or did not answer.
        """
        mark = (seen.resource_version if seen is not None else "", msgspec.json.encode(wanted, order="sorted"))
        if self._sent.get(name, {}).get(what) == mark:
            return
        await self.send(f"{what} {name}", wanted, call)
        self._sent.setdefault(name, {})[what] = mark

    def seen(self, old: Any, new: Any) -> None:
        """Note that the watch shows a change of an object: what is remembered about it may be out of date."""
        self._sent.pop(key_of((new or old).metadata), None)
