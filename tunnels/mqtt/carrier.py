"""Keeps a connection to the broker up, and maps addresses to topics.

    <prefix>/probe                          a caller asks all agents for a hello
    <prefix>/<name>/down/<boot>/<caller>    a caller to an agent's process
    <prefix>/<name>/up/<boot>/<caller>      an agent's process to a caller
    <prefix>/<name>/up/<boot>/all           an agent's process to all callers

The agent's name comes before everything that differs, so that two access rules bind an agent to its own topics. The
sender is part of every topic, so that it never rests on what a message says.
"""

import asyncio
import logging
import random
import re
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import Final, Protocol

from tunnels import wire
from tunnels.link.carrier import ALL, WORD, Address, CarrierInbox, parse_address
from tunnels.mqtt.broker import Broker, BrokerFault
from tunnels.mqtt.connection import BrokerConnection, Client
from tunnels.wire import Goodbye

EVERYBODY: Final = "all"
"""The level that stands for all callers; none may be called so."""

_PREFIX: Final = re.compile(r"[0-9A-Za-z_.-]+(/[0-9A-Za-z_.-]+){0,7}")


@dataclass(frozen=True, slots=True)
class TopicGrammar:
    """The topics of one installation.

    Args:
        prefix: One to eight levels, for instance `vkprovider/prod`.

    Raises:
        ValueError: The prefix holds a wildcard, an empty level or a character that a topic should not have.
    """

    prefix: str

    def __post_init__(self) -> None:
        if _PREFIX.fullmatch(self.prefix) is None:
            raise ValueError(f"{self.prefix!r} is not a topic's prefix: levels of letters, digits, '_', '.' and '-'")

    @property
    def probe(self) -> str:
        """The topic on which callers address all agents."""
        return f"{self.prefix}/probe"

    def down(self, address: Address, caller: str) -> str:
        """Return the topic from a caller to an agent's process."""
        return f"{self.prefix}/{address.name}/down/{address.boot}/{_checked(caller)}"

    def up(self, address: Address, caller: str) -> str:
        """Return the topic from an agent's process to a caller, or to `ALL`."""
        return f"{self.prefix}/{address.name}/up/{address.boot}/{_checked(caller) if caller != ALL else EVERYBODY}"

    def of_caller(self, caller: str) -> tuple[str, ...]:
        """Return the topics that a caller subscribes to."""
        return f"{self.prefix}/+/up/+/{EVERYBODY}", f"{self.prefix}/+/up/+/{_checked(caller)}"

    def of_agent(self, address: Address) -> tuple[str, ...]:
        """Return the topics that an agent's process subscribes to."""
        return self.probe, f"{self.prefix}/{address.name}/down/{address.boot}/+"

    def from_agent(self, topic: str) -> Address | None:
        """Return the sender that a topic belongs to; None if the topic is not one of an agent's."""
        levels = self._levels(topic)
        if len(levels) != 4 or levels[1] != "up":  # noqa: PLR2004 (the grammar above)
            return None
        return parse_address(f"{levels[0]}/{levels[2]}")

    def from_caller(self, topic: str) -> str | None:
        """Return the caller that sent what arrived on a topic; `ALL` for a probe, None if it is not a caller's."""
        if topic == self.probe:
            return ALL
        levels = self._levels(topic)
        if len(levels) != 4 or levels[1] != "down" or WORD.fullmatch(levels[3]) is None:  # noqa: PLR2004 (same)
            return None
        return levels[3]

    def _levels(self, topic: str) -> list[str]:
        start = f"{self.prefix}/"
        return topic[len(start) :].split("/") if topic.startswith(start) else []


def _checked(caller: str) -> str:
    if WORD.fullmatch(caller) is None or caller == EVERYBODY:
        raise ValueError(f"{caller!r} cannot be the identity of a caller")
    return caller


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

    def __init__(self, topics: TopicGrammar, caller: str) -> None:
        self._topics = topics
        self._caller = caller
        self._subscriptions = topics.of_caller(caller)
        # Agents know the identity from their topics. A second client with the same id would end our connection.
        self._client = f"caller-{secrets.token_hex(8)}"

    def client(self) -> Client:
        """See `Side`."""
        return Client(self._client, self._subscriptions)

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

    def __init__(self, topics: TopicGrammar, address: Address) -> None:
        self._topics = topics
        self._address = address
        self._subscriptions = topics.of_agent(address)

    def client(self) -> Client:
        """See `Side`."""
        will = wire.encode(Goodbye("its connection to the broker was lost", lost=True))
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
        return [(self._topics.up(self._address, ALL), wire.encode(Goodbye("shut down")))]


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

    async def run(self, inbox: CarrierInbox) -> None:
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

    def _deliver(self, inbox: CarrierInbox, topic: str, frame: bytes) -> None:
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
