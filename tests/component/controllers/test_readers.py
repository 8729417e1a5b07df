"""Downloads from workers of other replicas share one login per worker."""

import asyncio

from vkprovider.cml.null import NullLabs, NullWorker
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.labs.controllers.worker import connection
from vkprovider.labs.controllers.worker.connection import Readers


class Connection(NullLabs):
    """The labs of a null worker; counts how often it was closed."""

    def __init__(self, spec: CMLWorkerSpec) -> None:
        super().__init__(NullWorker(spec.cml_url))
        self.spec = spec
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1
        await super().close()


class Opened(list[Connection]):
    """All connections, in the order in which they were opened."""

    def connect(self, worker: str, spec: CMLWorkerSpec) -> Connection:  # noqa: ARG002 (as Readers calls it)
        self.append(Connection(spec))
        return self[-1]

    def closed(self) -> list[int]:
        return [one.closed for one in self]


def spec(host: str = "cml-1") -> CMLWorkerSpec:
    return parse_worker_spec({"url": f"https://{host}", "credentialsSecretName": "cml-1"})


async def test_one_connection_serves_all_and_ends_when_it_is_idle() -> None:
    now = 0.0
    opened = Opened()
    shared = Readers(opened.connect, now=lambda: now)

    async def download() -> None:
        async with shared.labs("w1", spec()):
            await asyncio.sleep(0)

    await asyncio.gather(*(download() for _ in range(10)))
    assert len(opened) == 1
    now = connection.IDLE_S - 1
    await shared.sweep()
    assert opened.closed() == [0]
    now = connection.IDLE_S
    await shared.sweep()
    assert opened.closed() == [1]
    await download()
    assert len(opened) == 2


async def test_a_changed_worker_is_opened_again_and_the_old_one_closed_after_use() -> None:
    opened = Opened()
    shared = Readers(opened.connect)
    async with shared.labs("w1", spec()):
        async with shared.labs("w1", spec("cml-2")):
            assert opened.closed() == [0, 0]
        assert opened[1].spec.url == "https://cml-2"
    assert opened.closed() == [1, 0]


async def test_connections_are_bounded_and_all_closed_at_the_end() -> None:
    opened = Opened()
    shared = Readers(opened.connect)
    running = asyncio.create_task(shared.run())
    for n in range(12):
        async with shared.labs(f"w{n}", spec(f"cml-{n}")):
            pass
    assert opened.closed() == [1] * 4 + [0] * 8
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert opened.closed() == [1] * 12
