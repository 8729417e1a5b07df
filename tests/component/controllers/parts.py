"""Parts of a replica: a client of the real API server, and the context of one reconciler that a test runs alone."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.support.apiserver import SYSTEM
from tests.support.faultyapi import FaultyApi
from tests.support.scripted import kubeconfig_of
from vkprovider.labs.controllers.claims.store import ClaimStore
from vkprovider.labs.controllers.counters import Counters
from vkprovider.labs.controllers.worker.node_writer import NODES
from vkprovider.labs.settings.cluster import WorkerSettings
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.settings import KubeSettings


def context(kube: KubeClient, **more: Any) -> Context:
    """Return the context of replica `r1`."""
    events = EventRecorder(kube, component="vkprovider", instance="test")
    fields = {"installation": "inst", "replica": "r1", "namespace": SYSTEM, **more}
    return Context(kube=kube, events=events, **fields)


async def connect(stack: AsyncExitStack, api: FaultyApi) -> KubeClient:
    """Connect to the API server through a proxy."""
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        await asyncio.to_thread(Path(file.name).write_text, kubeconfig_of(api.url))
        client = await KubeClient.connect(KubeSettings(kubeconfig=file.name))
    stack.push_async_callback(client.close)
    return client


def claim_store(
    ctx: Context,
    *,
    saved: Callable[[Collection[str]], None] = lambda _: None,
    turns: asyncio.Semaphore | None = None,
    hold: Callable[[], Awaitable[None]] | None = None,
) -> ClaimStore:
    """Return the claims of CMLWorker `w1`, which need not exist: nothing holds it, unless `hold` does."""
    return ClaimStore(
        ctx,
        Counters(),
        WorkerSettings(),
        "w1",
        "uid-w1",
        guard=lambda: None,
        turns=turns or asyncio.Semaphore(),
        hold=hold or _unheld,
        flush_in=lambda _: None,
        saved=saved,
    )


async def _unheld() -> None:
    pass


class Clock:
    """A monotonic clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def to_act(membership: Membership) -> Membership:
    """Let a member act for as long as a test takes."""
    membership.members._listening_since = membership._ctx.now()
    membership._renew_began_at = 1e9
    return membership


def owning_none(ctx: Context) -> Ownership:
    """Return the ownership of a replica that may act and owns no Node yet."""
    ownership = Ownership(ctx, Membership(ctx, 15.0), NODES, list, levels=10, wake=lambda _: None)
    to_act(ownership.membership)
    return ownership
