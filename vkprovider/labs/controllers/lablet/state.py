"""The record of one lablet: what this replica has in memory of one Pod UID."""

from dataclasses import dataclass, field

from vkprovider.lablet.lifecycle import State
from vkprovider.labs.pure.console.activity import NO_ACTIVITY, Activity
from vkprovider.labs.pure.lablet.memory import BLANK, Memory
from vkprovider.labs.pure.lablet.status import LabletStatus
from vkprovider.platform.messages import Condition
from vkprovider.platform.objects import Pod


@dataclass(slots=True)
class Written:
    """The last status written of one Pod.

    Attributes:
        version: The resourceVersion of that write; an older Pod in the informer's cache does not count.
        at: When it was written.
        sending: Whether a write awaits its answer.
        progress_since: Since when there has been progress that is not written.
    """

    status: LabletStatus | None = None
    version: int = 0
    at: float = -1e9
    sending: bool = False
    progress_since: float = 0.0


@dataclass(slots=True)
class Lablet:
    """One Pod UID on one worker. Each field has one writer.

    Attributes:
        pod: As the informer has it; written by the Pod handler.
        changes: How often it has changed; counted by the Pod handler.
        removal_seen: The informer showed the Pod's deletion and then its removal; written by the Pod handler.
        memory: Replaced by the turn alone.
        awaits_claim: Whether the last turn would have ended otherwise if its claim had been saved; written by the turn.
        written: The last status written; changed by the publisher alone.
        ports_open: The condition `PortsOpen`, None while unknown; written by the check of ports.
        activity: The input at its consoles that was noted last; written by the consoles.
    """

    uid: str
    worker: str
    pod: Pod | None = None
    changes: int = 0
    removal_seen: bool = False
    memory: Memory = BLANK
    awaits_claim: bool = True
    written: Written = field(default_factory=Written)
    ports_open: Condition | None = None
    activity: Activity = NO_ACTIVITY

    @property
    def state(self) -> State | None:
        """The state last reported."""
        return self.memory.state

    @property
    def ready_since(self) -> float:
        """Since when it is Ready (monotonic seconds), 0 if it is not."""
        return self.memory.ready_since
