"""Whether a worker is large enough for one lablet of a definition."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from vkprovider.api.errors import InputError
from vkprovider.api.models.worker import parse_worker_spec
from vkprovider.api.objects import CustomResource
from vkprovider.domain.topology.resources import Resources
from vkprovider.domain.worker.capacity import capacity_of


class Room(NamedTuple):
    """What a worker holds.

    Attributes:
        environment: The worker's.
        total: None where only CML knows it, or the spec is wrong.
    """

    environment: str
    total: Resources | None


def room_of(worker: CustomResource, port_range: tuple[int, int]) -> Room:
    """Return a worker's capacity by its CMLWorker.

    Args:
        worker: The CMLWorker.
        port_range: First and last external port if its spec names none.
    """
    try:
        spec = parse_worker_spec(worker.spec)
    except InputError:
        return Room(str(worker.spec.get("environment", "default")), None)
    try:
        return Room(spec.environment, capacity_of(spec, None, port_range).total)
    except InputError:
        return Room(spec.environment, None)


def too_large(need: Resources, environment: str, rooms: Iterable[Room]) -> str:
    """Return why no worker of an environment can ever hold a lablet; "" if one can, or that is not known.

    Args:
        need: What a lablet is charged.
        environment: The definition's.
        rooms: Of all workers.
    """
    totals = [room.total for room in rooms if room.environment == environment]
    known = [total for total in totals if total is not None]
    if not known or len(known) < len(totals) or any(total.covers(need) for total in known):
        return ""
    largest = _largest(known)
    if lacking := largest.shortage(need):
        return f"no worker of environment {environment} holds one lablet, whatever else runs: {'; '.join(lacking)}"
    return f"no worker of environment {environment} has enough of everything for one lablet: {need.quantities()}"


def _largest(totals: Collection[Resources]) -> Resources:
    """Return the most of each resource that any worker has."""
    most = Resources()
    for total in totals:
        most = most.union(total)
    return most
