"""How long the devices of a lab may take to boot, and since when each is on its way.

CML itself calls a device BOOTED at `boot.timeout` of its node definition, whether it has booted or not. So a start is
given up only after that, and each device has its own time: one that CML queues, or starts in a later stage, is late.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final

import msgspec

from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.messages import listed
from vkprovider.platform.times import clock, length

UNKNOWN_S: Final = 1800.0
"""How long a device may take of which nobody knows how long it takes."""
_LEAST_S: Final = 300.0
_MARGIN: Final = 1.5
"""The least time that a device is given by CML's own, and how much more than CML's it is: a busy CML looks late."""
_STAGE_S: Final = 60.0
"""How long no device may be on its way before those that were never started count as stopped."""
_NOTED_S: Final = 30.0
"""A device that still waits so long after the start is noted in the claim; each write would cost all others more."""
LABELS_MAX: Final = 5
"""Labels in one message."""


class Way(Enum):
    """What a device that is not booted waits for."""

    STAGE = auto()  # other devices boot before it is started
    START = auto()  # nothing is on its way, and it was not started
    QUEUE = auto()  # CML has no CPU, memory or licence for it
    BOOT = auto()  # it boots


_ACTIVE: Final = {observations.QUEUED: Way.QUEUE, observations.STARTING: Way.BOOT, observations.STARTED: Way.BOOT}


class Boot(msgspec.Struct, frozen=True, gc=False):
    """A device that is on its way.

    Attributes:
        way: What it waits for.
        since: Since when, in monotonic seconds.
        since_unix: The same in Unix seconds, for people.
    """

    way: Way
    since: float
    since_unix: int


Boots = Mapping[str, Boot]
"""The devices that are on their way, by label."""
NO_BOOTS: Final[Boots] = {}


class StartPatience(msgspec.Struct, frozen=True, gc=False):
    """How long a start may take, by those who say so.

    Attributes:
        definition_s: `spec.bootTimeoutSeconds` of the definition; None if that is silent.
        timeouts: CML's `boot.timeout` by node definition; none if the worker does not say.
        cpu_limit: The smallest share of its CPU that a device gets, in percent: CML waits so much longer for it.
        took_s: How long the last start of the same content took on the worker; 0 if that is not known.
    """

    definition_s: int | None = None
    timeouts: Mapping[str, int] = {}
    cpu_limit: int = 100
    took_s: int = 0


NO_PATIENCE: Final = StartPatience()


class BootLimit(msgspec.Struct, frozen=True, gc=False):
    """How long each device of a lab may take.

    Attributes:
        seconds: From its own start.
        raise_by: How to give it more time.
    """

    seconds: float
    raise_by: str


def limit_of(
    setting_s: float | None, patience: StartPatience, devices: Iterable[DeviceFact], *, definition: str = ""
) -> BootLimit:
    """Return how long each device of a lab may take.

    Args:
        setting_s: LAB_START_TIMEOUT; None if it is not set.
        patience: What else says how long.
        devices: All of the lab.
        definition: Name of the lablet's definition, for messages.
    """
    if setting_s is not None:
        return BootLimit(setting_s, f"raise LAB_START_TIMEOUT of the provider, now {setting_s:.0f}, or unset it")
    if patience.definition_s is not None:
        now = f"now {patience.definition_s}"
        return BootLimit(
            patience.definition_s, f"raise spec.bootTimeoutSeconds of LabletDefinition {definition}, {now}"
        )
    seconds = by_definitions({device.definition for device in devices}, patience.timeouts, patience.cpu_limit)
    how = f"set spec.bootTimeoutSeconds of LabletDefinition {definition} to more than {seconds:.0f}"
    return BootLimit(seconds, how)


def by_definitions(definitions: Iterable[str], timeouts: Mapping[str, int], cpu_limit: int = 100) -> float:
    """Return how long a device of the slowest of some node definitions may take, by CML's own times.

    >>> by_definitions(["iosxrv9000", "alpine"], {"iosxrv9000": 1200, "alpine": 60})
    1800.0
    >>> by_definitions(["alpine"], {"alpine": 60}), by_definitions(["alpine", "mine"], {"alpine": 60})
    (300.0, 1800.0)
    """
    known = [timeouts.get(name) for name in definitions]
    slowest = max((seconds for seconds in known if seconds is not None), default=0)
    least = UNKNOWN_S if None in known else _LEAST_S
    return max(least, _MARGIN * slowest * 100 / cpu_limit)


def boot_timeout_of(spec: Mapping[str, Any]) -> int | None:
    """Read the seconds of a LabletDefinition's spec, which may be invalid: an unreadable field counts as unset."""
    seconds = spec.get("bootTimeoutSeconds")
    return seconds if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0 else None


