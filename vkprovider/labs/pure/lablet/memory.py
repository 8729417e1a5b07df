"""What a replica remembers of one lablet. A crash loses it, and nothing depends on it.

Restarts: Kubernetes adds up the `restartCount` of all containers, and the Job controller deletes a Pod with `OnFailure`
when the sum reaches `backoffLimit`: the lab would go, with the work in it. So one container counts, and only those
starts again that follow a failure and a wipe. Each has its reason, time and number in `lastState` and in Events,
counted or not.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final

import msgspec

from vkprovider.lablet import names, observations
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import Boots
from vkprovider.platform.messages import Fault
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


_SEARCH_AGAIN_S: Final = 10.0
"""How soon a search is repeated that found several labs: no event says that somebody has removed one."""


class Presence(Enum):
    """Whether the lab is on the worker. Not having been able to look is UNKNOWN, never ABSENT."""

    UNKNOWN = auto()
    ABSENT = auto()
    PRESENT = auto()


class Memory(msgspec.Struct, frozen=True, gc=False):
    """What a replica remembers of one lablet; times are monotonic seconds, 0 for never.

    Attributes:
        met_at: When this replica first saw the lablet.
        refused: It may not begin, because of its definition or for lack of capacity; a change of either wakes it.
        searched: No lab of the lablet is on the worker without being named in the claim: the claim is new, or the
            worker was searched.
        spent: The note of an import whose lab was searched for and is not there; the next import needs another one.
        matches: The labs of which a search cannot tell which is the lablet's.
        searched_at: When it found them.
        gone_confirmed: The API server itself said that the Pod does not exist.
        delete_sent: The deletion of the Pod is confirmed; finalizers hold what is left of it.
        killing: The Event `Killing` is emitted.
        starting_since: When this start began.
        boots: The devices that are on their way; None as long as this replica has not seen the lab.
        unclear_since: Since when the lab shows nothing to go by: no devices, an unknown state, a host away.
        retry_at: The earliest time of the next start.
        ready_since: Since when the lablet is Ready.
        deadline_at: When the Pod's activeDeadlineSeconds end.
        deadline_of: activeDeadlineSeconds and startTime that `deadline_at` was computed from.
        start_sent_at, stop_sent_at: When the worker was last told to start or stop the lab.
        acted_at: When the last step ended that changed the lab; an earlier observation does not count.
        assumed: The lab's devices as that step left them, until they are observed.
        absent: The worker itself said that the lab does not exist.
        extracted: The devices' configurations are archived since they were last started.
        archive_failed: The last try to archive the session failed.
        device_acts: What CML was last told of single devices, and until when it is not told that again, by label.
        restored_at: When the Pod's username was last put back.
        expose_at: When the slice for a mux may be written again; the informer shows a write a little later.
        access_since: Since when the session waits for a mux; 0 if it does not.
        withdrawn: The UID of the slice that was withdrawn last, which the informer may still show; "" for none.
        rescheduled_at: When the LDS was last asked for another end of the session.
        announced_end: The end of the learner's timeslot that was announced last (Unix seconds).
        unasked: The client key of a session that this replica chose and no replica can have asked for yet; only such a
            session may still go to another deployment.
        input_faults: The unreadable annotations that an Event named.
        failures: Failed steps in a row.
        fault: Reason and message of the last failed step.
        hold_until: Until then the failed step is not tried again, whatever else changes.
        held_at_deletion: The Pod's deletionTimestamp when the step failed, "" without one, None without a Pod: a hold
            ends when that changes.
        warned: Reason and note of the last Warning; it is not repeated.
        state: As last reported.
        image_changed: The text of the Event about a changed image.
    """

    met_at: float = 0.0
    refused: bool = False
    searched: bool = False
    spent: int = 0
    matches: tuple[str, ...] = ()
    searched_at: float = 0.0
    gone_confirmed: bool = False
    delete_sent: bool = False
    killing: bool = False
    starting_since: float = 0.0
    boots: Boots | None = None
    unclear_since: float = 0.0
    retry_at: float = 0.0
    ready_since: float = 0.0
    deadline_at: float = 0.0
    deadline_of: tuple[int, str | None] | None = None
    start_sent_at: float = 0.0
    stop_sent_at: float = 0.0
    acted_at: float = -1e9
    assumed: tuple[DeviceFact, ...] | None = None
    absent: bool = False
    extracted: bool = False
    archive_failed: bool = False
    device_acts: Mapping[str, tuple[DeviceAct, float]] = {}
    restored_at: float = -1e9
    expose_at: float = -1e9
    access_since: float = 0.0
    withdrawn: str = ""
    rescheduled_at: float = -1e9
    announced_end: int = 0
    unasked: str = ""
    input_faults: tuple[str, ...] = ()
    failures: int = 0
    fault: Fault | None = None
    hold_until: float = 0.0
    held_at_deletion: str | None = ""
    warned: Fault | None = None
    state: State | None = None
    image_changed: str = ""

    def search_in_s(self, now: float) -> float:
        """Return after how many seconds the worker is searched again that has several labs of the lablet."""
        return max(0.0, self.searched_at + _SEARCH_AGAIN_S - now) if self.matches else 0.0

    def held_acts(self, now: float) -> frozenset[tuple[str, DeviceAct]]:
        """Return the acts that CML must not be told now, each with the label of its device."""
        if not self.device_acts:
            return _NO_ACTS
        return frozenset((label, act) for label, (act, until) in self.device_acts.items() if until > now)

    def acts_in_s(self, now: float) -> list[float]:
        """Return after how many seconds CML may be told each of them again."""
        return [until - now for _, until in self.device_acts.values() if until > now]

    def after_act(self, claim: Claim | None, label: str, act: DeviceAct, until: float) -> "Memory":
        """Note what CML was told of a device; of devices that nothing is wished of any more, nothing is kept."""
        wished = claim.wishes if claim is not None else {}
        kept = {other: told for other, told in self.device_acts.items() if other in wished}
        return msgspec.structs.replace(self, device_acts={**kept, label: (act, until)})


_NO_ACTS: Final[frozenset[tuple[str, DeviceAct]]] = frozenset()
BLANK: Final = Memory()


def refreshed(
    memory: Memory,
    pod: Pod | None,
    claim: Claim | None,
    *,
    now: float,
    wall: float,
    sure: bool = True,
    silent: bool = False,
) -> Memory:
    """Return the memory with the times that follow from Pod and claim; to be called before facts are gathered.

    Args:
        memory: So far.
        pod: As the informer has it.
        claim: As it is now.
        now: Monotonic seconds.
        wall: Unix seconds.
        sure: Whether they are certain; until they are, a deadline is not remembered.
        silent: Whether the worker does not answer; when it does again, nothing waits any longer.
    """
    changes: dict[str, Any] = {}
    if silent and memory.hold_until:
        changes["hold_until"] = 0.0
    if claim is not None and claim.lab_id and claim.started_at > claim.ready_at and not memory.starting_since:
        changes["starting_since"] = now - max(0, int(wall) - claim.started_at)
    if pod is not None and pod.spec.active_deadline_seconds is not None:
        deadline_of = (pod.spec.active_deadline_seconds, pod.status.start_time)  # it may be lowered later
        if deadline_of != memory.deadline_of:
            if pod.status.start_time is None:
                age_s = now - memory.met_at
            else:
                age_s = wall - datetime.fromisoformat(pod.status.start_time).timestamp()
            changes["deadline_of"] = deadline_of if sure else None
            changes["deadline_at"] = now - max(0.0, age_s) + pod.spec.active_deadline_seconds
    return msgspec.structs.replace(memory, **changes) if changes else memory


def deletion_of(pod: Pod | None) -> str | None:
    """Return the Pod's deletionTimestamp, "" if it has none, None if there is no Pod."""
    return None if pod is None else pod.metadata.deletion_timestamp or ""


