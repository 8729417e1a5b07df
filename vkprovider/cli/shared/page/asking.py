"""Ask the provider's page: log in, send requests.

Who asks has rights in a namespace, and none where the provider is.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import aiohttp
import click
import msgspec

from tunnels.outgoing import open_session
from vkprovider.classroom.providerpage import PageClient, PageRefusalError, PageSilenceError
from vkprovider.cli.shared.page.address import FORWARD, PageUnknown, find, is_verified, safe
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.refusals import NO_CLASS, advised
from vkprovider.doctor.rights import grant_command
from vkprovider.platform import wellknown
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth

T = TypeVar("T")
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_TOKEN_S: Final = 600
_PARTS: Final = 4
"""The parts of a ServiceAccount's user name: `system:serviceaccount:NAMESPACE:NAME`."""


class PageRefused(click.ClickException):
    """The page refused, or did not answer.

    Attributes:
        reason: The kind of refusal, such as `NoSession`; "" if it did not answer.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class _MadeStatus(msgspec.Struct, frozen=True):
    token: str = ""


class _Made(msgspec.Struct, frozen=True):
    status: _MadeStatus = _MadeStatus()


@dataclass(frozen=True, slots=True)
class ProviderPage:
    """The page, as one user asks it, who reads why it refuses and what would help."""

    client: PageClient
    _hint: str = ""
    _grant: str = ""
    _forward: str = FORWARD

    async def get(self, path: str, type_: type[T], params: Mapping[str, str] | None = None) -> T:
        """Ask for a path, and decode the answer.

        Raises:
            PageRefused: The page refused, or did not answer.
        """
        return await self._ask("GET", path, type_, params)

    async def find(self, path: str, type_: type[T], absent: str) -> T | None:
        """Ask for a path, and decode the answer; None if the page refuses with the reason `absent`.

        Raises:
            PageRefused: The page refused for another reason, or did not answer.
        """
        try:
            return await self.get(path, type_)
        except PageRefused as refusal:
            if refusal.reason != absent:
                raise
            return None

    async def post(self, path: str, type_: type[T]) -> T:
        """Send a request without a body, and decode the answer.

        Raises:
            PageRefused: The page refused, or did not answer.
        """
        return await self._ask("POST", path, type_, None)

    async def _ask(self, method: str, path: str, type_: type[T], params: Mapping[str, str] | None) -> T:
        url = self.client.base + path
        try:
            return await self.client.ask(method, path, type_, params)
        except PageSilenceError as error:
            why = str(error)
            if isinstance(error.__cause__, aiohttp.ClientConnectorCertificateError):
                why = f"{why}; for a CA of your own use --cacert"
            raise PageRefused(f"{url} cannot be asked: {why}; check --url; {self._forward}") from None
        except PageRefusalError as error:
            hint = {_UNAUTHORIZED: self._hint, _FORBIDDEN: self._grant}.get(error.status, "")
            raise PageRefused(f"{error} ({url} answered {error.status}){hint}", error.reason) from None


@asynccontextmanager
async def open_page(
    kube: KubeClient, namespace: str, place: Place, options: PageOptions
) -> AsyncIterator[ProviderPage]:
    """Find the page and log in.

    Args:
        kube: The API server.
        namespace: Of the ServiceAccount that the options name.
        place: Whose credentials count.
        options: What is known.

    Raises:
        UsageError: The URL is not one, or the token would be sent in plain text.
        PageUnknown: Nothing says where the page is, or there is no token for it.
    """
    base = safe(options.url) if options.url else await find(kube, namespace)
    authorization, hint = await _login(kube, namespace, place, options)
    tls = trust(base, options.cacert, given=bool(options.url))
    async with open_session(aiohttp.TCPConnector()) as session:
        grant = f"; or, for all that a class takes: {grant_command('USER', namespace)}"
        if namespace == wellknown.DEFAULT_NAMESPACE:
            grant = f"; {NO_CLASS}"
        yield ProviderPage(PageClient(base, authorization, tls, session), hint, grant)


def trust(base: str, cacert: str, *, given: bool) -> Any:
    """Return how the certificate of a URL is verified, as aiohttp takes it.

    Args:
        base: The URL.
        cacert: A file with the CA of the user; "" for the system's.
        given: Whether the user names the URL: see `is_verified`.

    Raises:
        UsageError: The file holds no certificate, or cannot be read.
    """
    if not cacert:
        return is_verified(base, given=given)
    try:
        return ssl.create_default_context(cafile=cacert)
    except ssl.SSLError:
        raise click.UsageError(f"--cacert {cacert} holds no certificate; name a file with the CA's, as PEM") from None
    except OSError as error:
        raise click.UsageError(f"--cacert {cacert} cannot be read: {error.strerror}") from None


async def _login(kube: KubeClient, namespace: str, place: Place, options: PageOptions) -> tuple[str, str]:
    """Return the header that authenticates the user, and what would help if the page does not accept it.

    Raises:
        PageUnknown: There is no token.
    """
    if options.token:
        return f"Bearer {options.token}", ""
    if options.service_account:
        return f"Bearer {await _token_of(kube, namespace, options.service_account)}", ""
    if (account := await _account(kube)) is not None:
        try:
            return f"Bearer {await _token_of(kube, *account)}", ""
        except PageUnknown as error:
            if not (own := await own_authorization(place)):
                raise
            return own, f"; there is {error.message}"
    if not (own := await own_authorization(place)):
        raise PageUnknown(
            "the kubeconfig has no token, only a certificate, and the page asks for a token: name a ServiceAccount of "
            f"namespace {namespace} that has the role there with --service-account, or give a --token"
        )
    return own, "; or name a ServiceAccount of the namespace that has the role there with --service-account"


async def _account(kube: KubeClient) -> tuple[str, str] | None:
    """Return namespace and name of the ServiceAccount that the user is; None if the user is not one."""
    try:
        review = await Api(kube, "").review_self()
    except OutsideError:
        return None
    parts = review.status.user_info.username.split(":")
    return (parts[2], parts[3]) if parts[:2] == ["system", "serviceaccount"] and len(parts) == _PARTS else None


async def _token_of(kube: KubeClient, namespace: str, name: str) -> str:
    """Make a token of a ServiceAccount that only the page accepts.

    Raises:
        PageUnknown: The user may not.
    """
    spec = {"audiences": [wellknown.GROUP], "expirationSeconds": _TOKEN_S}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    try:
        raw = await kube.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", msgspec.json.encode(body)
        )
    except OutsideError as error:
        raise PageUnknown(
            f"no token of serviceaccount {namespace}/{name} for the page: {advised(error, namespace)}; or give a token "
            "with --token"
        ) from None
    return msgspec.json.decode(raw, type=_Made).status.token


async def own_authorization(place: Place) -> str:
    """Return the header with the kubeconfig's own token; "" if it has none."""
    access = await auth.load(place.kubeconfig, place.context)
    return await access.renew() if access.renew is not None else access.authorization
