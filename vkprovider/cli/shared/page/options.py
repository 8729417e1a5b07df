"""The options of commands that ask the page: @page_options  --url, --token, …  → page=PageOptions(…)."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from vkprovider.cli.shared.options import wrapped

Command = Callable[..., Any]


class PageOptions(NamedTuple):
    """Where the page is, and as whom it is asked; what is empty is found out.

    Attributes:
        url: Of the page.
        token: That is sent.
        service_account: Of the namespace, for which a token is made.
        cacert: A file with the CA of the page's certificate.
    """

    url: str = ""
    token: str = ""
    service_account: str = ""
    cacert: str = ""


_SCHEME: Final = "bearer "


def bare(token: str) -> str:
    """Return a token without what is copied along with it: blanks, line breaks and the word `Bearer`.

    Raises:
        UsageError: It has blanks within.
    """
    found = token.strip()
    if found.lower().startswith(_SCHEME):
        found = found[len(_SCHEME) :].strip()
    if len(found.split()) > 1:
        raise click.UsageError("--token has blanks or line breaks within, which no token has; copy it again")
    return found


def page_options(command: Command) -> Command:
    """Add the options, and pass them as `page`."""

    def with_page(
        *args: Any,
        url: str | None,
        token: str | None,
        service_account: str | None,
        cacert: str | None,
        **options: Any,
    ) -> Any:
        page = PageOptions(url or "", bare(token or ""), service_account or "", cacert or "")
        return command(*args, page=page, **options)

    found = wrapped(with_page, command)
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


_OPTIONS = (
    click.option(
        "--url",
        envvar="VKPROVIDER_URL",
        metavar="URL",
        help="URL of the provider's page (default: VKPROVIDER_URL, else the one that an admin has granted to the "
        "namespace).",
    ),
    click.option(
        "--token",
        envvar="VKPROVIDER_TOKEN",
        metavar="TOKEN",
        help="Token for the page, as of `kubectl create token NAME --audience vkprovider.io` (default: "
        "VKPROVIDER_TOKEN, which other users of this machine cannot see).",
    ),
    click.option(
        "--service-account",
        envvar="VKPROVIDER_SERVICE_ACCOUNT",
        metavar="NAME",
        help="ServiceAccount of the namespace for which a token is made, for ten minutes and for the page alone "
        "(default: VKPROVIDER_SERVICE_ACCOUNT, else the kubeconfig's own, if it is of a ServiceAccount; else the "
        "kubeconfig's token is sent).",
    ),
    click.option(
        "--cacert",
        envvar="VKPROVIDER_CACERT",
        metavar="PATH",
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file of the CA of the page's certificate (default: VKPROVIDER_CACERT, else the system's CAs).",
    ),
)
