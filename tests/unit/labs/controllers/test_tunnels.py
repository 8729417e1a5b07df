"""The tunnels of a replica: what is not configured is refused, and what is known of an agent becomes a reason."""

import asyncio

import pytest

from tunnels import wire
from tunnels.base import AllowList
from tunnels.link.carrier import CarrierInbox
from tunnels.wire import Goodbye, Heartbeat, Hello, Message
from vkprovider.labs.controllers.worker.tunnels import Tunnels, WorkerRoute
from vkprovider.platform.errors import InputError

NOTHING = AllowList([])


class Wire:
    """A carrier that a test plays; frames of callers go nowhere."""

    async def run(self, inbox: CarrierInbox) -> None:  # noqa: ARG002 (a carrier's signature)
        await asyncio.Event().wait()

    def send(self, peer: str, frame: bytes) -> bool:  # noqa: ARG002 (a carrier's signature)
        return True


class Listening(list[str]):
    """Names of agents, in the order in which something was heard of them."""


def opened(*kinds: str) -> tuple[Tunnels, Listening, Listening]:
    heard, happened = Listening(), Listening()
    return Tunnels({kind: Wire() for kind in kinds}, heard=heard.append, happened=happened.append), heard, happened


def way(name: str = "w1") -> WorkerRoute:
    return WorkerRoute(name, None, lambda: 1)


async def say(tunnels: Tunnels, boot: str, message: Message) -> None:
    """Let an agent `w1` say something."""
    tunnels.hubs["mqtt"].received(f"w1/{boot}", wire.encode(message))


@pytest.mark.parametrize(
    ("kind", "reason", "says"),
    [
        ("mqtt", "TunnelNotConfigured", "set VKPROVIDER_TUNNEL_MQTT_URL"),
        ("http", "TunnelNotConfigured", "set VKPROVIDER_TUNNEL_HTTP_TOKENS"),
    ],
)
def test_a_tunnel_that_is_not_there_is_refused_with_the_remedy(kind: str, reason: str, says: str) -> None:
    tunnels, _, _ = opened()
    with pytest.raises(InputError, match=says) as caught:
        tunnels.transport(kind, way(), NOTHING, "")
    assert caught.value.reason == reason
    assert tunnels.away(kind, "w1") is None


async def test_one_connection_serves_all_workers() -> None:
    tunnels, _, _ = opened("mqtt")
    for name in ("w1", "w2"):
        await tunnels.transport("mqtt", way(name), NOTHING, "").close()
    assert len(tunnels.hubs) == 1


async def test_an_agent_that_is_away_is_named_with_the_reason() -> None:
    tunnels, heard, _ = opened("mqtt")
    unknown = tunnels.away("mqtt", "w1")
    assert unknown is not None
    assert (unknown.ready, unknown.reason) == (False, "AgentAway")
    assert "(status.owner) hears no agent w1" in unknown.message
    await say(tunnels, "a", Hello(0, 600_000))
    assert tunnels.away("mqtt", "w1") is None
    await say(tunnels, "a", Goodbye("stopped"))
    left = tunnels.away("mqtt", "w1")
    assert left is not None
    assert "has left (stopped)" in left.message
    assert heard == ["w1", "w1"]
    assert tunnels.states() == {"mqtt": {"left": 1}}
    assert tunnels.names == {"w1"}


async def test_heartbeats_are_not_news_but_changed_facts_are() -> None:
    tunnels, heard, _ = opened("mqtt")
    await say(tunnels, "a", Hello(0, 600_000, facts=b"{}"))
    for clock_ms in range(1, 5):
        await say(tunnels, "a", Heartbeat(clock_ms))
        await say(tunnels, "a", Heartbeat(clock_ms, epoch=clock_ms))
    assert heard == ["w1"]
    await say(tunnels, "a", Heartbeat(9, facts=b'{"environment":"prod"}'))
    assert heard == ["w1", "w1"]
