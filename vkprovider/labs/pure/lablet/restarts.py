"""Starts again of a lab, as its Pod shows them: failures are counted, and each start again is named in `lastState`.

Kubernetes adds up the `restartCount` of all containers, and the Job controller deletes a Pod with `OnFailure` when the
sum reaches `backoffLimit`: the lab would go, with the work in it. So one container counts, and only those starts again
that follow a failure and a wipe. Each has its reason, time and number in `lastState` and in Events, counted or not.
"""

from vkprovider.lablet import names
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.objects import Pod


def restarts_of(pod: Pod, claim: Claim | None) -> dict[str, int]:
    """Return the `restartCount` of each container that has one above 0; a count that was written is never lowered."""
    found = {status.name: status.restart_count for status in pod.status.container_statuses if status.restart_count}
    if claim is not None and claim.restarts:
        name = _counting(pod)
        found[name] = max(claim.restarts, found.get(name, 0))
    return found


def restarts_shown(pod: Pod) -> int:
    """Return the `restartCount` that the Pod shows for the container that counts."""
    return restarts_of(pod, None).get(_counting(pod), 0)


def last_end_of(claim: Claim | None, label: str | None) -> str:
    """Return why a device last stopped being ready, with the number of its starts again; "" if it never did.

    Args:
        claim: The lablet's, if it has one.
        label: The device's; None is the lab.
    """
    if claim is None or not claim.ended_with(label):
        return ""
    return f"{claim.last_message} (number {claim.starts_again_of(label)})"


def _counting(pod: Pod) -> str:
    """Return the name of the container that counts: the lab's, or the first of a Pod that has none for it."""
    found = [container.name for container in pod.spec.containers]
    return names.LAB_CONTAINER if names.LAB_CONTAINER in found else found[0]
