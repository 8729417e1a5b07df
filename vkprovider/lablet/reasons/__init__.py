"""Reasons of lablets, workers and definitions: what each means, and what to do about it.

* `pod`: reasons for which a container of a Pod waits.
* `resources`: reasons of a CMLWorker with its Node, and of a LabletDefinition.
* `happened`: reasons of a Pod's Events and last states, of its environment variables, and of refused consoles.
* `conditions`: what Kubernetes itself shows of our Pods and Nodes, explained: types of conditions, and stock reasons.
"""

from typing import Final

from vkprovider.lablet.reasons.conditions import CONDITIONS, ConditionReason
from vkprovider.lablet.reasons.happened import ConsoleReason, EnvironmentReason, Happened, KeptReason
from vkprovider.lablet.reasons.pod import Progress, Trouble
from vkprovider.lablet.reasons.resources import DefinitionReason, WorkerReason
from vkprovider.platform.reasons import PortReason, by_word

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
    "KeptReason",
    "Progress",
    "Trouble",
    "WorkerReason",
]


PROGRESS: Final = by_word(Progress)
TROUBLE: Final = by_word(Trouble, PortReason)
WORKERS: Final = by_word(WorkerReason)
DEFINITIONS: Final = by_word(DefinitionReason)
"""The reasons of a Pod on its way, of one in trouble, of workers and of definitions, each by its word."""
