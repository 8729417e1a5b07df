"""Whether a worker is large enough, and new enough, for one lablet of a definition."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.topology.topology import SINCE
from vkprovider.labs.pure.worker.capacity import capacity_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource


class Room(NamedTuple):
    """What a worker holds.

    Attributes:
        environment: The worker's.
        total: None where only CML knows it, or the spec is wrong.
        release: Of its CML; None while that is not known.
    """

    environment: str
    total: Resources | None
    release: tuple[int, int, int] | None = None


def room_of(worker: CustomResource, port_range: tuple[int, int]) -> Room:
    """Return a worker's capacity by its CMLWorker.

    Args:
        worker: The CMLWorker.
        port_range: First and last external port if its spec names none.
    """
    release = names.cml_release(str(worker.status.get("cmlVersion", "")))
    try:
        spec = parse_worker_spec(worker.spec)
    except InputError:
        return Room(names.environment_of(worker.spec), None, release)
    try:
        return Room(spec.environment, capacity_of(spec, None, port_range).total, release)
    except InputError:
        return Room(spec.environment, None, release)


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


def too_new(versions: Iterable[str], environment: str, rooms: Iterable[Room]) -> str:
    """Return why no worker of an environment can import a lablet's topology; "" if one can, or that is not known.

    Args:
        versions: Of topologies, those that not every supported CML imports.
        environment: The definition's.
        rooms: Of all workers.
    """
    releases = [room.release for room in rooms if room.environment == environment]
    known = [release for release in releases if release is not None]
    if not known or len(known) < len(releases):
        return ""
    for version in versions:
        if all(release < SINCE[version] for release in known):
            newest, since = ".".join(map(str, max(known))), ".".join(map(str, SINCE[version]))
            return (
                f"topology version {version} needs CML {since} or later, and the newest worker of environment "
                f"{environment} has CML {newest}"
            )
    return ""


def _largest(totals: Collection[Resources]) -> Resources:
    """Return the most of each resource that any worker has."""
    most = Resources()
    for total in totals:
        most = most.union(total)
    return most
