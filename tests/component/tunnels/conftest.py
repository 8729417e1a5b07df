from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import pytest

from tests.component.cml.conftest import MiniCml, serving
from tests.support.mosquitto import Mosquitto
from tests.support.tunnels import Version, over_direct, over_mqtt
from tests.support.websockets import over_http
from tunnels.base import AllowList, Transport
from tunnels.outgoing import Guard

ALLOW: Final = AllowList([(method, "/x") for method in ("GET", "POST", "PUT")])


class Opener(Protocol):
    """Opens a transport to a server, by one of the ways."""

    def __call__(self, url: str, *, guard: Guard | None = None) -> AbstractAsyncContextManager[Transport]: ...


@pytest.fixture
async def mini() -> AsyncIterator[MiniCml]:
    async with serving(MiniCml()) as mini:
        yield mini


@pytest.fixture
async def mosquitto(tmp_path: Path) -> AsyncIterator[Mosquitto]:
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    broker = Mosquitto(folder)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture(params=["direct", "mqtt 5", "mqtt 3.1.1", "http"])
def opener(request: pytest.FixtureRequest) -> Opener:
    """Every test that asks for it runs over each transport."""
    way: str = request.param
    mosquitto: Mosquitto | None = request.getfixturevalue("mosquitto") if way.startswith("mqtt") else None

    @asynccontextmanager
    async def open_transport(url: str, *, guard: Guard | None = None) -> AsyncIterator[Transport]:
        if way == "http":
            async with over_http(url, allow=ALLOW, guard=guard, agent_allow=ALLOW) as transport:
                yield transport
        elif mosquitto is None:
            async with over_direct(url, allow=ALLOW, guard=guard) as transport:
                yield transport
        else:
            version: Version = "5" if way == "mqtt 5" else "3.1.1"
            async with over_mqtt(
                mosquitto, url, version=version, allow=ALLOW, guard=guard, agent_allow=ALLOW
            ) as transport:
                yield transport

    return open_transport
