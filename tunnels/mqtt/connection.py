"""One connection to a broker, from CONNECT to its end: paho-mqtt, driven by the event loop.

paho connects in a thread, because it blocks on name resolution and the TLS handshake; from then on the event loop
calls it whenever the socket is ready. A message is acknowledged to the broker when `deliver` has returned.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tunnels.base import CertificateInvalid
from tunnels.mqtt.broker import Broker, BrokerFault, DialledClient, LoginRefused, TlsFault, TopicRefused, proxy_to
from tunnels.outgoing import place_of
from tunnels.wire import FRAME_BYTES_MAX

IN_FLIGHT_MAX: Final = 20
"""Messages that the broker has not acknowledged; mosquitto accepts no more unless its configuration says so."""
QUEUE_MAX: Final = 1024
"""Messages that wait for their turn; further ones are dropped and counted, and the protocol repeats them."""
QOS: Final = 1

_PACKET_BYTES_MAX: Final = FRAME_BYTES_MAX + 2048
_MISC_S: Final = 1.0
_NOT_LET_IN: Final = frozenset({0x86, 0x87, 0x8A, 0x8C})
"""Reasons of a CONNACK (MQTT 5, 3.2.2.2): bad user name or password, not authorized, banned, bad method."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who connects.

    Attributes:
        identity: The client id; a second connection with the same one ends the first.
        subscriptions: Topic filters.
        will_topic: Where the broker publishes the will when the connection is lost; None: nowhere.
        will: The will.
    """

    identity: str
    subscriptions: tuple[str, ...]
    will_topic: str | None = None
    will: bytes = b""


class BrokerConnection:
    """A connection; `open` first, `close` last.

    Args:
        broker: The broker.
        client: Who connects.
        deliver: Called with topic and payload of every message.
        refused: Called with the reason when the broker refuses a message (version 5 only).
    """

    def __init__(
        self,
        broker: Broker,
        client: Client,
        *,
        deliver: Callable[[str, bytes], None],
        refused: Callable[[str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._broker = broker
        self._identity = client
        self._deliver = deliver
        self._refused = refused
        self._attached = False
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._subscribed: asyncio.Future[None] = self._loop.create_future()
        self._confirming: dict[int, tuple[str, asyncio.Future[None]]] = {}
        self._paho = self._make(client)

    async def open(self) -> None:
        """Connect and subscribe.

        Raises:
            BrokerFault: It did not come about.
        """
        where = self._broker
        try:
            async with asyncio.timeout(where.connect_s):
                await self._connect()
                await self._first(self._connected)
                topics = [(topic, QOS) for topic in self._identity.subscriptions]
                self._paho.subscribe(topics)
                await self._first(self._subscribed)
        except TimeoutError:
            proxy = proxy_to(where)
            through = f" through its proxy {place_of(proxy)}" if proxy else ""
            raise BrokerFault(f"{where}: the broker did not answer{through} within {where.connect_s:.3g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise TlsFault(f"{where}: the broker's certificate cannot be trusted: {error.verify_message}") from error
        except CertificateInvalid as error:
            raise TlsFault(f"{where}: {error}") from error
        except ssl.SSLError as error:
            raise TlsFault(f"{where}: no TLS: {error.reason or error}") from error
        except OSError as error:
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
            raise BrokerFault(f"{where}: {error.filename or ''}{': ' if error.filename else ''}{said}") from error

    def publish(self, topic: str, payload: bytes) -> bool:
        """Send a message, not retained; False if there is no connection or the queue is full."""
        if not self._attached or self._ended.done():
            return False
        return self._paho.publish(topic, payload, qos=QOS, retain=False).rc is MQTTErrorCode.MQTT_ERR_SUCCESS

    async def confirm(self, topic: str, payload: bytes) -> None:
        """Send a message, not retained, and wait until the broker has accepted it.

        Raises:
            TopicRefused: The broker refuses it (version 5 only).
            BrokerFault: There is no connection, or the broker does not answer.
        """
        if not self._attached or self._ended.done():
            raise BrokerFault(f"{self._broker}: there is no connection")
        number = self._paho.publish(topic, payload, qos=QOS, retain=False).mid
        self._confirming[number] = (topic, self._loop.create_future())
        try:
            async with asyncio.timeout(self._broker.connect_s):
                await self._first(self._confirming[number][1])
        except TimeoutError:
            raise BrokerFault(f"{self._broker}: the broker did not accept a message in time") from None
        finally:
            del self._confirming[number]

    async def tend(self) -> None:
        """Keep the connection alive until it ends.

        Raises:
            BrokerFault: It has ended; the message says how.
        """
        while not self._ended.done():
            self._paho.loop_misc()
            await asyncio.wait((self._ended,), timeout=_MISC_S)
        raise BrokerFault(f"{self._broker}: {self._ended.result()}")

    async def close(self, farewell: Iterable[tuple[str, bytes]] = ()) -> None:
        """Publish last messages and disconnect; the broker does not publish the will."""
        if self._attached and not self._ended.done():
            for topic, payload in farewell:
                self.publish(topic, payload)
            self._paho.disconnect()
            await asyncio.wait((self._ended,), timeout=2.0)
        self._drop()

    def _make(self, client: Client) -> paho.Client:
        five = self._broker.version == "5"
        made = DialledClient(
            self._broker,
            callback_api_version=CallbackAPIVersion.VERSION2,
            client_id=client.identity,
            clean_session=None if five else True,
            protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        made.connect_timeout = self._broker.connect_s
        made.max_inflight_messages_set(IN_FLIGHT_MAX)
        made.max_queued_messages_set(QUEUE_MAX)
        if client.will_topic is not None:
            made.will_set(client.will_topic, client.will, qos=QOS, retain=False)
        made.on_connect = self._on_connect
        made.on_subscribe = self._on_subscribe
        made.on_disconnect = self._on_disconnect
        made.on_message = self._on_message
        made.on_publish = self._on_publish
        made.on_socket_close = self._on_socket_close
        made.on_socket_register_write = self._on_register_write
        made.on_socket_unregister_write = self._on_unregister_write
        return made

    async def _connect(self) -> None:
        """Let a thread connect, then take the socket into the event loop."""
        connecting = self._loop.run_in_executor(None, self._connect_in_thread)
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(self._abandon)
            raise
        sock: Any = self._paho.socket()
        if sock is None:
            raise BrokerFault(f"{self._broker}: the connection ended at once")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small frames must not wait for each other
        self._attached = True
        self._loop.add_reader(sock, self._read)
        self._loop.add_writer(sock, self._paho.loop_write)

    def _connect_in_thread(self) -> None:
        if self._broker.tls:
            self._paho.tls_set_context(self._broker.ssl_context())
        login = self._broker.login()
        if login is not None:
            self._paho.username_pw_set(*login)
        properties = None
        if self._broker.version == "5":
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.MaximumPacketSize = _PACKET_BYTES_MAX
        self._paho.connect(self._broker.host, self._broker.port, self._broker.keepalive_s, properties=properties)

    def _abandon(self, connecting: asyncio.Future[None]) -> None:
        if not connecting.cancelled():
            connecting.exception()
        self._drop()

    async def _first(self, wanted: asyncio.Future[None]) -> None:
        """Wait for an answer of the broker, or for the end of the connection."""
        await asyncio.wait((wanted, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            raise BrokerFault(f"{self._broker}: {self._ended.result()}")
        wanted.result()

    def _read(self) -> None:
        """Read what is there; what TLS has decrypted already does not make the socket readable."""
        self._paho.loop_read()
        sock: Any = self._paho.socket()
        while isinstance(sock, ssl.SSLSocket) and sock.fileno() != -1 and sock.pending():
            self._paho.loop_read()
            sock = self._paho.socket()

    def _drop(self) -> None:
        sock: Any = self._paho.socket()
        if sock is not None and sock.fileno() != -1:
            if self._attached:
                self._loop.remove_reader(sock)
                self._loop.remove_writer(sock)
            sock.close()
        self._attached = False
        self._end("the connection was closed")
        for waited in (self._connected, self._subscribed):
            if waited.done() and not waited.cancelled():
                waited.exception()

    def _end(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)

    def _on_connect(
        self, _client: object, _data: object, _flags: object, code: ReasonCode, _properties: object
    ) -> None:
        if code.is_failure:
            kind = LoginRefused if code.value in _NOT_LET_IN else BrokerFault
            self._fail(self._connected, kind(f"{self._broker}: the broker refuses {self._identity.identity}: {code}"))
        elif not self._connected.done():
            self._connected.set_result(None)

    def _on_subscribe(
        self, _client: object, _data: object, _mid: int, codes: list[ReasonCode], _properties: object
    ) -> None:
        for topic, code in zip(self._identity.subscriptions, codes, strict=False):
            if code.is_failure:
                why = f"{self._broker}: the broker refuses the subscription to {topic}: {code}"
                self._fail(self._subscribed, TopicRefused(why))
                return
        if not self._subscribed.done():
            self._subscribed.set_result(None)

    def _fail(self, waited: asyncio.Future[None], fault: BrokerFault) -> None:
        if not waited.done():
            waited.set_exception(fault)

    def _on_disconnect(
        self, _client: object, _data: object, _flags: object, code: ReasonCode, _properties: object
    ) -> None:
        self._end(f"the connection ended: {code}")

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        if not message.retain:
            self._deliver(message.topic, bytes(message.payload))

    def _on_publish(self, _client: object, _data: object, mid: int, code: ReasonCode, _properties: object) -> None:
        topic, waited = self._confirming.get(mid, ("", None))
        if waited is None:
            if code.is_failure:
                self._refused(str(code))
        elif code.is_failure:
            self._fail(waited, TopicRefused(f"{self._broker}: the broker refuses a message to {topic}: {code}"))
        elif not waited.done():
            waited.set_result(None)

    def _on_socket_close(self, _client: object, _data: object, sock: Any) -> None:
        if self._attached and sock.fileno() != -1:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)

    def _on_register_write(self, _client: object, _data: object, sock: Any) -> None:
        if self._attached:
            self._loop.add_writer(sock, self._paho.loop_write)

    def _on_unregister_write(self, _client: object, _data: object, sock: Any) -> None:
        if self._attached and sock.fileno() != -1:
            self._loop.remove_writer(sock)
