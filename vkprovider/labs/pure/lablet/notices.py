"""Events about a lablet: which ones a step, a decision or a change of the Pod calls for."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vkprovider.lablet.reasons import Happened
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import intent
from vkprovider.labs.pure.lablet.facts import Facts
from vkprovider.labs.pure.lablet.memory import Memory
from vkprovider.labs.pure.lablet.outcomes import Archived
from vkprovider.labs.pure.lablet.steps import Collect, Step
from vkprovider.platform.errors import shorten
from vkprovider.platform.messages import Fault, Notice, count, sentences
from vkprovider.platform.objects import ENV, Pod

_WARNINGS_MAX: Final = 5
_WARNING_CHARS_MAX: Final = 150
"""Five of them fit into an Event."""


class Emitted(msgspec.Struct, frozen=True, gc=False):
    """Events to emit, and what is remembered of them so that none is repeated.

    Attributes:
        warned, input_faults, image_changed, killing: The values of these fields of the memory.
    """

    notices: tuple[Notice, ...]
    warned: Fault | None
    input_faults: tuple[str, ...] = ()
    image_changed: str = ""
    killing: bool = False


def news(memory: Memory, pod: Pod | None, notices: Iterable[Notice]) -> Emitted:
    """Leave out a Warning that was the last one, or that the Pod's status shows an earlier replica emitted."""
    warned, fresh = memory.warned, list[Notice]()
    for notice in notices:
        if notice.type == "Warning":
            before, warned = warned, Fault(notice.reason, notice.message)
            if before == warned or (before is None and _says(pod, notice)):
                continue
        fresh.append(notice)
    return Emitted(tuple(fresh), warned, memory.input_faults, memory.image_changed, memory.killing)


def imported_with(warnings: Sequence[str]) -> tuple[Notice, ...]:
    """Return the Event of what CML warned of when it imported a lab; none without warnings."""
    if not warnings:
        return ()
    said = sentences([shorten(" ".join(text.split()), _WARNING_CHARS_MAX) for text in warnings], _WARNINGS_MAX)
    return (Notice("Warning", Happened.IMPORT_WARNED, f"CML warns of the lab that it imported: {said}"),)


def _says(pod: Pod | None, notice: Notice) -> bool:
    waiting = [status.state.get("waiting", {}) for status in pod.status.container_statuses] if pod is not None else []
    return any(w.get("reason") == notice.reason and w.get("message", "").startswith(notice.message) for w in waiting)


def pod_news(memory: Memory, facts: Facts, claim: Claim | None, worker: str, notices: Iterable[Notice]) -> Emitted:
    """Return a decision's Events, and those about what users did to the Pod."""
    pod, emitted = facts.pod, news(memory, facts.pod, notices)
    more = list(emitted.notices)
    faults = facts.inputs.faults
    if faults and faults != memory.input_faults:
        more.append(Notice("Warning", Happened.ANNOTATION_INVALID, "; ".join(faults)))
    image = intent.changed_image(pod, claim) if pod is not None and claim is not None else ""
    if image and image != memory.image_changed:
        more.append(Notice("Warning", Happened.IMAGE_CHANGE_IGNORED, image))
    killing = pod is not None and pod.metadata.deletion_timestamp is not None
    if killing and not memory.killing and claim is not None:
        more.append(Notice("Normal", Happened.KILLING, f"Removing the lab from worker {worker}"))
    return Emitted(tuple(more), emitted.warned, faults, image, killing or memory.killing)


def ignored(pod: Pod) -> tuple[Notice, ...]:
    """Return the Event about the fields of a new lablet that mean nothing to it."""
    fields = [field for field in pod.spec.other_fields if field != ENV]
    if not fields:
        return ()
    note = f"a lablet has no {', '.join(fields)}: these fields of the pod are ignored"
    return (Notice("Warning", Happened.FIELD_IGNORED, note),)


def archived(step: Step, outcome: Archived) -> tuple[Notice, ...]:
    """Return the Events about what was put into the archive, and about what could not be read."""
    notices = []
    errors = dict(outcome.errors)
    if (unread := errors.pop("", None)) is not None:
        text = f"nothing of the learner's answers in the Lab Delivery System: {unread.message}"
        notices.append(Notice("Warning", Happened.NOT_KEPT, text))
    if errors:
        label, error = min(errors.items())
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        notices.append(Notice("Warning", Happened.NOT_KEPT, f"no configuration of {label}{more}: {error.message}"))
    if isinstance(step, Collect):
        left = outcome.leftovers
        lacking = ", ".join(sorted(label for label in left.faults if label))
        kept = count(len(left.configs), "device")
        note = f"kept the configurations of {kept}{f'; none of {lacking}' if lacking else ''}"
        notices.append(Notice("Normal", Happened.COLLECTED, note))
    return tuple(notices)
