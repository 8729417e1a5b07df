"""A user lab, as it was found in the cluster."""

import math
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import unix
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.record import LabRecord

READY: Final = "Ready"


def is_ours(finalizer: str) -> bool:
    """Return whether a finalizer is one of vkprovider."""
    return finalizer.partition("/")[0] == wellknown.GROUP


class UserLab(NamedTuple):
    """A user lab, or a warm one.

    Attributes:
        record: Its Namespace.
        pod: The lablet; None if there is none.
        exposed: Whether the lablet lends its ports to a mux, so that nobody knows whether it was opened; also while
            that is not known.
        ahead: How many labs start before this one; 0 if it may start now.
        second: Whether the user has another lab, which goes before this one.
        longest_s: The longest time of a user, whatever end somebody has written on the Pod.
    """

    record: LabRecord
    pod: Pod | None = None
    exposed: bool = True
    ahead: int = 0
    second: bool = False
    longest_s: float = math.inf

    @property
    def user(self) -> str:
        """The exact name of the user; "" for a warm lab."""
        return self.record.user

    @property
    def key(self) -> str:
        """The key of the user, or of the warm lab."""
        return self.record.key

    @property
    def own_pod(self) -> Pod | None:
        """The Pod of the present request, which that of an earlier one is not; None if there is none."""
        request, pod = self.record.request, self.pod
        if request is None or pod is None or pod.metadata.labels.get(portalnames.LABEL_REQUEST) != request.id:
            return None
        return pod

    @property
    def unassigned_pod(self) -> Pod | None:
        """The warm Pod of a lab that a user has taken, while the Pod names no user yet; None if there is none."""
        if not self.record.family or self.record.warm or self.pod is None:
            return None
        return self.pod if portalnames.LABEL_USER not in self.pod.metadata.labels else None

    @property
    def pod_created_at(self) -> float:
        """When the Pod was made, in Unix seconds; 0 without one."""
        return (unix(self.pod.metadata.creation_timestamp) or 0.0) if self.pod is not None else 0.0

    @property
    def ready_at(self) -> float | None:
        """Since when the Pod is Ready, in Unix seconds; None if it is not."""
        conditions = self.pod.status.conditions if self.pod is not None else ()
        for condition in conditions:
            if condition.type == READY and condition.status == "True":
                return unix(condition.last_transition_time or "") or self.pod_created_at
        return None

    @property
    def began_at(self) -> float:
        """When the user's time began, in Unix seconds: with the Pod, or when a warm lab was taken."""
        request = self.record.request
        return max(self.pod_created_at, request.at if request is not None else 0.0)

    @property
    def end_at(self) -> float:
        """When the user's time ends, in Unix seconds; `inf` while the Pod has no end.

        Who may patch the Pod, such as the instructors of a class, may write any end on it, or none.
        """
        stamp = self.pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, "") if self.pod is not None else ""
        end = unix(stamp)
        latest = self.began_at + self.longest_s if self.own_pod is not None and not self.record.warm else math.inf
        return min(end if end is not None else math.inf, latest)

    @property
    def strange_finalizers(self) -> tuple[str, ...]:
        """Those of the Pod that are others'."""
        finalizers = self.pod.metadata.finalizers if self.pod is not None else ()
        return tuple(each for each in finalizers if not is_ours(each))

    @property
    def empty_since(self) -> float | None:
        """Since when the Pod has been deleted and has no lab, in Unix seconds; None if it may have one.

        The provider lets a Pod go by a deletion without a grace period once its lab is gone; one that was on no Node
        has never had one.
        """
        meta = self.pod.metadata if self.pod is not None else None
        if meta is None or meta.deletion_timestamp is None or meta.deletion_grace_period_seconds:
            return None
        return unix(meta.deletion_timestamp)

    @property
    def pod_says(self) -> str:
        """Why the Pod has ended, or what it waits for, as `reason: message`; "" if it does not say."""
        if self.pod is None:
            return ""
        status = self.pod.status
        details = [state for container in status.container_statuses for state in container.state.values()]
        conditions = [{"reason": each.reason, "message": each.message} for each in status.conditions]
        said = [each for each in (*details, *conditions) if each.get("reason")]
        if status.reason:  # that of the Pod itself, with the message of the container that has the same
            said.sort(key=lambda each: each["reason"] != status.reason)
        return ": ".join(str(said[0][key]) for key in ("reason", "message") if said[0].get(key)) if said else ""

    @property
    def opened(self) -> bool:
        """Whether anybody has worked in the lab."""
        return self.pod is not None and names.ANNOTATION_LAST_ACTIVITY in self.pod.metadata.annotations
