"""Choose the deployment of the Lab Delivery System for the next session. Pure: load, health and time are arguments.

A definition's affinity wins if that deployment can accept a session. Otherwise it is the next one in the order of
priority (`round-robin`), or the one with the lowest priority number (`priority`). A deployment that is disabled, full,
or avoided after a recent failure is never chosen.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.settings.services import Strategy
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import (
    Forbidden,
    InputError,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
    shorten,
)
from vkprovider.platform.messages import count

AVOID_FIRST_S: Final = 2.0
AVOID_MAX_S: Final = 30.0
_WHY_CHARS_MAX: Final = 100


class LdsDeployment(msgspec.Struct, frozen=True):
    """One deployment.

    Attributes:
        region: For people.
        capacity: Sessions at the same time, at most.
        priority: The lower, the sooner it is chosen.
        enabled: Whether it accepts new sessions; its existing ones continue.
    """

    id: str
    base_url: str
    capacity: int
    region: str = ""
    priority: int = 1
    enabled: bool = True


class DeploymentHealth(msgspec.Struct, frozen=True):
    """The results of a deployment's last calls.

    Attributes:
        failures: In a row.
        until_s: Until then it is avoided, on the clock of `now_s`.
        full: The deployment itself reported that it is full, whatever our count is.
        why: The last failure.
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

    deployment: LdsDeployment
    warning: str = ""


WELL: Final = DeploymentHealth()


def after(
    health: DeploymentHealth, error: OutsideError | None, *, now_s: float, full: bool = False, dice: float = 1.0
) -> DeploymentHealth:
    """Return the health after a call.

    Args:
        health: Before it.
        error: Its error; None if the call succeeded.
        now_s: The time.
        full: Whether the error reports that the deployment is full.
        dice: A number in [0, 1] that spreads the replicas' retries.
    """
    failed = error is not None and _fails(error)
    if now_s < health.until_s and (failed or health.full):
        return health  # many calls meet the same failure at once, and a full deployment still answers other calls
    if error is None or not failed:
        return WELL
    failures = health.failures + 1
    wait_s = delay_s(failures, first_s=AVOID_FIRST_S, cap_s=AVOID_MAX_S, dice=dice)
    if isinstance(error, Throttled):
        wait_s = max(wait_s, error.after_s)
    return DeploymentHealth(failures, now_s + wait_s, full, shorten(error.message, _WHY_CHARS_MAX))


def choose(
    deployments: Sequence[LdsDeployment],
    *,
    load: Mapping[str, int],
    health: Mapping[str, DeploymentHealth],
    now_s: float,
    strategy: Strategy = "round-robin",
    last: str = "",
    affinity: str | None = None,
) -> Choice:
    """Choose the deployment of a new session.

    Args:
        deployments: All that are configured.
        load: Live sessions by deployment, of all replicas, including those about to be created.
        health: By deployment; a missing one counts as well.
        now_s: The time.
        strategy: How to choose where the affinity does not.
        last: The deployment that the strategy chose before this, for the rotation.
        affinity: The id that the lablet's definition prefers.

    Raises:
        InputError: `NoLDSDeployment`: none is enabled, or all of those are full.
        Throttled: All that are enabled and have room failed recently; `after_s` is the time until the next attempt.
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
        raise _none_free(deployments, troubles, load=load, health=health, now_s=now_s)
    if strategy == "priority":
        return Choice(
            min(free, key=lambda each: (each.priority, load.get(each.id, 0) / each.capacity, each.id)), warning
        )
    before = next((_order(each) for each in deployments if each.id == last), None)
    return Choice(next((each for each in free if before is not None and _order(each) > before), free[0]), warning)


def _order(deployment: LdsDeployment) -> tuple[int, str]:
    return deployment.priority, deployment.id


def _full(deployment: LdsDeployment, load: Mapping[str, int], state: DeploymentHealth, now_s: float) -> str:
    """Describe how full a deployment is; empty if it has room."""
    if (held := load.get(deployment.id, 0)) >= deployment.capacity:
        return f"is full ({held} of {count(deployment.capacity, 'session')})"
    return "says that it is full" if state.full and now_s < state.until_s else ""


def _trouble(deployment: LdsDeployment, load: Mapping[str, int], state: DeploymentHealth, now_s: float) -> str:
    """Describe why a deployment cannot accept a session; empty if it can."""
    if not deployment.enabled:
        return "is disabled"
    if full := _full(deployment, load, state, now_s):
        return full
    if now_s < state.until_s:
        return f"is avoided because it failed ({state.why})"  # no countdown: each change is another write
    return ""


def _none_free(
    deployments: Sequence[LdsDeployment],
    troubles: Mapping[str, str],
    *,
    load: Mapping[str, int],
    health: Mapping[str, DeploymentHealth],
    now_s: float,
) -> InputError | Throttled:
    listed = (
        "; ".join(f"{each.id} {troubles[each.id]}" for each in sorted(deployments, key=_order)) or "none is configured"
    )
    states = [(each, health.get(each.id, WELL)) for each in deployments if each.enabled]
    avoided = [state.until_s for each, state in states if not _full(each, load, state, now_s)]
    if avoided:
        return Throttled(f"no LDS deployment answers: {listed}", status=0, after_s=min(avoided) - now_s)
    remedy = "enable one, raise its capacity, or add one in lds_deployments; or wait until sessions end"
    return InputError(Trouble.NO_LDS_DEPLOYMENT, f"no LDS deployment can take a session: {listed}. {remedy}")


def _fails(error: OutsideError) -> bool:
    """Return whether an error concerns the deployment, not one request."""
    redirected = range(300, 400)
    return isinstance(error, Unavailable | Unauthorized | Forbidden | TlsFailed) or error.status in redirected
