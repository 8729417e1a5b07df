"""Content packages on their way: downloaded and unpacked beside the definitions, so that a slow store holds none up.

A definition wants a package; the queue gets it; the definition is looked at again and finds it here. What a package is
worth is decided there. A store that does not answer is asked again after a back-off, a refused package is not.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.api.errors import Forbidden, InputError, NotFound, OutsideError, Unauthorized
from vkprovider.content.spi import ContentStore, PackageName
from vkprovider.domain.definition import package as packages
from vkprovider.domain.definition.package import Package, PackageLimits
from vkprovider.kube.queue import KeyedQueue, Result

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Want:
    """A package that a definition asked for; another request, source or generation is another want.

    Attributes:
        version: Of the content, if neither package nor store name one.
    """

    uid: str
    generation: int
    request: str
    source: str
    name: PackageName
    version: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of a want so far.

    Attributes:
        package: None unless it is here.
        fault: Why it is not.
        final: Whether asking again is useless.
    """

    package: Package | None = None
    fault: InputError | None = None
    final: bool = False


class Packages:
    """The packages that definitions wait for."""

    def __init__(
        self, store: ContentStore, limits: PackageLimits, queue: KeyedQueue[str], arrived: Callable[[str], None]
    ) -> None:
        """Create an empty collection.

        Args:
            store: Where packages are.
            limits: How large they may be.
            queue: Of definitions whose package is to be fetched, by name.
            arrived: Called with the definition's name when there is news of its package.
        """
        self._store = store
        self._limits = limits
        self._arrived = arrived
        self._wants: dict[str, Want] = {}
        self._found: dict[str, Fetched] = {}
        self._queue = queue

    def locate(self, want: Want) -> str:
        """Give the full name of a package, for people."""
        return self._store.locate(want.name)

    def get(self, definition: str, want: Want) -> Fetched:
        """Give what is known of a package; it is on its way from now on."""
        if self._wants.get(definition) != want:
            self._wants[definition] = want
            self._found.pop(definition, None)
            self._queue.forget(definition)  # with the back-off of an earlier want
            self._queue.add(definition)
        return self._found.get(definition, Fetched())

    def forget(self, definition: str) -> None:
        """Wait for it no longer."""
        if self._wants.pop(definition, None) is not None:
            self._found.pop(definition, None)
            self._queue.forget(definition)

    async def fetch(self, definition: str) -> Result:
        """Get one package.

        Raises:
            OutsideError: The store did not answer; the queue tries again.
        """
        want = self._wants.get(definition)
        if want is None or self._found.get(definition, Fetched()).final:
            return Result()
        unanswered: OutsideError | None = None
        try:
            found = Fetched(package=await self._get(want), final=True)
        except InputError as error:
            found = Fetched(fault=error, final=True)
        except NotFound as error:
            found = Fetched(fault=InputError("PackageNotFound", error.message), final=True)
        except (Forbidden, Unauthorized) as error:
            found = Fetched(fault=InputError("PackageForbidden", error.message), final=True)
        except OutsideError as error:
            found, unanswered = Fetched(fault=InputError("ContentStoreUnavailable", error.message)), error
        if self._wants.get(definition) == want:
            self._found[definition] = found
            self._arrived(definition)
            if unanswered is not None:
                raise unanswered
        return Result()

    async def _get(self, want: Want) -> Package:
        stored = await self._store.get(want.name, bytes_max=self._limits.package_bytes)
        _log.info("package is here", package=self.locate(want), size_bytes=len(stored.data))
        return await asyncio.to_thread(packages.read, stored.data, self._limits, version=stored.version or want.version)
