"""What a replica remembers of one lablet. All of it is volatile: a crash loses it, and nothing else."""

from dataclasses import dataclass, field

from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Pod
from vkprovider.controllers.lablet.statuses import Written
from vkprovider.domain.lablet.lifecycle import State


@dataclass(slots=True)
class Lablet:
    """What this replica remembers of one Pod UID.

    Attributes:
        refused: It may not begin, by its definition or for want of room: looked at again when either changes.
        assumed: The lab's devices as the last step left them, until the worker has been observed after `acted_at`.
        absent: The worker itself said that the lab is gone.
        deadline_of: activeDeadlineSeconds and startTime that `deadline_at` was computed from.
        extracted: What the devices hold has been kept since they were started.
        archive_failed: Archiving the session was tried and failed.
        unasked: The client key of a session that was decided on here and has not been asked for since, as far as is
            known for certain: only that one may still go to another deployment.
        ports_open: Status, reason and message of the condition PortsOpen; None while it is not known.
        told: What was told about annotations that cannot be read.
        image_changed: What was told about an image that was changed.
        fault: What the last step failed with: reason and message.
        hold_until: Not before then is it tried again, whatever else is new.
        warned: The last Warning about it; the same one is not repeated.
    """

    uid: str
    worker: str
    pod: Pod | None = None
    met_at: float = 0.0
    refused: bool = False
    searched: bool = False
    gone_confirmed: bool = False
    delete_sent: bool = False
    killing: bool = False
    starting_since: float = 0.0
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
    unasked: str = ""
    ports_open: tuple[str, str, str] | None = None
    told: tuple[str, ...] = ()
    failures: int = 0
    fault: tuple[str, str] | None = None
    hold_until: float = 0.0
    warned: tuple[str, str] | None = None
    state: State | None = None
    image_changed: str = ""
    written: Written = field(default_factory=Written)
