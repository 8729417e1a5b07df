"""The process of an agent: open CML and the way to the replicas, run, finish what is in hand."""

import asyncio
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog

from tunnels.agent.core import Agent, Habits, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.base import CertificateInvalid, StreamOpener, Transport
from tunnels.channels import DirectStreams
from tunnels.direct import DirectTransport, Tls, fresh_ssl_context, ssl_context
from tunnels.link.carrier import NAME, Address, Carrier
from tunnels.mqtt.carrier import AgentSide, MqttCarrier
from tunnels.websocket.dialing import DialCredentials, Dialing
from vkprovider import __version__
from vkprovider.agent.settings import AgentSettings, DialSettings
from vkprovider.agent.upstream import AGENT_API, LoggedIn, credentials_in
from vkprovider.agent.watching import Watch
from vkprovider.carriers.broker import TOPICS, broker_of, read_line, read_pem
from vkprovider.carriers.hello import AgentFacts, encode_facts
from vkprovider.carriers.settings import MqttSettings
from vkprovider.cml.dialect import BY_OWN_SETTINGS, with_others
from vkprovider.cml.factory import CONNECTIONS_MAX, base_url_of, parse_worker_url
from vkprovider.cml.operations import TEXT_PATHS
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.concurrency import end_tasks, stop_on_signals
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread
from vkprovider.platform.settings import is_plain, reveal

_log: Final = structlog.get_logger(__name__)


def agent_carrier(mqtt: MqttSettings, dial: DialSettings, address: Address) -> Carrier:
    """Return an agent's carrier; nothing connects before it runs.

    Args:
        mqtt: The broker.
        dial: The replicas' pages.
        address: The agent's.

    Raises:
        InputError: `SettingInvalid`: a setting is missing, or a file cannot be read.
    """
    if bool(mqtt.url) == bool(dial.url):
        wrong = "both are set" if mqtt.url else "neither is set: the agent has nothing to dial"
        raise InputError(
            StartReason.SETTING_INVALID, f"set VKPROVIDER_TUNNEL_MQTT_URL or VKPROVIDER_TUNNEL_HTTP_URL; {wrong}"
        )
    if mqtt.url:
        return MqttCarrier(broker_of(mqtt), AgentSide(TOPICS, address))
    token = Reread([dial.token_file], lambda: read_line(dial.token_file, reveal(dial.token)))
    tls = Reread([dial.ca_file, dial.cert_file, dial.key_file], lambda: _client_tls(dial))
    authorities = f"the file of VKPROVIDER_TUNNEL_HTTP_CA_FILE{'' if dial.ca_file else ', which is not set'}"
    return Dialing(dial.urls, address, lambda: DialCredentials(token.current(), tls.current()), authorities=authorities)


def _client_tls(dial: DialSettings) -> ssl.SSLContext:
    """Return the TLS settings of an agent that dials pages.

    Raises:
        InputError: `SettingInvalid`: a file cannot be used.
    """
    setting = "VKPROVIDER_TUNNEL_HTTP_CA_FILE"
    try:
        context = fresh_ssl_context(verify=True, ca_bundle=read_pem(dial.ca_file, setting))
    except CertificateInvalid as error:
        raise InputError(StartReason.SETTING_INVALID, f"{setting} {dial.ca_file}: {error}") from None
    if dial.cert_file is not None:
        try:
            context.load_cert_chain(dial.cert_file, dial.key_file)
        except OSError as error:  # of ssl, too
            where = (
                f"VKPROVIDER_TUNNEL_HTTP_CERT_FILE {dial.cert_file}, VKPROVIDER_TUNNEL_HTTP_KEY_FILE {dial.key_file}"
            )
            raise InputError(StartReason.SETTING_INVALID, f"{where}: {error}") from None
    return context


CHANGED: Final = "changed"
"""The kind of the event that something about labs, devices or CML itself is different."""
FINISH_S: Final = 20.0
"""How long a process that is to end waits for the answers of CML to what it has begun."""


async def main(settings: AgentSettings, mqtt: MqttSettings, dial: DialSettings) -> None:
    """Run an agent until SIGTERM or SIGINT.

    Raises:
        InputError: `SettingInvalid` or `WorkerUrlInvalid`: a setting is missing or wrong.
    """
    stop = stop_on_signals()
    if NAME.fullmatch(settings.name) is None:
        raise InputError(
            StartReason.SETTING_INVALID, "VKPROVIDER_AGENT_NAME is not set: it is the name of the CMLWorker"
        )
    transport, streams = open_upstream(settings), open_streams(settings)
    try:
        boot = new_boot()
        carrier = agent_carrier(mqtt, dial, Address(settings.name, boot))
        epochs = EpochFile(Path(settings.state_file)) if settings.state_file else None
        agent = make_agent(settings, transport, streams, carrier, epochs, Habits())
        running = asyncio.create_task(serve(agent, transport), name="agent")
        stopping = asyncio.create_task(stop.wait(), name="signals")
        _log.info("agent started", agent=settings.name, process=boot, cml=settings.url, dials=mqtt.url or dial.url)
        for url in filter(is_plain, dial.urls):
            _log.warning("replicas are dialled in plain text: the token and all requests can be read", url=url)
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await agent.finish(FINISH_S)
        await end_tasks((running, stopping))
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error
    except ValueError as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_AGENT_STATE_FILE: {error}") from None
    finally:
        await transport.close()
        await streams.close()
    _log.info("agent stopped", agent=settings.name)


