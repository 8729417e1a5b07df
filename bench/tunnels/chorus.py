"""Many agents in one process, each with its own connection, that only say they live.

`python -m bench.tunnels.chorus FILE` runs them: the file holds a `Chorus` as JSON; SIGTERM ends it.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.tunnels.ways import TOKEN, TOPICS, dialled
from tunnels.agent.core import Agent, new_boot
from tunnels.base import AllowList
from tunnels.direct import DirectTransport
from tunnels.link.carrier import Address, Carrier
from tunnels.mqtt.carrier import AgentSide, MqttCarrier
from tunnels.websocket.dialing import DialCredentials, Dialing
from vkprovider.carriers.hello import AgentFacts, encode_facts
from vkpsandbox.processes.record import Broker

_APART_S: Final = 0.02
"""Between two that begin, so that their heartbeats are spread as those of grown installations are."""


class Chorus(msgspec.Struct, frozen=True):
    """Who sings.

    Attributes:
        names: Of the agents.
        broker: Where they connect by MQTT.
        page: Where they connect by HTTP instead, if not empty.
    """

    names: list[str]
    broker: Broker
    page: str = ""


async def sing(chorus: Chorus) -> None:
    """Run the agents until SIGTERM."""
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    nobody = AllowList([])
    nowhere = DirectTransport("http://127.0.0.1:9", allow=nobody)
    tasks = []
    for name in chorus.names:
        facts = encode_facts(AgentFacts(url=f"https://{name}.example.net", address=name, holds_credentials=True))
        carrier = _carrier(chorus, name)
        agent = Agent(name, carrier, nowhere, allow=nobody, facts=lambda said=facts: said, epochs=None)  # type: ignore[misc]
        tasks.append(asyncio.create_task(agent.run(), name=name))
        await asyncio.sleep(_APART_S)
    await ends.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _carrier(chorus: Chorus, name: str) -> Carrier:
    address = Address(name, new_boot())
    if chorus.page:
        return Dialing([chorus.page], address, lambda: DialCredentials(TOKEN))
    return MqttCarrier(dialled(chorus.broker, name), AgentSide(TOPICS, address))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(sing(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Chorus)))
