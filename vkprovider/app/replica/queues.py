"""The work queues of a replica: built before the controllers that add keys to them and those that work on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vkprovider.kube.queue import KeyedQueue


def _queue(name: str, workers: int, backoff_s: tuple[float, float] = (0.2, 30.0)) -> KeyedQueue[str]:
    return KeyedQueue(name=name, workers=workers, backoff_s=backoff_s)


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of one replica.

    Attributes:
        workers: CMLWorkers, by name.
        agents: Agents that came, left or changed, by name.
        claims: CMLWorkers whose claims have changes to be written, by name.
        lablets: Lablets, by Pod UID.
        portcheck: Lablets whose ports are checked, by Pod UID.
        definitions: LabletDefinitions, by name.
        packages: LabletDefinitions whose content package is downloaded, by name; two packages in memory at most.
        lds_content: Forms whose content changed, by qualified name.
    """

    workers: KeyedQueue[str] = field(default_factory=lambda: _queue("workers", 64))
    agents: KeyedQueue[str] = field(default_factory=lambda: _queue("agents", 4))
    claims: KeyedQueue[str] = field(default_factory=lambda: _queue("claims", 64))
    lablets: KeyedQueue[str] = field(default_factory=lambda: _queue("lablets", 128))
    portcheck: KeyedQueue[str] = field(default_factory=lambda: _queue("portcheck", 16))
    definitions: KeyedQueue[str] = field(default_factory=lambda: _queue("definitions", 4))
    packages: KeyedQueue[str] = field(default_factory=lambda: _queue("packages", 2, (1.0, 60.0)))
    lds_content: KeyedQueue[str] = field(default_factory=lambda: _queue("lds-content", 1))

    @property
    def measured(self) -> Mapping[str, KeyedQueue[str]]:
        """The queues that /metrics and /admin/stats report, by label."""
        return MappingProxyType(
            {
                "workers": self.workers,
                "claims": self.claims,
                "lablets": self.lablets,
                "definitions": self.definitions,
                "packages": self.packages,
                "lds-content": self.lds_content,
            }
        )
