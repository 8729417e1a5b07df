"""Writes Pod statuses: only what changed, what matters at once, what is mere progress later or never."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from vkprovider.api.errors import Conflict, Invalid, NotFound
from vkprovider.api.objects import Pod
from vkprovider.controllers.context import PODS, Context, version_of
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet import status as podstatus
from vkprovider.domain.lablet.facts import Report
from vkprovider.domain.lablet.status import NO_EXTRAS, Extras, Status
from vkprovider.kube.client import Guard

_encode: Final = msgspec.json.encode
_SAME_HEADLINE_S: Final = 1.0


@dataclass(slots=True)
class Written:
    """What was last written for one Pod.

    Attributes:
        version: The resourceVersion of that write; an older Pod in the informer's copy does not count.
        progress_since: Since when there is progress that has not been written.
    """

    status: Status | None = None
    version: int = 0
    at: float = -1e9
    progress_since: float = 0.0


async def publish(
    ctx: Context,
    pod: Pod,
    report: Report,
    claim: Claim | None,
    devices: Mapping[str, str],
    ip: str,
    written: Written,
    extras: Extras = NO_EXTRAS,
    *,
    guard: Guard,
    urgent: bool = False,
) -> float | None:
    """Make a Pod's status say what is reported; what is urgent is not held back as mere progress.

    Returns:
        After how many seconds to come back because the write can wait; None if the status says it (now).

    Raises:
        OutsideError: The write failed.
        Fenced: The node is not ours any more.
    """
    wanted = podstatus.render(pod, report, claim, devices, ip, extras)
    known = written.status
    if known is None or _number(pod) >= written.version:
        known = podstatus.found(pod, wanted)
    if wanted == known:
        written.progress_since = 0.0
        return None
    now = ctx.now()
    if not written.progress_since:
        written.progress_since = now
    left = _due(ctx, wanted, known, written, urgent=urgent) - now
    if left > 0:
        return left
    body = _encode(podstatus.patch(pod, wanted, claim, ctx.now_unix, devices))
    path = PODS.format(pod.metadata.namespace, pod.metadata.name) + "/status"
    try:
        answer = await ctx.kube.strategic_patch(path, body, guard=guard, brief=True)
    except (NotFound, Conflict):
        return None  # gone: its deletion is on its way to us
    except Invalid as error:
        if "uid" in error.message:
            return None  # another Pod has its name by now
        raise
    written.status, written.version = wanted, int(version_of(answer) or 0)
    written.at, written.progress_since = ctx.now(), 0.0
    ctx.counters.status_writes += 1
    return None


def _number(pod: Pod) -> int:
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0


def _due(ctx: Context, wanted: Status, known: Status, written: Written, *, urgent: bool) -> float:
    """Tell when a change may be written: what a person or a controller acts on at once, progress later."""
    same = wanted.headline == known.headline
    if urgent or not wanted.is_progress:
        return written.at + _SAME_HEADLINE_S if same else 0.0
    if same:
        return max(written.at, written.progress_since) + ctx.tuning.progress_every_s
    if known.headline[1] == "True":
        return 0.0  # Ready turns False: traffic must stop
    return max(written.progress_since, written.at) + ctx.tuning.progress_after_s
