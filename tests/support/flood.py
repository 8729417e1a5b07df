"""A tenant that sends the API server as many requests as its priority level admits, and more."""

import asyncio
import ssl
import threading
from collections import Counter
from types import TracebackType
from typing import Final, Self

import aiohttp

from tests.support.cluster import Cluster

ACCOUNT: Final = "flooder"
_AT_ONCE: Final = 400
"""Requests in flight. The level `workload-low`, where ServiceAccounts are, serves 245 at once on a stock API server."""
_PAGE: Final = 50
_LEVEL: Final = '{flow_schema="service-accounts",priority_level="workload-low"}'
_QUEUED: Final = f"apiserver_flowcontrol_current_inqueue_requests{_LEVEL}"
_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}


class Flood:
    """Requests from a thread of its own while the block runs: each slot changes its ConfigMap, then lists some.

    Attributes:
        answers: How many, by status; 429 is what the API server refuses.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        """Give the tenant an account that may edit its namespace."""
        where = f"--namespace={namespace}"
        cluster.kubectl("create", "serviceaccount", ACCOUNT, where)
        account = f"--serviceaccount={namespace}:{ACCOUNT}"
        cluster.kubectl("create", "rolebinding", ACCOUNT, "--clusterrole=edit", account, where)
        self.answers: Counter[int] = Counter()
        self._token = cluster.kubectl("create", "token", ACCOUNT, where).stdout.strip()
        self._cluster = cluster
        self._collection = f"{cluster.sandbox.process('kube-apiserver').url}/api/v1/namespaces/{namespace}/configmaps"
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._flood()), name="flood")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(60)

    def waiting(self) -> int:
        """Count the requests that wait in the tenant's priority level: it is full."""
        lines = str(self._cluster.request("GET", "/metrics")).splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(_QUEUED))

    async def _flood(self) -> None:
        context = ssl.create_default_context(cafile=str(self._cluster.sandbox.layout.pki / "server-ca.crt"))
        headers = {"Authorization": f"Bearer {self._token}"}
        connector = aiohttp.TCPConnector(limit=_AT_ONCE, ssl=context)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            await asyncio.gather(*(self._slot(session, number) for number in range(_AT_ONCE)))

    async def _slot(self, session: aiohttp.ClientSession, number: int) -> None:
        name, turn = f"flood-{number}", 0
        await self._send(session, "POST", "", json={"metadata": {"name": name}, "data": {"text": "x" * 1000}})
        while not self._over.is_set():
            turn += 1
            body = {"data": {"turn": str(turn)}}
            await self._send(session, "PATCH", f"/{name}", json=body, headers=_MERGE_PATCH)
            await self._send(session, "GET", f"?limit={_PAGE}")

    async def _send(self, session: aiohttp.ClientSession, method: str, path: str, **how: object) -> None:
        try:
            async with session.request(method, self._collection + path, **how) as answer:  # type: ignore[arg-type]
                await answer.read()
                self.answers[answer.status] += 1
        except (aiohttp.ClientError, TimeoutError):
            self.answers[0] += 1
