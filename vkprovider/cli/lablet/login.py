"""`kubectl lablet login`: the complete login URL of a learner's session, which no Pod shows."""

import asyncio
import os
import ssl
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import click
import msgspec

from tunnels.outgoing.proxies import ProxyUnsupportedError, proxy_of
from tunnels.outgoing.sessions import open_session
from vkprovider.api import names
from vkprovider.api.errors import OutsideError, shorten
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, find, named
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.kube.http import auth

_DEADLINE_S: Final = 15.0
_OK: Final = 200
_TOKEN_S: Final = 600
_PARTS: Final = 4
"""The parts of a ServiceAccount's user name: `system:serviceaccount:NAMESPACE:NAME`."""


class _Answer(msgspec.Struct, frozen=True):
    """The page's answer: the URL, or the reason for a refusal."""

    url: str = ""
    message: str = ""


class _MadeStatus(msgspec.Struct, frozen=True):
    token: str = ""


class _Made(msgspec.Struct, frozen=True):
    status: _MadeStatus = _MadeStatus()


def login(
    what: str | None,
    *,
    learner: str | None,
    url: str,
    token: str | None,
    service_account: str | None,
    cacert: str | None,
    place: Place,
) -> None:
    """Print the URL where the learner of POD logs in. It authenticates as the learner."""
    wanted = named(what, learner)
    base = _safe(url)

    async def work(kube: KubeClient, namespace: str) -> str:
        is_uid = wanted.kinds == "either" and UID.fullmatch(wanted.name)
        uid = wanted.name if is_uid else (await find(kube, namespace, wanted)).metadata.uid
        if token:
            authorization = f"Bearer {token}"
        elif account := await _account(kube, namespace, service_account):
            authorization = f"Bearer {await _token_of(kube, *account)}"
        else:
            authorization = await _authorization(place)
        return await _ask(f"{base}/labs/{uid}/login", authorization, cacert)

    click.echo(place.run(work))


def _safe(url: str) -> str:
    """Check that a token may be sent to a URL.

    Raises:
        UsageError: It is not a URL, or the token would be sent in plain text.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.UsageError(f"--url {url!r} is not a URL such as https://127.0.0.1:8082")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise click.UsageError(f"--url {url!r} would send the token in plain text; use https or a port-forward")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _account(kube: KubeClient, namespace: str, named: str | None) -> tuple[str, str] | None:
    """Return namespace and name of the ServiceAccount whose token is to be made; None if the user is not one."""
    if named:
        return namespace, named
    try:
        review = await Api(kube, namespace).review_self()
    except OutsideError:
        return None
    parts = review.status.user_info.username.split(":")
    return (parts[2], parts[3]) if parts[:2] == ["system", "serviceaccount"] and len(parts) == _PARTS else None


async def _token_of(kube: KubeClient, namespace: str, name: str) -> str:
    """Make a token of a ServiceAccount that only the page accepts.

    Raises:
        ClickException: The user may not.
    """
    spec = {"audiences": [names.GROUP], "expirationSeconds": _TOKEN_S}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    try:
        raw = await kube.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", msgspec.json.encode(body)
        )
    except OutsideError as error:
        raise click.ClickException(
            f"no token of serviceaccount {namespace}/{name} for the page: {error.message}; it takes the right to "
            "`create` `serviceaccounts/token`; or give a token with --token"
        ) from None
    return msgspec.json.decode(raw, type=_Made).status.token


async def _authorization(place: Place) -> str:
    """Return the kubeconfig's own token.

    Raises:
        ClickException: It has no token.
    """
    access = await auth.load(place.kubeconfig, place.context)
    found = await access.renew() if access.renew is not None else access.authorization
    if not found:
        raise click.ClickException(
            "the kubeconfig has no token, only a certificate; name a --service-account, or give a --token"
        )
    return found


async def _ask(url: str, authorization: str, cacert: str | None) -> str:
    verified = not _is_loopback(urlsplit(url).hostname or "")
    tls: Any = ssl.create_default_context(cafile=cacert) if cacert else verified
    try:
        async with (
            asyncio.timeout(_DEADLINE_S),
            open_session(aiohttp.TCPConnector()) as session,
            session.get(
                url,
                headers={"Authorization": authorization},
                ssl=tls,
                proxy=proxy_of(url, os.environ),
                allow_redirects=False,
            ) as response,
        ):
            status, body = response.status, await response.read()
    except (aiohttp.ClientError, ProxyUnsupportedError, OSError) as error:
        raise click.ClickException(
            f"{url} cannot be asked: {str(error) or type(error).__name__}; check --url, or make a way "
            "there: kubectl -n vkprovider-system port-forward svc/vkprovider 8082"
        ) from None
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        answer = _Answer(message=shorten(body.decode(errors="replace")))
    if status != _OK or not answer.url:
        raise click.ClickException(f"{answer.message or 'no URL in the answer'} ({url} answered {status})")
    return answer.url
