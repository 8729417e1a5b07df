"""Which deployment of the Lab Delivery System takes the next session. Pure: load, health and time come in.

A definition's affinity wins, if that deployment can take a session. Else it is the next one in the order of priority
(`round-robin`), or the one of the lowest priority number (`priority`). Nobody gets one that is disabled, full, or
avoided because it failed a moment ago.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from vkprovider.api.errors import (
    Forbidden,
    InputError,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
    shorten,
)
from vkprovider.domain.backoff import delay_s

Strategy = Literal["round-robin", "priority"]

AVOID_FIRST_S: Final = 2.0
AVOID_MAX_S: Final = 30.0
_WHY_CHARS_MAX: Final = 100


class Deployment(msgspec.Struct, frozen=True):
    """One deployment.

    Attributes:
        region: For people.
        capacity: Sessions at the same time, at most.
        priority: The lower, the sooner it is chosen.
        enabled: Whether it gets new sessions; those that it has go on.
    """

    id: str
    base_url: str
    capacity: int
    region: str = ""
    priority: int = 1
    enabled: bool = True


class Health(msgspec.Struct, frozen=True):
    """How the last calls of a deployment went.

    Attributes:
        failures: In a row.
        until_s: Until then it is avoided, on the clock that `now_s` is of.
        full: It said itself that it has no room, whatever we counted.
        why: What the last failure was.
    """

    failures: int = 0
    until_s: float = 0.0
    full: bool = False
    why: str = ""


class Choice(msgspec.Struct, frozen=True):
    """The deployment that was chosen.

    Attributes:
        warning: Why the definition's affinity was not followed; empty if it was, or if there is none.
    """

    deployment: Deployment
    warning: str = ""


WELL: Final = Health()


def after(health: Health, error: OutsideError | None, *, now_s: float, full: bool = False, dice: float = 1.0) -> Health:
    """Give the health after a call.

    Args:
        health: Before it.
        error: What came of it; None if the deployment answered as asked.
        now_s: The time.
        full: Whether the error says that the deployment has no room.
        dice: A number in [0, 1] that spreads the replicas' next tries.
    """
    failed = error is not None and _fails(error)
    if now_s < health.until_s and (failed or health.full):
        return health  # the fault that it is avoided for, met by many at once; and a full one still answers other calls
    if error is None or not failed:
        return WELL
    failures = health.failures + 1
    wait_s = delay_s(failures, first_s=AVOID_FIRST_S, cap_s=AVOID_MAX_S, dice=dice)
    if isinstance(error, Throttled):
        wait_s = max(wait_s, error.after_s)
    return Health(failures, now_s + wait_s, full, shorten(error.message, _WHY_CHARS_MAX))


def choose(
    deployments: Sequence[Deployment],
    *,
    load: Mapping[str, int],
    health: Mapping[str, Health],
    now_s: float,
    strategy: Strategy = "round-robin",
    last: str = "",
    affinity: str | None = None,
) -> Choice:
    """Choose the deployment of a new session.

    Args:
        deployments: All that are configured.
        load: Live sessions by deployment, those of all replicas, and those that are about to be made.
        health: By deployment; none is well.
        now_s: The time.
        strategy: How to choose where the affinity does not.
        last: The deployment that the strategy chose before this, for the rotation.
        affinity: The id that the lablet's definition prefers.

    Raises:
        InputError: `NoLDSDeployment`: none is enabled, or all of those are full.
        Throttled: All that are enabled and have room failed a moment ago; `after_s` says when to ask again.
    """
    troubles = {each.id: _trouble(each, load, health.get(each.id, WELL), now_s) for each in deployments}
    free = sorted((each for each in deployments if not troubles[each.id]), key=_order)
    warning = ""
    if affinity:
        preferred = next((each for each in free if each.id == affinity), None)
        if preferred is not None:
            return Choice(preferred)
        warning = f"LDS deployment {affinity} of lds.affinity {troubles.get(affinity, 'is not configured')}"
    if not free:
        raise _nobody(deployments, troubles, load=load, health=health, now_s=now_s)
    if strategy == "priority":
        return Choice(
            min(free, key=lambda each: (each.priority, load.get(each.id, 0) / each.capacity, each.id)), warning
        )
    before = next((_order(each) for each in deployments if each.id == last), None)
    return Choice(next((each for each in free if before is not None and _order(each) > before), free[0]), warning)


def _order(deployment: Deployment) -> tuple[int, str]:
    return deployment.priority, deployment.id


def _full(deployment: Deployment, load: Mapping[str, int], state: Health, now_s: float) -> str:
    """Say how full a deployment is; empty if it has room."""
    if (held := load.get(deployment.id, 0)) >= deployment.capacity:
        return f"is full ({held} of {deployment.capacity} sessions)"
    return "says that it is full" if state.full and now_s < state.until_s else ""


def _trouble(deployment: Deployment, load: Mapping[str, int], state: Health, now_s: float) -> str:
    """Say why a deployment cannot take a session; empty if it can."""
    if not deployment.enabled:
        return "is disabled"
    if full := _full(deployment, load, state, now_s):
        return full
    if now_s < state.until_s:
        return f"is avoided because it failed ({state.why})"  # no countdown: a message that changes is written anew
    return ""


def _nobody(
    deployments: Sequence[Deployment],
    troubles: Mapping[str, str],
    *,
    load: Mapping[str, int],
    health: Mapping[str, Health],
    now_s: float,
) -> InputError | Throttled:
    told = (
        "; ".join(f"{each.id} {troubles[each.id]}" for each in sorted(deployments, key=_order)) or "none is configured"
    )
    states = [(each, health.get(each.id, WELL)) for each in deployments if each.enabled]
    avoided = [state.until_s for each, state in states if not _full(each, load, state, now_s)]
    if avoided:
        return Throttled(f"no LDS deployment answers: {told}", status=0, after_s=min(avoided) - now_s)
    remedy = "enable one, raise its capacity, or add one in lds_deployments; or wait until sessions end"
    return InputError("NoLDSDeployment", f"no LDS deployment can take a session: {told}. {remedy}")


def _fails(error: OutsideError) -> bool:
    """Tell whether an error is about the deployment, not about one request."""
    redirected = range(300, 400)
    return isinstance(error, Unavailable | Unauthorized | Forbidden | TlsFailed) or error.status in redirected
