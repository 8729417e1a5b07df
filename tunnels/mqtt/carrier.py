"""Keeps a connection to the broker up, and maps addresses to topics: a `Carrier` for callers, one for agents."""

import asyncio
import logging
import random
from collections import Counter
from typing import Final, Protocol

from tunnels.link.carrier import ALL, Address, Inbox, parse_address
from tunnels.mqtt.broker import Broker
from tunnels.mqtt.connection import BrokerConnection, Client
from tunnels.mqtt.faults import BrokerFault
from tunnels.mqtt.topics import Topics
from tunnels.wire import codec
from tunnels.wire.messages import Goodbye

PAUSE_S: Final = 0.5
"""The pause before the first new attempt; each further one waits up to twice as long."""
PAUSE_S_MAX: Final = 10.0
"""However long the broker was away, all are back within this."""

_LOG: Final = logging.getLogger("tunnels")


class Side(Protocol):
    """What differs between the two ends."""

    def client(self) -> Client:
        """Return the client that connects."""

    def topic(self, peer: str) -> str | None:
        """Return the topic of a peer; None if the address is not one."""

    def sender(self, topic: str) -> str | None:
        """Return the sender that a topic belongs to; None if no peer may publish there."""

    def farewell(self) -> list[tuple[str, bytes]]:
        """Return the messages to publish before the connection is closed."""


class CallerSide:
    """A caller: hears all agents, and what is for itself.

    Args:
        topics: Of the installation.
        caller: Its identity, unique among the callers.
    """

    def __init__(self, topics: Topics, caller: str) -> None:
        self._topics = topics
        self._caller = caller
        self._subscriptions = topics.of_caller(caller)

    def client(self) -> Client:
        """See `Side`."""
        return Client(f"caller-{self._caller}", self._subscriptions)

    def topic(self, peer: str) -> str | None:
        """See `Side`."""
        if peer == ALL:
            return self._topics.probe
        address = parse_address(peer)
        return None if address is None else self._topics.down(address, self._caller)

    def sender(self, topic: str) -> str | None:
        """See `Side`."""
        address = self._topics.from_agent(topic)
        return None if address is None else str(address)

    def farewell(self) -> list[tuple[str, bytes]]:
        """See `Side`."""
        return []


class AgentSide:
    """An agent's process: its will is a goodbye.

    Args:
        topics: Of the installation.
        address: Its own.
    """

    def __init__(self, topics: Topics, address: Address) -> None:
        self._topics = topics
        self._address = address
        self._subscriptions = topics.of_agent(address)

    def client(self) -> Client:
        """See `Side`."""
        will = codec.encode(Goodbye("its connection to the broker was lost", lost=True))
        identity = f"agent-{self._address.name}-{self._address.boot}"
        return Client(identity, self._subscriptions, self._topics.up(self._address, ALL), will)

    def topic(self, peer: str) -> str | None:
        """See `Side`."""
        return self._topics.up(self._address, peer)

    def sender(self, topic: str) -> str | None:
        """See `Side`."""
        return self._topics.from_caller(topic)

    def farewell(self) -> list[tuple[str, bytes]]:
        """See `Side`."""
        return [(self._topics.up(self._address, ALL), codec.encode(Goodbye("shut down")))]


class MqttCarrier:
    """A `Carrier` over one connection to a broker, renewed after every loss.

    Args:
        broker: The broker.
        side: The caller's or the agent's.
    """

    def __init__(self, broker: Broker, side: Side) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self.trouble = "not connected yet"
        self._broker = broker
        self._side = side
        self._connection: BrokerConnection | None = None

    async def run(self, inbox: Inbox) -> None:
        """Connect, and connect again after every loss, until cancelled; see `Carrier`."""
        pause_s = PAUSE_S
        while True:
            connection = BrokerConnection(
                self._broker,
                self._side.client(),
                deliver=lambda topic, frame: self._deliver(inbox, topic, frame),
                refused=self._refused,
            )
            try:
                await connection.open()
                self._connection, pause_s = connection, PAUSE_S
                self._note("")
                self.counts["connects"] += 1
                inbox.connected(ALL)
                await connection.tend()
            except BrokerFault as fault:
                self._note(str(fault))
            finally:
                was, self._connection = self._connection, None
                await connection.close(self._side.farewell())
                if was is not None:
                    inbox.disconnected(ALL)
            await asyncio.sleep(random.uniform(0.1 * pause_s, pause_s))
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def send(self, peer: str, frame: bytes) -> bool:
        """Publish a frame; see `Carrier`."""
        topic = self._side.topic(peer)
        if topic is not None and self._connection is not None and self._connection.publish(topic, frame):
            return True
        self.counts["dropped"] += 1
        return False

    def _deliver(self, inbox: Inbox, topic: str, frame: bytes) -> None:
        sender = self._side.sender(topic)
        if sender is None:
            self.counts["foreign"] += 1
        else:
            inbox.received(sender, frame)

    def _refused(self, why: str) -> None:
        """Count a message that the broker did not accept; log the first one."""
        self.counts["refused"] += 1
        if self.counts["refused"] == 1:
            _LOG.warning("mqtt: %s refuses a message of %s: %s", self._broker, self._side.client().identity, why)

    def _note(self, trouble: str) -> None:
        """Keep what is wrong with the connection, and log it when it changes."""
        if trouble != self.trouble:
            self.trouble = trouble
            _LOG.log(logging.WARNING if trouble else logging.INFO, "mqtt: %s", trouble or f"{self._broker}: connected")