def make_agent(
    settings: AgentSettings,
    transport: Transport,
    streams: StreamOpener,
    carrier: Carrier,
    epochs: EpochFile | None,
    habits: Habits,
) -> Agent:
    """Return the agent of a worker; nothing connects before `serve`.

    Args:
        settings: The agent's.
        transport: From `open_upstream`.
        streams: From `open_streams`.
        carrier: To the replicas.
        epochs: Keeps the newest epoch.
        habits: How it behaves.

    Raises:
        ValueError: The epoch file is spoiled.
        OSError: It cannot be read.
    """
    return Agent(
        settings.name,
        carrier,
        transport,
        allow=AGENT_API,
        streams=streams,
        facts=lambda: facts_of(settings, transport),
        epochs=epochs,
        version=__version__,
        habits=habits,
    )


async def serve(agent: Agent, transport: Transport) -> None:
    """Run an agent, and the look at CML of one that can log in, until cancelled."""
    if not isinstance(transport, Watch):
        await agent.run()
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(agent.run(), name="tunnel")
        group.create_task(transport.run(lambda: agent.push(CHANGED, b"")), name="looks at CML")


def open_upstream(settings: AgentSettings) -> Transport:
    """Open CML; nothing is sent before the first request.

    An agent that has no credentials cannot look at CML by itself.

    Raises:
        InputError: `WorkerUrlInvalid` or `SettingInvalid`: a setting is missing or wrong.
    """
    address = _cml(settings)
    direct = DirectTransport(address, tls=_tls(settings), allow=AGENT_API, connections_max=CONNECTIONS_MAX)
    if not settings.credentials_file:
        return direct
    trust = with_others(BY_OWN_SETTINGS, settings.ca_file)
    logged_in = LoggedIn(direct, address, credentials_in(settings.credentials_file), trust)
    return Watch(logged_in, address, settings.observe_s, with_stats=settings.stats == "On", trust=trust)


def open_streams(settings: AgentSettings) -> StreamOpener:
    """Return the opener of consoles, screens and ports of CML's host; nothing connects before the first one.

    Raises:
        InputError: As in `open_upstream`.
    """
    address = _cml(settings)
    first, last = settings.port_range
    return DirectStreams(
        address,
        tls=_tls(settings),
        allow=AGENT_API,
        may_dial=lambda port: first <= port <= last,
        texts=TEXT_PATHS,
    )


def _cml(settings: AgentSettings) -> str:
    """Return CML's URL.

    Raises:
        InputError: `WorkerUrlInvalid` or `SettingInvalid`.
    """
    if not settings.url:
        raise InputError(
            StartReason.SETTING_INVALID, "VKPROVIDER_AGENT_CML_URL is not set: for instance https://192.0.2.7"
        )
    parts = parse_worker_url(settings.url)
    if parts.scheme == "null":
        raise InputError(WorkerReason.WORKER_URL_INVALID, f"{settings.url!r}: the null backend has no agent")
    return base_url_of(parts)


def _tls(settings: AgentSettings) -> Tls:
    """Return a function that builds the TLS settings for CML from the current file of authorities.

    Raises:
        InputError: `SettingInvalid`: the file cannot be used.
    """
    setting = "VKPROVIDER_AGENT_CA_FILE"

    def read() -> ssl.SSLContext:
        bundle = read_pem(settings.ca_file, setting)
        try:
            return ssl_context(verify=not settings.insecure_skip_verify, ca_bundle=bundle)
        except CertificateInvalid as error:
            raise InputError(StartReason.SETTING_INVALID, f"{setting} {settings.ca_file}: {error}") from None

    return Reread([settings.ca_file], read).current


def facts_of(settings: AgentSettings, transport: Transport) -> bytes:
    """Return the agent's report on itself and its worker."""
    address = settings.address or urlsplit(settings.url).hostname or ""
    watch = transport if isinstance(transport, Watch) else None
    return encode_facts(
        AgentFacts(
            settings.environment,
            settings.url,
            address,
            holds_credentials=bool(settings.credentials_file),
            watches=watch is not None,
            usage=watch.usage if watch is not None else None,
        )
    )