def held_s(memory: Memory, pod: Pod | None, now: float) -> float:
    """Return for how many seconds the last failure still holds the lablet back; 0 if its step may be tried again."""
    if memory.fault is None or memory.held_at_deletion != deletion_of(pod):
        return 0.0
    return max(0.0, memory.hold_until - now)


def lab_seen(
    memory: Memory, presence: Presence, devices: tuple[DeviceFact, ...]
) -> tuple[Presence, tuple[DeviceFact, ...]]:
    """Return a claim's lab as observed since the last step that changed it, or else as that step left it."""
    if memory.absent:
        return Presence.ABSENT, ()
    if presence is Presence.UNKNOWN and memory.assumed is not None:
        return Presence.PRESENT, memory.assumed
    return presence, devices


def unclear_since(
    memory: Memory, presence: Presence, devices: tuple[DeviceFact, ...], *, silent: bool, now: float
) -> float:
    """Return since when the lab was seen with nothing to go by, 0 if it shows something or its worker is silent."""
    if silent or presence is Presence.ABSENT:
        return 0.0
    if presence is Presence.UNKNOWN:
        return memory.unclear_since
    clear = is_clear({device.state for device in devices})
    return 0.0 if clear else memory.unclear_since or now


def is_clear(states: set[str]) -> bool:
    """Return whether the states of a lab's devices show something to go by."""
    return bool(states) and states <= observations.KNOWN and observations.DISCONNECTED not in states
