"""Reasons of lablets, workers and definitions: what each means, and what to do about it.

* `pod`, `worker`, `definition`, `console`: the reasons by the object that shows them.
* `happened`: what a Pod's Events and conditions report; `environment`: its environment variables.
* `conditions`: types of conditions; `stock`: what Kubernetes itself reports, with remedies.
"""

from collections.abc import Mapping
from typing import Final

from vkprovider.lablet.reasons.conditions import CONDITIONS, ConditionReason
from vkprovider.lablet.reasons.console import ConsoleReason
from vkprovider.lablet.reasons.definition import DefinitionReason
from vkprovider.lablet.reasons.environment import EnvironmentReason
from vkprovider.lablet.reasons.happened import Happened
from vkprovider.lablet.reasons.pod import Progress, Trouble
from vkprovider.lablet.reasons.worker import WorkerReason
from vkprovider.platform.ports.allocator import PortReason
from vkprovider.platform.reasons import Reason, Reasons

__all__ = [
    "CONDITIONS",
    "DEFINITIONS",
    "PROGRESS",
    "TROUBLE",
    "WORKERS",
    "ConditionReason",
    "ConsoleReason",
    "DefinitionReason",
    "EnvironmentReason",
    "Happened",
    "Progress",
    "Trouble",
    "WorkerReason",
]


def _table(*enums: type[Reasons]) -> Mapping[str, Reason]:
    return {reason.value: reason for enum in enums for reason in enum}


PROGRESS: Final = _table(Progress)
TROUBLE: Final = _table(Trouble, PortReason)
WORKERS: Final = _table(WorkerReason)
DEFINITIONS: Final = _table(DefinitionReason)
"""The reasons of a Pod on its way, of one in trouble, of workers and of definitions, each by its word."""
