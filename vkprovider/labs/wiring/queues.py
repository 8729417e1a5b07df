"""The work queues of the provider: built before the controllers that add keys to them and those that work on them."""

from dataclasses import dataclass, field

from vkprovider.platform.kube.queue import KeyedQueue

_queue = KeyedQueue[str]


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

    workers: KeyedQueue[str] = field(default_factory=lambda: _queue(name="workers", workers=64))
    agents: KeyedQueue[str] = field(default_factory=lambda: _queue(name="agents", workers=4))
    claims: KeyedQueue[str] = field(default_factory=lambda: _queue(name="claims", workers=64))
    lablets: KeyedQueue[str] = field(default_factory=lambda: _queue(name="lablets", workers=128, by_key=True))
    portcheck: KeyedQueue[str] = field(default_factory=lambda: _queue(name="portcheck", workers=16))
    definitions: KeyedQueue[str] = field(default_factory=lambda: _queue(name="definitions", workers=4))
    packages: KeyedQueue[str] = field(default_factory=lambda: _queue(name="packages", workers=2, backoff_s=(1.0, 60.0)))
    lds_content: KeyedQueue[str] = field(default_factory=lambda: _queue(name="lds-content", workers=1))
