"""One tenant's lablets that come and go, and how long each takes to become Ready."""

import math
import time
from typing import Final

from tests.support.cluster import PODS, Cluster, Refused, is_ready
from tests.support.topologies import pod

_AT_ONCE: Final = 5
_LONGEST_S: Final = 300.0


def p99(times_s: list[float]) -> float:
    """Return the 99th percentile, by nearest rank."""
    return sorted(times_s)[math.ceil(0.99 * len(times_s)) - 1]


class Churn:
    """Makes lablets, a few at once; each is deleted when it is Ready, and followed by another when it is gone."""

    def __init__(self, cluster: Cluster, namespace: str, kind: str) -> None:
        self._cluster, self._namespace, self._kind = cluster, namespace, kind
        self._made = 0

    def run(self, count: int) -> list[float]:
        """Return the seconds from creation to Ready of so many lablets.

        Raises:
            AssertionError: One is not Ready, or not gone, in five minutes.
        """
        begun: dict[str, float] = {}
        deleted: dict[str, float] = {}
        times_s: list[float] = []
        made = 0
        while len(times_s) < count or deleted:
            while made < count and len(begun) + len(deleted) < _AT_ONCE:
                begun[self._make()] = time.monotonic()
                made += 1
            found = {one["metadata"]["name"]: one for one in self._cluster.pods(self._namespace)}
            now = time.monotonic()
            for name in [name for name in begun if is_ready(found.get(name))]:
                times_s.append(now - begun.pop(name))
                self._delete(name)
                deleted[name] = now
            for name in [name for name in deleted if name not in found]:
                del deleted[name]
            slow = {name: at for name, at in (begun | deleted).items() if now - at > _LONGEST_S}
            assert not slow, slow
            time.sleep(0.05)
        return times_s

    def _make(self) -> str:
        self._made += 1
        name = f"{self._kind}-{self._made}"
        self._cluster.request("POST", PODS.format(self._namespace), pod(name, self._kind))
        return name

    def _delete(self, name: str) -> None:
        try:
            self._cluster.request("DELETE", f"{PODS.format(self._namespace)}/{name}")
        except Refused as error:
            if error.status != 404:
                raise
