"""Pods of a namespace on the real API server, and the proxy through which the code under test reaches them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.apiserver import Admin
from tests.support.faultyapi import Asked, FaultyApi
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import CALM, Head, Informer, WatchPatience
from vkprovider.platform.objects import Pod

Change = tuple[str | None, str | None]


@dataclass
class Pods:
    """The Pods of one namespace.

    Attributes:
        api: The proxy.
        path: The collection.
    """

    admin: Admin
    api: FaultyApi
    namespace: str
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    async def add(self, *names: str, **spec: Any) -> None:
        """Create Pods."""
        for name in names:
            body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "lab", "image": "x"}], **spec}}
            self.found[name] = await self.admin.create(self.path, body)

    async def change(self, name: str, **labels: str) -> None:
        """Set labels of a Pod; without any, one that it does not have yet."""
        labels = labels or {"version": self.version(name)}
        self.found[name] = await self.admin.patch(f"{self.path}/{name}", {"metadata": {"labels": labels}})

    async def bind(self, name: str, node: str) -> None:
        """Bind a Pod to a Node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.admin.create(f"{self.path}/{name}/binding", body)
        self.found[name] = await self.admin.request("GET", f"{self.path}/{name}")

    async def remove(self, name: str) -> None:
        """Delete a Pod at once."""
        await self.admin.delete(f"{self.path}/{name}", grace_s=0)
        del self.found[name]

    def key(self, name: str) -> str:
        """Return the key under which informers cache a Pod."""
        return f"{self.namespace}/{name}"

    def keys(self, *names: str) -> set[str]:
        return set(map(self.key, names))

    def uid(self, name: str) -> str:
        uid: str = self.found[name]["metadata"]["uid"]
        return uid

    def version(self, name: str) -> str:
        version: str = self.found[name]["metadata"]["resourceVersion"]
        return version

    def lists(self) -> list[Asked]:
        return [asked for asked in self.api.asked if asked.method == "GET" and "watch=" not in asked.query]

    def watches(self) -> list[Asked]:
        return self.api.matching("watch=")

    def inject(self, kind: str, obj: dict[str, Any]) -> None:
        """Send an event to all watches that the API server has not sent."""
        self.api.inject(json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n")

    def refuse_watch(self, status: int, *, times: int = 1, message: str = "too old") -> None:
        """End the watches, and refuse the next ones."""
        self.api.fault("watch=", status=status, message=message, count=times)
        self.api.finish_watches()


class Heard:
    """What handlers hear, as names; `uids` are those of the same changes. That a deletion begins is left out."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.uids: list[Change] = []

    def __call__(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and new.metadata.deletion_timestamp:
            return
        self.changes.append((old.metadata.name if old else None, new.metadata.name if new else None))
        self.uids.append((old.metadata.uid if old else None, new.metadata.uid if new else None))


@asynccontextmanager
async def following(
    client: KubeClient,
    pods: Pods,
    *,
    keep: Callable[[Head], bool] | None = None,
    slim: Callable[[Pod], Pod] | None = None,
    page_size: int = 500,
    inactivity_s: float = 30.0,
    watching: bool = True,
    patience: WatchPatience = CALM,
) -> AsyncIterator[tuple[Informer[Pod], Heard]]:
    """Run an informer; wait until its watch is open, if wanted."""
    informer = Informer(
        client,
        pods.path,
        Pod,
        name="pods",
        keep=keep,
        slim=slim,
        page_size=page_size,
        patience=patience._replace(silence_s=inactivity_s, backoff_s=(0.02, 0.1), outage_cap_s=0.1),
    )
    heard = Heard()
    informer.add_handler(heard)
    task = asyncio.create_task(informer.run())
    try:
        if watching:
            async with asyncio.timeout(20):
                await informer.synced.wait()
                while not pods.api.watching:  # noqa: ASYNC110 (the proxy announces nothing)
                    await asyncio.sleep(0.005)
        yield informer, heard
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
