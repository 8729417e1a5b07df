"""The process of one replica of the provider: connect, listen, run, stop."""

import asyncio
import ssl
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
from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.kube.client import user_agent
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.runtime.context import Context, connect

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
    """Run one replica until SIGTERM or SIGINT."""
    stop = stop_on_signals()
    for name in settings.ignored:
        _log.info("setting accepted and not used", setting=name)
    for name, text in plain_text(_services(settings)).items():
        _log.warning("a service is reached in plain text", setting=name, why=text)
    agent_tokens(settings.http_tunnel)  # what cannot be used is refused before the API server is waited for
    page = page_of(settings)
    await page.run(
        lambda: connect(settings.kube, settings.replica, page.wait_for),
        lambda ctx: _serve(settings, ctx, page, stop),
        stop,
    )


def _services(settings: Settings) -> dict[str, str]:
    """Return the URLs of services by the settings that name them; unset ones are empty."""
    return {
        "LDS_API_URL": settings.lds.one_url,
        "VKPROVIDER_GRADER_URL": settings.grader.url,
        "S3_ENDPOINT": settings.content.endpoint,
    }


async def _serve(settings: Settings, ctx: Context, page: Page, stop: asyncio.Event) -> None:
    agent = user_agent(ctx.replica)
    deployments = Deployments(settings.lds, user_agent=agent) if takes_part(settings.lds) else None
    grader = HttpGrader(settings.grader, user_agent=agent) if settings.grader.url else None
    replica = provider(ctx, settings, deployments=deployments, grader=grader)
    page.serve(replica.process)
    _log.info(
        "started",
        replica=ctx.replica,
        server=ctx.kube.server,
        context=ctx.kube.context or "in-cluster",
        installation=ctx.installation,
        http_port=page.port,
    )
    try:
        await replica.process.run(stop)
    finally:
        if deployments is not None:
            await deployments.close()
        if grader is not None:
            await grader.close()
        shared_parser().close()
        await ctx.kube.close()
        replica.base.counters.timeline.close()
    _log.info("stopped", replica=ctx.replica)
