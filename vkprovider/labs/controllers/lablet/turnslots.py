"""Slots for the turns of lablets: so many at once await one worker, workers at all, and the LDS or the grader."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from vkprovider.labs.controllers.worker.slots import Slots
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.lablet.steps import Step, System

Wake = Callable[[str], None]
_WORKER_CALLS_MAX: Final = 80
_DELIVERIES_MAX: Final = 24
"""Turns at once that call workers, and that call the LDS or the grader. Together they leave some of the queue's workers
to turns that only publish."""


class NoSlot(Exception):  # noqa: N818 (a state, as `Fenced`)
    """A step that has begun needs a slot, and none is free; a released slot wakes its lablet."""


@dataclass(frozen=True, slots=True)
class TurnSlots:
    """The slots of all turns. A `wake` queues a lablet by Pod UID: the one whose turn a released slot allows."""

    _worker_calls: Slots = field(default_factory=lambda: Slots(_WORKER_CALLS_MAX), init=False)
    _deliveries: Slots = field(default_factory=lambda: Slots(_DELIVERIES_MAX), init=False)

    def acquire(self, step: Step, uid: str, worker: Worker) -> bool:
        """Return whether a step may be executed now; if not, a released slot wakes the lablet.

        A step that calls the LDS and then the worker gets the slot of the worker in between (`turn_to_worker`). The LDS
        is not asked while the worker has none.
        """
        calls_worker = System.WORKER in step.calls and not worker.labs.immediate
        if not step.calls & (System.LDS | System.GRADER):
            return not calls_worker or self._acquire_worker(uid, worker)
        if calls_worker and not (worker.slots.has_room(uid) and self._worker_calls.has_room(uid)):
            return False
        return self._deliveries.acquire(uid)

    def turn_to_worker(self, uid: str, worker: Worker, wake: Wake) -> None:
        """Exchange a turn's slot of the LDS for one of the worker.

        Raises:
            NoSlot: The worker has none.
        """
        _release(uid, wake, self._deliveries)
        if not worker.labs.immediate and not self._acquire_worker(uid, worker):
            raise NoSlot

    def release(self, uid: str, worker: Worker, wake: Wake) -> None:
        """Release what a turn holds, at its end."""
        _release(uid, wake, worker.slots, self._worker_calls, self._deliveries)

    def _acquire_worker(self, uid: str, worker: Worker) -> bool:
        return worker.slots.acquire(uid) and self._worker_calls.acquire(uid)


def _release(uid: str, wake: Wake, *held: Slots) -> None:
    for slots in held:
        if (waiting := slots.release(uid)) is not None:
            wake(waiting)
