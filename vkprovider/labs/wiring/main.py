"""The process of one replica of the provider: its page, and what is open as long as it runs."""

import ssl
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import structlog

from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.lds.config import takes_part
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.settings.services import plain_text
from vkprovider.labs.wiring.parts.labs import NO_LABS
from vkprovider.labs.wiring.provider import provider
from vkprovider.labs.wiring.tunnels import agent_tokens
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.kube.client import user_agent
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.replica import run
from vkprovider.platform.runtime.context import PROVIDER, Context
from vkprovider.platform.runtime.process import Process

_log: Final = structlog.get_logger(__name__)


def page_of(settings: Settings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    return Page(
        settings.http,
        settings.replica.instance_id,
        tls=_tls(settings),
        starting={**NO_LABS, "owned_nodes": []},
    )


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the context of the page; None if it is plain HTTP.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    own = ["localhost", "127.0.0.1", f"vkprovider.{settings.replica.namespace}.svc", settings.kubelet.internal_ip]
    client_ca = settings.http_tunnel.client_ca_file
    tls = page_tls(settings.http, filter(None, own), client_ca=client_ca)
    if tls is None and client_ca is not None:
        text = (
            "VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE is set, but the page serves plain HTTP: see VKPROVIDER_HTTP_TLS_CERT"
        )
        raise InputError(StartReason.SETTING_INVALID, text)
    return tls


async def main(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        InputError: `SettingInvalid`: the page cannot listen, or a file of the settings cannot be used.
    """
    for name in settings.ignored:
        _log.info("setting accepted and not used", setting=name)
    for name, text in plain_text(_services(settings)).items():
        _log.warning("a service is reached in plain text", setting=name, why=text)
    agent_tokens(settings.http_tunnel)  # what cannot be used is refused before the API server is waited for
    await run(PROVIDER, settings, page_of(settings), partial(_build, settings))


def _services(settings: Settings) -> dict[str, str]:
    """Return the URLs of services by the settings that name them; unset ones are empty."""
    return {
        "LDS_API_URL": settings.lds.one_url,
        "VKPROVIDER_GRADER_URL": settings.grader.url,
        "S3_ENDPOINT": settings.content.endpoint,
    }


def _build(settings: Settings, ctx: Context, closing: AsyncExitStack) -> Process:
    agent = user_agent(ctx.replica)
    closing.callback(shared_parser().close)
    deployments = Deployments(settings.lds, user_agent=agent) if takes_part(settings.lds) else None
    if deployments is not None:
        closing.push_async_callback(deployments.close)
    grader = HttpGrader(settings.grader, user_agent=agent) if settings.grader.url else None
    if grader is not None:
        closing.push_async_callback(grader.close)
    replica = provider(ctx, settings, deployments=deployments, grader=grader)
    closing.callback(replica.base.counters.timeline.close)
    return replica.process
