"""`kubectl lablet login`: the complete login URL of a learner's session, which no Pod shows."""

import ssl
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import click
import msgspec

from vkprovider.api.errors import shorten
from vkprovider.cli.lablet_pods import UID, Place, place_options, pod_name, read
from vkprovider.kube import auth
from vkprovider.kube.client import KubeClient

_DEADLINE_S: Final = 15.0
_OK: Final = 200


class _Answer(msgspec.Struct, frozen=True):
    """The page's answer: the URL, or the reason for a refusal."""

    url: str = ""
    message: str = ""


@click.command(epilog="Example: kubectl lablet login mylab-0 --url http://127.0.0.1:8082")
@click.argument("what", metavar="POD|UID")
@click.option(
    "--url",
    required=True,
    envvar="VKPROVIDER_URL",
    metavar="URL",
    help="URL of the provider's page (default: VKPROVIDER_URL).",
)
@click.option(
    "--token",
    envvar="VKPROVIDER_TOKEN",
    metavar="TOKEN",
    help="Token of the cluster, such as of `kubectl create token` (default: VKPROVIDER_TOKEN, else the kubeconfig's).",
)
@click.option(
    "--cacert", metavar="PATH", type=click.Path(exists=True, dir_okay=False), help="PEM file of a trusted CA."
)
@place_options
def login(what: str, *, url: str, token: str | None, cacert: str | None, place: Place) -> None:
    """Print the URL where the learner of POD logs in. It authenticates as the learner.

    It needs the right to `get` `lablets/login`, as in the ClusterRole vkprovider-login; reading Pods is not enough.
    The page is reached by an Ingress, or by `kubectl -n vkprovider-system port-forward svc/vkprovider 8082`.
    """
    name = what if UID.fullmatch(what) else pod_name(what)
    base = _safe(url)

    async def work(kube: KubeClient, namespace: str) -> str:
        uid = name if UID.fullmatch(name) else (await read(kube, namespace, name)).metadata.uid
        authorization = f"Bearer {token}" if token else await _authorization(place)
        return await _ask(f"{base}/labs/{uid}/login", authorization, cacert)

    click.echo(place.run(work))


def _safe(url: str) -> str:
    """Check that a token may be sent to a URL.

    Raises:
        UsageError: It is not a URL, or the token would be sent in plain text.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.UsageError(f"--url {url!r} is not a URL such as http://127.0.0.1:8082")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise click.UsageError(f"--url {url!r} would send the token in plain text; use https or a port-forward")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _authorization(place: Place) -> str:
    """Return the kubeconfig's own token.

    Raises:
        ClickException: It has no token.
    """
    access = await auth.load(place.kubeconfig, place.context)
    found = await access.renew() if access.renew is not None else access.authorization
    if not found:
        raise click.ClickException("the kubeconfig has no token, only a certificate; give one with --token")
    return found


async def _ask(url: str, authorization: str, cacert: str | None) -> str:
    tls: Any = ssl.create_default_context(cafile=cacert) if cacert else True
    timeout = aiohttp.ClientTimeout(total=_DEADLINE_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, headers={"Authorization": authorization}, ssl=tls, allow_redirects=False) as response,
        ):
            status, body = response.status, await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise click.ClickException(f"{url} cannot be asked: {str(error) or type(error).__name__}") from None
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        answer = _Answer(message=shorten(body.decode(errors="replace")))
    if status != _OK or not answer.url:
        raise click.ClickException(f"{answer.message or 'no URL in the answer'} ({url} answered {status})")
    return answer.url
