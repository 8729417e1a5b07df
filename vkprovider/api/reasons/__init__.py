"""Every reason of vkprovider: what it means, what to do about it, and what it implies.

A reason stands in a container's waiting state, a condition or an Event, next to a message with the particulars.
`docs/why.md` is made from `TABLES`. No other package writes a reason as a string: a test counts.

* `base`: `Reason`, the type of all reasons, its traits, `Reasons`, the enum without members, and `ForeignReason`.
* `pod`, `worker`, `definition`, `mux`, `userlab`, `console`, `programs`: the reasons by the object, or the program,
  that shows them; `happened`: what a Pod's Events and conditions report; `environment`: its environment variables.
* `conditions`: types of conditions; `stock`: what Kubernetes itself reports, with remedies.
"""

from collections.abc import Mapping
from typing import Final

from vkprovider.api.reasons.base import Explanation, ForeignReason, Reason, Reasons, Trait
from vkprovider.api.reasons.conditions import CONDITIONS, ConditionReason
from vkprovider.api.reasons.console import ConsoleReason
from vkprovider.api.reasons.definition import DefinitionReason
from vkprovider.api.reasons.environment import EnvironmentReason
from vkprovider.api.reasons.happened import Happened
from vkprovider.api.reasons.mux import MuxReason
from vkprovider.api.reasons.pod import Progress, Trouble
from vkprovider.api.reasons.programs import DoctorReason, StartReason
from vkprovider.api.reasons.userlab import UserLabReason
from vkprovider.api.reasons.worker import WorkerReason

__all__ = [
    "CONDITIONS",
    "CONSOLES",
    "DEFINITIONS",
    "DOCTOR",
    "NO_REASON",
    "PROGRESS",
    "TABLES",
    "TROUBLE",
    "WORKERS",
    "ConditionReason",
    "ConsoleReason",
    "DefinitionReason",
    "DoctorReason",
    "EnvironmentReason",
    "Explanation",
    "ForeignReason",
    "Happened",
    "MuxReason",
    "Progress",
    "Reason",
    "Reasons",
    "StartReason",
    "Trait",
    "Trouble",
    "UserLabReason",
    "WorkerReason",
    "decode",
    "reason_of",
]


def _table(reasons: type[Reasons]) -> dict[str, Reason]:
    return {reason.value: reason for reason in reasons}


PROGRESS: Final = _table(Progress)
TROUBLE: Final = _table(Trouble)
WORKERS: Final = _table(WorkerReason)
DEFINITIONS: Final = _table(DefinitionReason)
CONSOLES: Final = _table(ConsoleReason)
DOCTOR: Final = _table(DoctorReason)

TABLES: Final[Mapping[str, Mapping[str, Reason | Explanation]]] = {
    "A Pod on its way (waiting reason)": PROGRESS,
    "A Pod in trouble (waiting reason, Warning Event)": TROUBLE,
    "What happened to a Pod (Event, condition)": _table(Happened),
    "Environment variables of a Pod (Warning Event)": _table(EnvironmentReason),
    "Conditions of a Pod, Node or definition": CONDITIONS,
    "CMLWorker and Node (condition Ready, Event)": WORKERS,
    "LabletDefinition (condition Ready, Event)": DEFINITIONS,
    "`kubectl attach`, `exec`, `logs`, `port-forward` (refusal)": CONSOLES,
    "Mux and channel Services (Event)": _table(MuxReason),
    "User labs (Namespace, annotations `ending` and `operation`)": _table(UserLabReason),
    "Start of the provider (exit)": _table(StartReason),
    "Only `vkprovider doctor`": DOCTOR,
}
"""Heading: its reasons."""

NO_REASON: Final = ForeignReason.NONE
"""The reason of a condition that needs none, and of an event that did not happen."""

_BY_WORD: Final[Mapping[str, Reason]] = {reason.value: reason for enum in Reasons.__subclasses__() for reason in enum}
"""Only for words that are read; one that stands in several enums has the same traits in each of them."""


def reason_of(word: str) -> Reason:
    """Return the reason of a word that was read: from an object, a stored row, or another program's answer.

    Returns:
        A member of an enum; `NO_REASON` for "". Any other word is kept: `OutOfcpu` and its like are explained as
        `Trouble.OUT_OF`, all others are without explanation and traits.
    """
    found = _BY_WORD.get(word)
    if found is not None:
        return found
    return (Trouble.OUT_OF if word.startswith(Trouble.OUT_OF) else NO_REASON).worded(word)


def decode(type_: type, value: str) -> Reason:
    """Decode a stored reason: the `dec_hook` of a decoder of msgspec for a type with reasons.

    A row of a later version stays readable: its words are kept, and explain nothing.

    Raises:
        NotImplementedError: The type is not `Reason`.
    """
    if type_ is not Reason:
        raise NotImplementedError(f"{type_} is not a reason")
    return reason_of(value)
