"""The node definitions that are known: shipped or named by a setting, and, where those lack one, a worker's own.

A worker's are in the status of its CMLWorker, so that every replica knows them. Where several workers have a
definition of one name, the largest figures count, for nobody knows yet which of them a lablet will run on. How long a
device may boot is CML's own, of each worker by itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from vkprovider.lablet.usage import DeviceFigures
from vkprovider.labs.pure.topology.resources import SHIPPED, NodeDefinition

LISTED_MAX: Final = 200
"""The most definitions in the status of a CMLWorker; CML itself ships about 60."""
_NAME_CHARS_MAX: Final = 64
_CPUS_MAX: Final = 1024
_RAM_MIB_MAX: Final = 2**24
_BOOT_S_MAX: Final = 86400 * 5
"""CML takes a day at most; a device with the smallest share of its CPU gets five times as long."""


def lacking(found: Iterable[DeviceFigures]) -> tuple[DeviceFigures, ...]:
    """Return the definitions of a CML that are not shipped and can be believed, by name; the first few if many."""
    unknown = {
        one.name: one
        for one in found
        if one.name not in SHIPPED
        and 0 < len(one.name) <= _NAME_CHARS_MAX
        and 0 < one.cpus <= _CPUS_MAX
        and 0 < one.ram <= _RAM_MIB_MAX
    }
    return tuple(unknown[name] for name in sorted(unknown)[:LISTED_MAX])


def boot_timeouts(found: Iterable[DeviceFigures]) -> dict[str, int]:
    """Return how long CML waits for devices, by node definition, as far as that can be believed; the first if many."""
    told = {one.name: one.boot_timeout for one in found if 0 < one.boot_timeout <= _BOOT_S_MAX}
    return {name: told[name] for name in sorted(told)[:LISTED_MAX] if 0 < len(name) <= _NAME_CHARS_MAX}


class NodeDefinitions(Mapping[str, NodeDefinition]):
    """The known node definitions, by name; `tell` and `tell_timeouts` are the only writers.

    Attributes:
        timeouts: How long CML waits for a device to boot, by node definition, of each CMLWorker by name.
    """

    def __init__(self, given: Mapping[str, NodeDefinition]) -> None:
        """Create the table.

        Args:
            given: The shipped ones and those of the setting; they go before a worker's.
        """
        self._given = given
        self._told: dict[str, tuple[DeviceFigures, ...]] = {}  # by worker
        self._known = dict(given)
        self.timeouts: dict[str, Mapping[str, int]] = {}

    def tell_timeouts(self, worker: str, found: Mapping[str, int] | None) -> None:
        """Note how long a worker waits for its devices; None if it is gone."""
        if found is None:
            self.timeouts.pop(worker, None)
        elif self.timeouts.get(worker) != found:
            self.timeouts[worker] = found

    def tell(self, worker: str, found: Iterable[DeviceFigures]) -> None:
        """Note which definitions a worker has; none if it is gone.

        Args:
            worker: The CMLWorker's name.
            found: As the status of its CMLWorker has them, which others may have edited.
        """
        told = lacking(found)
        if told == self._told.get(worker, ()):
            return
        self._told[worker] = told
        known = dict[str, NodeDefinition]()
        for one in (one for told in self._told.values() for one in told):
            before = known.get(one.name, NodeDefinition(0, 0))
            known[one.name] = NodeDefinition(max(before.cpus, one.cpus), max(before.ram_mib, one.ram))
        self._known = known | dict(self._given)

    def __getitem__(self, name: str) -> NodeDefinition:
        """Return a definition.

        Raises:
            KeyError: It is unknown.
        """
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._known)

    def __len__(self) -> int:
        """Count the definitions."""
        return len(self._known)