def longest(
    setting_s: float | None,
    definition_s: int | None,
    definitions: Collection[str],
    by_worker: Iterable[Mapping[str, int]],
    cpu_limit: int = 100,
) -> int:
    """Return how long a device of a definition may take on the worker that gives it the most time.

    Args:
        setting_s: LAB_START_TIMEOUT; None if it is not set.
        definition_s: See `StartPatience`.
        definitions: The node definitions of its devices.
        by_worker: CML's `boot.timeout` by node definition, of each worker.
        cpu_limit: See `StartPatience`.
    """
    if setting_s is not None:
        return math.ceil(setting_s)
    if definition_s is not None:
        return definition_s
    found = (by_definitions(definitions, timeouts, cpu_limit) for timeouts in by_worker)
    return math.ceil(max(found, default=UNKNOWN_S))


def under_way(
    before: Boots | None,
    claim: Claim | None,
    devices: Iterable[DeviceFact],
    *,
    starting_since: float,
    now: float,
    now_unix: int,
) -> Boots:
    """Return which devices are on their way, and since when.

    Args:
        before: The result of the last look; None if this replica looks for the first time.
        claim: The lablet's; it says when the lab was started, and which devices began later.
        devices: As they are seen now.
        starting_since: When the start began, in monotonic seconds; 0 if that is not known.
        now: Monotonic seconds.
        now_unix: Unix seconds.
    """
    ways = _ways(devices)
    if not ways:
        return NO_BOOTS
    found = {}
    for label, way in ways.items():
        known = before.get(label) if before is not None else None
        if known is not None and known.way is way:
            found[label] = known
            continue
        since = now
        if before is None and starting_since:
            began_at = claim.later.get(label) if claim is not None else None
            if began_at is None:
                since = min(now, starting_since)
            elif began_at and way is Way.BOOT:
                since = now - max(0, now_unix - began_at)
        found[label] = Boot(way, since, now_unix - int(now - since))
    return found


def _ways(devices: Iterable[DeviceFact]) -> dict[str, Way]:
    devices = tuple(devices)
    if all(device.state == observations.BOOTED for device in devices):
        return {}
    ways = {device.label: _ACTIVE[device.state] for device in devices if device.state in _ACTIVE}
    left = Way.STAGE if ways else Way.START
    if any(device.state in observations.ACTIVE for device in devices):
        ways |= {device.label: left for device in devices if device.state == observations.DEFINED}
    return ways


def awaits_stage(boots: Boots | None, now: float) -> bool:
    """Return whether devices that were never started may still be started by CML itself, in a later stage."""
    return not any(boot.way is Way.START and boot.since + _STAGE_S <= now for boot in (boots or NO_BOOTS).values())


def ends_at(boot: Boot, seconds: float) -> float:
    """Return when a device has had its time, in monotonic seconds; for one that waits for others, never."""
    match boot.way:
        case Way.STAGE:
            return float("inf")
        case Way.START:
            return boot.since + _STAGE_S
        case _:
            return boot.since + seconds


def noted(boots: Boots, claim: Claim, now: float) -> dict[str, int]:
    """Return when devices began that began late (Unix seconds), 0 for those that wait; as in the claim if none is new.

    Without that, a replica that takes over would count their time from the start of the lab.
    """
    later = dict(claim.later)
    for label, boot in boots.items():
        if boot.way is Way.BOOT:
            if later.get(label) == 0:
                later[label] = boot.since_unix
        elif now - boot.since >= _NOTED_S:
            later[label] = 0
    return later


def told(boots: Boots, patience: StartPatience, seconds: float, now_unix: int) -> str:
    """Return which devices are missing, since when, for how long at most, and how long the last such lab took."""
    took = f"; the last such lab took {length(patience.took_s)}" if patience.took_s else ""
    return f"{named(boots, now_unix)}, {length(seconds)} at most{took}"


def named(boots: Boots, now_unix: int) -> str:
    """Return the labels of devices, together those that wait since the same minute.

    >>> boots = {label: Boot(Way.BOOT, 0.0, unix) for label, unix in (("r1", 60), ("r2", 119), ("x1", 600))}
    >>> named(boots, 700)
    'r1, r2 (since 00:01 UTC), x1 (since 00:10 UTC)'
    """
    by_time: dict[str, list[str]] = {}
    for label in sorted(boots, key=lambda label: (boots[label].since_unix, label)):
        by_time.setdefault(clock(boots[label].since_unix, now_unix), []).append(label)
    return listed([f"{listed(same, LABELS_MAX)} (since {at})" for at, same in by_time.items()], LABELS_MAX)
