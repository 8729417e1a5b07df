"""What learners of a class have left, and what a visitor has saved: the provider's page is asked as the visitor."""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import structlog

from tunnels.outgoing import open_session
from vkprovider.classroom.archives import PageArchives
from vkprovider.classroom.providerpage import PageClient, PageOversizedError, PageRefusalError, PageSilenceError
from vkprovider.lablet.archives import ArchiveEntry
from vkprovider.platform.rereading import Reread
from vkprovider.portal.pure.form import FormOffer, saved_offer
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.settings import PortalSettings

T = TypeVar("T")
_log: Final = structlog.get_logger(__name__)
_URL: Final = "VKPROVIDER_PORTAL_PROVIDER_URL"
_CA_FILE: Final = "VKPROVIDER_PORTAL_PROVIDER_CA_FILE"
_MIB: Final = 2**20
_BYTES_MAX: Final = 10 * _MIB
"""The longest answer: a replica has a few in memory, as it has of the archives of single labs."""
_UNSET: Final = (
    "What learners of lablets that are gone have left is not shown here: an administrator names the address of the "
    f"provider's page in {_URL}."
)
_FROM_INGRESS: Final = (
    "What learners of lablets that are gone have left takes a token of yours, and the ingress in front of the portal "
    "sends none: kubectl lablet configs --all and kubectl lablet list --past show it."
)


_OWN_S: Final = 5.0
"""The longest wait of a visitor for what only adds to a form."""
_OVERSIZED: Final = (
    f"What was left is more than the {_BYTES_MAX // _MIB} MiB that the portal reads at once; "
    "kubectl lablet configs has all of it."
)


class LeftUnknownError(Exception):
    """What learners have left is not known; the text is a sentence for an instructor.

    Attributes:
        silent: Whether the page did not answer, so that it need not be asked for the next learner.
    """

    def __init__(self, words: str, *, silent: bool = False) -> None:
        super().__init__(words)
        self.silent: Final = silent


@dataclass(frozen=True, slots=True)
class VisitorPage:
    """The provider's page, as a visitor of the portal asks it; each method raises `LeftUnknownError`."""

    client: PageClient

    async def get(self, path: str, type_: type[T], params: Mapping[str, str] | None = None) -> T:
        """See `ArchivePage.get`."""
        try:
            return await self.client.ask("GET", path, type_, params)
        except PageRefusalError as refusal:
            raise LeftUnknownError(_refusal(refusal)) from refusal
        except PageOversizedError as error:
            raise LeftUnknownError(_OVERSIZED) from error
        except PageSilenceError as error:
            raise LeftUnknownError(self._silence(error), silent=True) from error

    async def find(self, path: str, type_: type[T], absent: str) -> T | None:
        """See `ArchivePage.find`."""
        try:
            return await self.get(path, type_)
        except LeftUnknownError as error:
            if isinstance(error.__cause__, PageRefusalError) and error.__cause__.reason == absent:
                return None
            raise

    def _silence(self, error: PageSilenceError) -> str:
        cause = error.__cause__
        if isinstance(cause, aiohttp.ClientConnectorCertificateError):
            return (
                f"The provider's page at {self.client.base} has a certificate that the portal does not trust: an "
                f"administrator names its CA in {_CA_FILE}."
            )
        why = f"no answer within {self.client.within_s:g} s" if isinstance(cause, TimeoutError) else str(error)
        if isinstance(cause, aiohttp.ClientPayloadError):
            why = "its answer breaks off"
        return f"The provider's page at {self.client.base} cannot be asked: {why.rstrip('.')}; try again later."


def _refusal(refusal: PageRefusalError) -> str:
    """Return in a sentence why the page refuses, and what helps."""
    words = str(refusal).rstrip(".")
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        return (
            f"The provider's page does not accept your login: {words}; an administrator adds the audience of the API "
            "server to VKPROVIDER_HTTP_AUDIENCES of the provider."
        )
    if refusal.status == HTTPStatus.FORBIDDEN:
        return f"You may not see what learners of this class have left: {words}."
    return f"The provider's page does not say what learners have left: {words}."


class _Own(msgspec.Struct, frozen=True):
    items: list[ArchiveEntry]


@dataclass(frozen=True, slots=True)
class LeftWork:
    """Where what learners have left is asked.

    Attributes:
        url: Of the provider's page; "" if none is set.
        tls: Returns how its certificate is verified, as aiohttp takes it.
        within_s: How long an answer may take.
    """

    url: str
    tls: Callable[[], Any]
    within_s: float

    @asynccontextmanager
    async def open(self, token: str, namespace: str) -> AsyncIterator[PageArchives]:
        """Yield what learners of a class have left, as the owner of a token may see it.

        Its methods raise `LeftUnknownError`.

        Raises:
            LeftUnknownError: It cannot be asked for.
        """
        async with self._page(token, self.within_s) as page:
            yield PageArchives(page, namespace)

    async def own(self, token: str) -> list[ArchiveEntry]:
        """List what the owner of a token has saved of user labs, the newest first.

        Raises:
            LeftUnknownError: It cannot be asked for, or the page does not say.
        """
        async with self._page(token, min(self.within_s, _OWN_S)) as page:
            return (await page.get("/archives", _Own)).items

    async def offered(self, offer: FormOffer, menu: Menu, index: UserLabIndex, token: str) -> FormOffer:
        """Add to what a form offers what the owner of a token has saved, where that can be asked."""
        if not (self.url and token and offer.images):
            return offer
        try:
            found = await self.own(token)
        except LeftUnknownError as error:
            _log.warning("what a user has saved is not known", error=str(error))
            return offer._replace(saved_unknown=True)
        names = {lab.definition for image in menu.listed for lab in image.sizes.values()}
        present = {
            name: [each.label for each in index.status_of(name).devices if each.hidden is not True] for name in names
        }
        return offer._replace(saved=saved_offer(found, names, present))

    @asynccontextmanager
    async def _page(self, token: str, within_s: float) -> AsyncIterator[VisitorPage]:
        """Yield the page as the owner of a token asks it."""
        if not self.url:
            raise LeftUnknownError(_UNSET)
        if not token:
            raise LeftUnknownError(_FROM_INGRESS)
        async with open_session(aiohttp.TCPConnector()) as session:
            client = PageClient(self.url, f"Bearer {token}", self.tls(), session, within_s, _BYTES_MAX)
            yield VisitorPage(client)


def left_work(settings: PortalSettings) -> LeftWork:
    """Return where what learners have left is asked.

    Raises:
        InputError: The file of certificate authorities cannot be used.
    """
    file = settings.provider_ca_file
    reread = Reread([file], lambda: ssl.create_default_context(cafile=file), before=ssl.create_default_context)
    return LeftWork(settings.provider_url, reread.current, settings.page_s)
