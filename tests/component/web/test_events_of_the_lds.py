"""What the simulated Lab Delivery System sends is what the receiver takes, through every fault on the way."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from vkprovider.labs.http.events import Receiver
from vkprovider.labs.pure.session import inbox
from vkprovider.labs.pure.session.inbox import EventOutcome, SessionEvent, SessionEvents
from vkpsim.lds.events.cloudevents import Mode
from vkpsim.lds.events.eventfaults import EventFault, EventFaults
from vkpsim.lds.events.sender import EventSettings, Sender
from vkpsim.lds.model import Event

SOURCE = "https://lds.example.com"
NOW = time.time()


class Replicas:
    """Two receivers over one set of rows; a session becomes known at its third event."""

    def __init__(self) -> None:
        self.rows: dict[str, SessionEvents] = {}
        self.heard: list[SessionEvent] = []

    async def accept(self, event: SessionEvent) -> EventOutcome:
        self.heard.append(event)
        row = self.rows.get(event.session)
        self.rows[event.session] = folded = inbox.fold(row, event, int(NOW))
        known = sum(other.session == event.session for other in self.heard) > 2
        return inbox.answer(known=known, news=folded != row, age_s=0, retry_s=600)


@pytest.fixture
async def replicas() -> AsyncIterator[tuple[Replicas, tuple[str, ...]]]:
    replicas, runners, urls = Replicas(), [], []
    for _ in range(2):
        app = web.Application()
        app.router.add_post("/events", Receiver(replicas.accept, [("", "the-secret")]).handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        runners.append(runner)
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}/events")
    yield replicas, tuple(urls)
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("mode", ["structured", "binary", "batch"])
async def test_events_arrive_through_every_fault(replicas: tuple[Replicas, tuple[str, ...]], mode: Mode) -> None:
    """The receivers ask for 5 s of patience; the sender of this test has less."""
    board, urls = replicas
    faults = EventFaults()
    for fault in (
        EventFault(kind="duplicate", type="started", count=1),
        EventFault(kind="reorder", type="started", count=1, delay_s=0.2),
        EventFault(kind="forge", type="ended", count=1),
    ):
        faults.add(fault)
    delivered = asyncio.Event()
    settings = EventSettings(targets=urls, token="the-secret", mode=mode, first_wait_s=0.01, longest_wait_s=0.02)
    sender = Sender(settings, lambda: SOURCE, faults, delivered.set)
    await sender.start([])
    data = {"lds_session_id": "s-1"}
    sender.put(Event(id="e-1", type="session.started", session="s-1", at_unix_s=NOW - 60, data=data))
    sender.put(Event(id="e-2", type="session.ended", session="s-1", at_unix_s=NOW - 5, data=data))
    async with asyncio.timeout(10):
        while sender.undelivered:
            delivered.clear()
            await delivered.wait()
    await sender.close()
    assert board.rows == {"s-1": SessionEvents("s-1", SOURCE, int(NOW), int(NOW - 60), int(NOW - 5))}
    assert [d.status for d in sender.deliveries if d.forged] == [401]
    assert {d.status for d in sender.deliveries if not d.forged} == {202, 503}
    assert {d.target for d in sender.deliveries} == set(urls)
