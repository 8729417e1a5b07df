"""Downloads of content packages, apart from the reconciler; new content → the Lab Delivery System.

Nothing waits until the Lab Delivery System has new content: the content stored in the cluster stays authoritative. A
deployment that fails is only logged.

A definition asks for a package; the queue downloads and unpacks it; the definition is reconciled again and finds it
here. A store that does not answer is asked again after a back-off; a refused package is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.content.spi import ContentStore, PackageName, Parser
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import Forbidden, InputError, NotFound, OutsideError, Unauthorized
from vkprovider.platform.kube.queue import KeyedQueue, Result

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LdsContent:
    """Notifies LDS deployments of forms whose content changed.

    Attributes:
        deployments: None if no LDS is configured, or none is to be asked; nothing is queued then.
        queue: Of forms, by qualified name.
    """

    deployments: Deployments | None
    queue: KeyedQueue[str]

    def changed(self, form: str) -> None:
        """Queue a form, by its qualified name."""
        if self.deployments is not None:
            self.queue.add(form)

    async def refresh(self, form: str) -> Result:
        """Ask every deployment to fetch one form again."""
        if self.deployments is not None:
            for deployment, answer in (await self.deployments.refresh_content(form)).items():
                if isinstance(answer, OutsideError):
                    _log.warning("lds did not refresh", deployment=deployment, form=form, error=str(answer))
                else:
                    _log.info("lds refreshed", deployment=deployment, form=form, version=answer.version)
        return Result()


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """A package that a definition asks for; another request, source or generation makes it another want.

    Attributes:
        request: The refresh request, as annotated.
        source: The fingerprint of the source.
        version: Of the content, if neither package nor store names one.
    """

    uid: str
    generation: int
    request: str
    source: str
    name: PackageName
    version: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The state of a want.

    Attributes:
        package: None until it was read.
        fault: Why it could not be read.
        final: Whether nothing will change without another want.
    """

    package: Package | None = None
    fault: InputError | None = None
    final: bool = False


class Packages:
    """The packages that definitions wait for, by the definition's name."""

    def __init__(
        self,
        store: ContentStore,
        parser: Parser,
        limits: PackageSettings,
        queue: KeyedQueue[str],
        arrived: Callable[[str], None],
    ) -> None:
        """Create an empty collection.

        Args:
            store: Where packages are.
            parser: Unpacks them.
            limits: How large they may be.
            queue: Of definitions whose package is to be fetched, by name.
            arrived: Called with the definition's name when the state of its want has changed.
        """
        self._store = store
        self._parser = parser
        self._limits = limits
        self._arrived = arrived
        self._wants: dict[str, PackageRequest] = {}
        self._found: dict[str, Fetched] = {}
        self._queue = queue

    def locate(self, want: PackageRequest) -> str:
        """Return the full name of a package, for messages."""
        return self._store.locate(want.name)

    def get(self, definition: str, want: PackageRequest) -> Fetched:
        """Return the state of a want; queue it if it is new."""
        if self._wants.get(definition) != want:
            self._wants[definition] = want
            self._found.pop(definition, None)
            self._queue.forget(definition)  # and the back-off of an earlier want
            self._queue.add(definition)
        return self._found.get(definition, Fetched())

    def forget(self, definition: str) -> None:
        """Drop the want of a definition."""
        if self._wants.pop(definition, None) is not None:
            self._found.pop(definition, None)
            self._queue.forget(definition)

    async def fetch(self, definition: str) -> Result:
        """Read one package.

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
            found = Fetched(fault=InputError(DefinitionReason.PACKAGE_NOT_FOUND, error.message), final=True)
        except (Forbidden, Unauthorized) as error:
            found = Fetched(fault=InputError(DefinitionReason.PACKAGE_FORBIDDEN, error.message), final=True)
        except OutsideError as error:
            fault = InputError(DefinitionReason.CONTENT_STORE_UNAVAILABLE, error.message)
            found, unanswered = Fetched(fault=fault), error
        if self._wants.get(definition) == want:
            self._found[definition] = found
            self._arrived(definition)
            if unanswered is not None:
                raise unanswered
        return Result()

    async def _get(self, want: PackageRequest) -> Package:
        stored = await self._store.get(want.name, bytes_max=self._limits.package_bytes_max)
        _log.info("package is here", package=self.locate(want), size_bytes=len(stored.data))
        return await self._parser.package(stored.data, self._limits, stored.version or want.version)
