"""The state of a user lab in the words of the interface, and the requests that it allows."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from vkprovider.lablet import names
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.record import COMPLETE, DELETE, FAILED, LabRecord
from vkprovider.portal.pure.rejections import USERNAME, Grounds, Rejection


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
