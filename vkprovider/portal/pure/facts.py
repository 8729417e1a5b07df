"""A user lab as it was found, its state in the words of the interface, and the end of its time."""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import clock, length, unix
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.options import BODY, USERNAME, Grounds, Rejection
from vkprovider.portal.pure.record import COMPLETE, DELETE, FAILED, LabRecord
from vkprovider.portal.settings import PortalSettings

READY: Final = "Ready"


def is_bench(pod: Pod) -> bool:
    """Return whether a Pod is that of a workbench, and no lablet."""
    return portalnames.LABEL_WORKBENCH in pod.metadata.labels


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
        bench: The Pod of its workbench; None if there is none.
        longest_s: The longest time of a user, whatever end somebody has written on the Pod.
    """

    record: LabRecord
    pod: Pod | None = None
    exposed: bool = True
    ahead: int = 0
    second: bool = False
    longest_s: float = math.inf
    bench: Pod | None = None

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
    def own_bench(self) -> Pod | None:
        """The Pod of the workbench of the present request; None if there is none, or it ends."""
        request, pod = self.record.request, self.bench
        if request is None or pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        return pod if pod.metadata.labels.get(portalnames.LABEL_REQUEST) == request.id else None

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


class UserLabStatus(StrEnum):
    """The states of a user lab."""

    PENDING = "pending"
    RUNNING = "running"
    TERMINATING = "terminating"
    FAILED = "failed"


class PodPresence(StrEnum):
    """Whether the Pod of a user lab is there."""

    PRESENT = "present"
    MISSING = "missing"


def status_of(lab: UserLab) -> UserLabStatus:
    """Return the state of a lab; every replica that knows the record knows it."""
    record = lab.record
    outcome = record.outcome
    failed = outcome is not None and outcome.phase == FAILED
    if failed and outcome is not None and outcome.kind == DELETE:
        return UserLabStatus.FAILED
    if record.deleted or (record.ending is not None and not failed):
        return UserLabStatus.TERMINATING
    if failed or record.request is None:  # a request that cannot be read can only be replaced
        return UserLabStatus.FAILED
    return UserLabStatus.PENDING if outcome is None else UserLabStatus.RUNNING


def presence_of(lab: UserLab) -> PodPresence:
    """Return whether the Pod of a lab is there."""
    return PodPresence.MISSING if lab.pod is None else PodPresence.PRESENT


def may_create(lab: UserLab | None) -> Rejection | None:
    """Return why the user of a lab cannot have another one; None if there is no lab, or a failed one to replace."""
    if lab is None:
        return None
    status = status_of(lab)
    if status is UserLabStatus.FAILED and not lab.record.deleted:
        return None
    if status is UserLabStatus.RUNNING:
        told = f"user {lab.user!r} has a lab; another one takes its end, and a hub or a teacher of its class can end it"
        return Rejection(Grounds.LAB_EXISTS, told, USERNAME)
    doing = "made" if status is UserLabStatus.PENDING else "deleted"
    return Rejection(Grounds.OPERATION_IN_PROGRESS, f"the lab of user {lab.user!r} is being {doing}; wait", USERNAME)


def may_reset(lab: UserLab) -> Rejection | None:
    """Return why a lab cannot be wiped and started again; None if it can."""
    pod = lab.own_pod
    if lab.record.ending is not None or lab.record.deleted or (pod is not None and pod.terminal):
        return Rejection(Grounds.CANNOT_RESET, f"the lab of user {lab.user!r} is at its end", USERNAME)
    conditions = pod.status.conditions if pod is not None else ()
    if not any(each.type == names.CONDITION_LAB_IMPORTED and each.status == "True" for each in conditions):
        told = f"the lab of user {lab.user!r} is not there yet: there is nothing to reset"
        return Rejection(Grounds.CANNOT_RESET, told, USERNAME)
    return None


def unknown(user: str) -> Rejection:
    """Return the answer to a request about a lab that does not exist."""
    return Rejection(Grounds.UNKNOWN_USER, f"user {user!r} has no lab", USERNAME)


def precedence(record: LabRecord) -> tuple[bool, bool, float, str]:
    """Return the key by which the lab of a user is found among several, the least first: the others end.

    One that was made stays, whenever the others were asked for; one whose deletion has begun comes last.
    """
    made = record.outcome is not None and record.outcome.phase == COMPLETE
    return record.deleted, not made, record.created_at, record.uid


def places(labs: Iterable[UserLab], starts_max: int) -> Mapping[str, int]:
    """Return by the UID of its record how many labs start before each one that waits; 0 if it may start now.

    Labs start in the order of their requests, warm ones after all others.

    Args:
        labs: All user labs, warm ones too.
        starts_max: The most labs that start at once.
    """
    pending = [lab for lab in labs if status_of(lab) is UserLabStatus.PENDING and lab.key and not lab.second]
    starting = sum(lab.own_pod is not None and lab.ready_at is None and not lab.own_pod.terminal for lab in pending)
    waiting = sorted((lab for lab in pending if lab.own_pod is None and lab.unassigned_pod is None), key=_order)
    free = max(0, starts_max - starting)
    return {lab.record.uid: max(0, place + 1 - free) for place, lab in enumerate(waiting)}


def _order(lab: UserLab) -> tuple[bool, float, str]:
    asked = lab.record.request
    return lab.record.warm, asked.at if asked is not None else 0.0, lab.record.uid


DURATION_MIN_S: Final = 60


def duration_of(asked_s: int, settings: PortalSettings) -> int | Rejection:
    """Return for how long a user who asks for so many seconds has a lab; who asks for 0 has the usual time."""
    if not asked_s:
        return settings.duration_s
    if DURATION_MIN_S <= asked_s <= settings.duration_max_s:
        return asked_s
    told = f"a lab takes {length(DURATION_MIN_S)} to {length(settings.duration_max_s)}, not {length(asked_s)}"
    return Rejection(Grounds.INVALID_BODY, told, (BODY, "options", "duration"))


def extended(lab: UserLab, asked_s: int, now: float, settings: PortalSettings) -> int | Rejection:
    """Return the new end of a lab, in Unix seconds.

    Args:
        lab: The lab.
        asked_s: By how many seconds its time is to be extended; it gets fewer where that is the longest time.
        now: Unix seconds.
        settings: The bounds.
    """
    if not 0 < asked_s <= settings.extend_s:
        told = f"one request extends a lab by 1 s to {length(settings.extend_s)}"
        return Rejection(Grounds.INVALID_BODY, told, (BODY, "seconds"))
    if lab.own_pod is None or lab.own_pod.terminal or lab.record.ending is not None or math.isinf(lab.end_at):
        return Rejection(Grounds.CANNOT_EXTEND, "the lab has no time that could be extended", USERNAME)
    if lab.end_at <= now:
        return Rejection(Grounds.CANNOT_EXTEND, f"the time of the lab ended at {clock(lab.end_at, now)}", USERNAME)
    latest = lab.began_at + settings.duration_max_s
    end = int(min(lab.end_at + asked_s, latest))
    if end <= lab.end_at:
        told = f"the lab already has its longest time, {length(settings.duration_max_s)}, until {clock(latest, now)}"
        return Rejection(Grounds.CANNOT_EXTEND, told, USERNAME)
    return end


def words(end: float, now: float) -> str:
    """Return the end of a lab in words.

    >>> words(1769869800, 1769865480)
    'ends 14:30 UTC, in 1 h 12 min'
    """
    if math.isinf(end):
        return "has no end"
    return f"ends {clock(end, now)}, in {length(end - now)}" if end > now else f"ended {clock(end, now)}"
