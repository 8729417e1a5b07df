"""The process of an agent: open CML and the tunnel, run, finish what is under way, say goodbye."""

import asyncio
import signal
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog

from tunnels.agent.core import Agent, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.base import StreamOpener, Transport
from tunnels.channels import DirectStreams
from tunnels.direct import DirectTransport
from tunnels.errors import CertificateInvalid
from tunnels.link.carrier import NAME, Address
from vkprovider import __version__
from vkprovider.agent.carrier import agent_carrier
from vkprovider.agent.upstream import AGENT_API, LoggedIn, credentials_in
from vkprovider.api.agents import AgentFacts, encode_facts
from vkprovider.api.errors import InputError
from vkprovider.app.broker import read_pem
from vkprovider.cml.factory import CONNECTIONS_MAX, address_of, parse_worker_url
from vkprovider.cml.operations import TEXT_PATHS
from vkprovider.settings.plaintext import is_plain
from vkprovider.settings.tunnels import AgentSettings, DialSettings, MqttSettings

FINISH_S: Final = 20.0
"""How long a process that is to end waits for the answers of CML to what it has begun."""

_log: Final = structlog.get_logger(__name__)


async def main(settings: AgentSettings, mqtt: MqttSettings, dial: DialSettings) -> None:
    """Run an agent until SIGTERM or SIGINT.

    Raises:
        InputError: `SettingInvalid` or `WorkerUrlInvalid`: a setting is missing or wrong.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if NAME.fullmatch(settings.name) is None:
        raise InputError("SettingInvalid", "VKPROVIDER_AGENT_NAME is not set: it is the name of the CMLWorker")
    transport, streams = open_upstream(settings), open_streams(settings)
    try:
        boot = new_boot()
        agent = Agent(
            settings.name,
            agent_carrier(mqtt, dial, Address(settings.name, boot)),
            transport,
            allow=AGENT_API,
            streams=streams,
            facts=lambda: facts_of(settings),
            epochs=EpochFile(Path(settings.state_file)) if settings.state_file else None,
            version=__version__,
        )
        running = asyncio.create_task(agent.run(), name="agent")
        stopping = asyncio.create_task(stop.wait(), name="signals")
        _log.info("agent started", agent=settings.name, process=boot, cml=settings.url, dials=mqtt.url or dial.url)
        for url in filter(is_plain, dial.urls):
            _log.warning("replicas are dialled in plain text: the token and all requests can be read", url=url)
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await agent.finish(FINISH_S)
        for task in (running, stopping):
            task.cancel()
        await asyncio.gather(running, stopping, return_exceptions=True)
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error
    except ValueError as error:
        raise InputError("SettingInvalid", f"VKPROVIDER_AGENT_STATE_FILE: {error}") from None
    finally:
        await transport.close()
        await streams.close()
    _log.info("agent stopped", agent=settings.name)


def open_upstream(settings: AgentSettings) -> Transport:
    """Open CML; nothing is sent before the first request.

    Raises:
        InputError: `WorkerUrlInvalid` or `SettingInvalid`: a setting is missing or wrong.
    """
    address, ca_bundle = _cml(settings)
    try:
        direct = DirectTransport(
            address,
            verify=not settings.insecure_skip_verify,
            ca_bundle=ca_bundle,
            allow=AGENT_API,
            connections_max=CONNECTIONS_MAX,
        )
    except CertificateInvalid as error:
        raise InputError("SettingInvalid", f"VKPROVIDER_AGENT_CA_FILE {settings.ca_file}: {error}") from None
    if not settings.credentials_file:
        return direct
    return LoggedIn(direct, address, credentials_in(settings.credentials_file))


def open_streams(settings: AgentSettings) -> StreamOpener:
    """Return what opens consoles, screens and ports of CML's host; nothing connects before the first one.

    Raises:
        InputError: As in `open_upstream`.
    """
    address, ca_bundle = _cml(settings)
    first, last = settings.port_range
    return DirectStreams(
        address,
        verify=not settings.insecure_skip_verify,
        ca_bundle=ca_bundle,
        allow=AGENT_API,
        may_dial=lambda port: first <= port <= last,
        texts=TEXT_PATHS,
    )


def _cml(settings: AgentSettings) -> tuple[str, str | None]:
    """Return CML's URL and the authorities to trust.

    Raises:
        InputError: `WorkerUrlInvalid` or `SettingInvalid`.
    """
    if not settings.url:
        raise InputError("SettingInvalid", "VKPROVIDER_AGENT_CML_URL is not set: for instance https://192.0.2.7")
    parts = parse_worker_url(settings.url)
    if parts.scheme == "null":
        raise InputError("WorkerUrlInvalid", f"{settings.url!r}: the null backend has no agent")
    return address_of(parts), read_pem(settings.ca_file, "VKPROVIDER_AGENT_CA_FILE")


def facts_of(settings: AgentSettings) -> bytes:
    """Return what the agent says of itself and its worker."""
    address = settings.address or urlsplit(settings.url).hostname or ""
    return encode_facts(
        AgentFacts(settings.environment, settings.url, address, holds_credentials=bool(settings.credentials_file))
    )
