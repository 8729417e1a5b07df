"""Where the provider's page is, as somebody says who may: options, or what a class was told.

A token is sent to that address. So the status of a CMLWorker, which the provider writes, is a hint for people and no
more.
"""

import shlex
from typing import Final
from urllib.parse import urlsplit

import click

from vkprovider.cli.shared.refusals import NO_CLASS, advised
from vkprovider.doctor.rights import INSTRUCTOR, grant_command
from vkprovider.lablet import names
from vkprovider.lablet.models.status import worker_status
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.platform.objects import RoleBinding
from vkprovider.platform.settings import is_loopback

FORWARD: Final = (
    "an admin reaches it by `kubectl -n vkprovider-system port-forward svc/vkprovider 8082` with "
    "--url https://127.0.0.1:8082"
)
_WORKERS: Final = 50


class PageUnknown(click.ClickException):
    """Nothing says where the page is, or as whom to ask it."""


_BINDINGS: Final = kind("/apis/rbac.authorization.k8s.io/v1", "rolebindings", RoleBinding)


def safe(url: str, source: str = "--url") -> str:
    """Check that a token may be sent to a URL.

    Args:
        url: The URL.
        source: What names it.

    Raises:
        UsageError: It is not a URL, or the token would be sent in plain text.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are not of an IPv6 address
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isprintable():
        raise click.UsageError(f"{source} {url!r} is not a URL such as https://127.0.0.1:8082")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise click.UsageError(f"{source} {url!r} would send the token in plain text; use https or a port-forward")
    return url.rstrip("/")


def is_verified(url: str, *, given: bool) -> bool:
    """Return whether the certificate of a URL is verified without a CA of the user.

    Args:
        url: The URL.
        given: Whether the user names it, as that of a port-forward, which the API server leads to the Pod.
    """
    return not (given and is_loopback(urlsplit(url).hostname or ""))


def anchored(binding: RoleBinding | None, note: str = names.ANNOTATION_PAGE_URL) -> str:
    """Return what an admin has written on the RoleBinding of a class, the address of the page; "" if it is not there.

    The API server lets only those change a binding who may give its role. Of another role, an admin of the namespace
    may have made it, who does not have the rights of an instructor.
    """
    if binding is None or not binding.binds(INSTRUCTOR):
        return ""
    return binding.metadata.annotations.get(note, "")


async def granted(kube: KubeClient, namespace: str) -> str:
    """Return the address that an admin has named to the class of a namespace; "" if none has."""
    return anchored(await Resource(kube, _BINDINGS, namespace).get(INSTRUCTOR))


async def granted_image(kube: KubeClient, namespace: str) -> str:
    """Return the image of the installation that an admin has named to the class of a namespace; "" if none has."""
    return anchored(await Resource(kube, _BINDINGS, namespace).get(INSTRUCTOR), names.ANNOTATION_IMAGE)


async def shown(kube: KubeClient) -> str:
    """Return the address that the CMLWorkers show; "" if none does."""
    async for workers in Api(kube, "").workers.pages(page_size=_WORKERS):
        for worker in workers:
            if (url := worker_status(worker).page_url) and url.isprintable():
                return url
    return ""


async def find(kube: KubeClient, namespace: str) -> str:
    """Return the address that an admin has named to the class of a namespace.

    Raises:
        PageUnknown: None has, or the user may not read it.
    """
    try:
        if url := await granted(kube, namespace):
            return safe(url, f"the address on rolebinding/{INSTRUCTOR} of namespace {namespace}")
        advice = f"an admin names it to namespace {namespace}: {grant_command('USER', namespace)}"
        if namespace == wellknown.DEFAULT_NAMESPACE:
            advice = NO_CLASS
    except Forbidden as error:
        advice = advised(error, namespace)
    try:
        url = await shown(kube)
    except Forbidden:
        hint = "name it with --url or VKPROVIDER_URL"
    else:
        hint = (
            f"the CMLWorkers show an address, which only you can trust: VKPROVIDER_URL={shlex.quote(url)}"
            if url
            else "no CMLWorker shows one, because an admin has not set VKPROVIDER_PAGE_URL; name it with --url or "
            "VKPROVIDER_URL"
        )
    raise PageUnknown(f"the address of the provider's page is not known: {advice}; {hint}; {FORWARD}")
