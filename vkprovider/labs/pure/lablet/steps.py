"""The steps of a lablet, one side effect each, with their operands.

Every step is safe to repeat. `decide` chooses one, the controllers' `effects` execute it, `after` records its outcome.
"""

from collections.abc import Mapping
from enum import Flag, auto
from typing import ClassVar, Final

import msgspec

from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.observations import DeviceFact
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.objects import Pod


class System(Flag):
    """The systems outside the replica that a step may call."""

    NOTHING = 0
    WORKER = auto()
    API_SERVER = auto()
    LDS = auto()
    GRADER = auto()


class Step(msgspec.Struct, frozen=True, gc=False):
    """One side effect.

    Attributes:
        label: The label of the class in metrics and timelines.
        calls: The systems that the step calls: whose slots it takes, and who is at fault when it fails.
        changes_lab: Whether an observation shows what the step did to a lab; an import is searched for instead.
        continues: Whether the next step can be decided at once; otherwise a watch or a write brings the turn back.
        holds: Whether the lablet waits for the step when it fails; otherwise other steps go on meanwhile.
    """

    label: ClassVar[str]
    calls: ClassVar[System]
    changes_lab: ClassVar[bool] = False
    continues: ClassVar[bool] = True
    holds: ClassVar[bool] = True


class Wait(Step, frozen=True, gc=False):
    """Do nothing now."""

    label: ClassVar[str] = "NONE"
    calls: ClassVar[System] = System.NOTHING


class Save(Step, frozen=True, gc=False):
    """Nothing but the changed claim of the decision, which is written before any step."""

    label: ClassVar[str] = "SAVE"
    calls: ClassVar[System] = System.NOTHING


class Forget(Step, frozen=True, gc=False):
    """Forget the lablet: neither Pod nor claim is left."""

    label: ClassVar[str] = "FORGET"
    calls: ClassVar[System] = System.NOTHING


class MakeClaim(Step, frozen=True, gc=False):
    """Make the claim of a Pod and allocate its ports."""

    label: ClassVar[str] = "CLAIM"
    calls: ClassVar[System] = System.NOTHING
    continues: ClassVar[bool] = False
    pod: Pod


class Renew(Step, frozen=True, gc=False):
    """Give the claim of a warm lablet, whose lab is gone, the content and ports that its Pod would get now."""

    label: ClassVar[str] = "RENEW"
    calls: ClassVar[System] = System.NOTHING
    continues: ClassVar[bool] = False
    pod: Pod
    claim: Claim


class Release(Step, frozen=True, gc=False):
    """Drop the claim: the lab is known to be absent."""

    label: ClassVar[str] = "RELEASE"
    calls: ClassVar[System] = System.NOTHING
    claim: Claim


class Search(Step, frozen=True, gc=False):
    """Search the worker for the claim's lab by mark, notes and title.

    Attributes:
        shown: The id of the lab that the Pod shows; "" if it shows none.
    """

    label: ClassVar[str] = "SEARCH"
    calls: ClassVar[System] = System.WORKER
    claim: Claim
    shown: str = ""


class Import(Step, frozen=True, gc=False):
    """Import the lab from the content that the claim names, with the variables of the Pod as its parameters.

    Attributes:
        learner: Whom the lab's notes name; "" for a warm lablet.
    """

    label: ClassVar[str] = "IMPORT"
    calls: ClassVar[System] = System.WORKER
    claim: Claim
    pod: Pod
    learner: str = ""

    @property
    def noted(self) -> Claim:
        """The claim as the lab's notes show it."""
        return self.claim.of_learner(self.learner)


class NoteLearner(Step, frozen=True, gc=False):
    """Write the claim's learner and session into the lab's notes."""

    label: ClassVar[str] = "NOTE"
    calls: ClassVar[System] = System.WORKER
    claim: Claim


class Start(Step, frozen=True, gc=False):
    """Start the lab.

    Attributes:
        claim: As it was before the decision; a refused start does not count as an attempt.
    """

    label: ClassVar[str] = "START"
    calls: ClassVar[System] = System.WORKER
    changes_lab: ClassVar[bool] = True
    claim: Claim


class Stop(Step, frozen=True, gc=False):
    """Stop the lab."""

    label: ClassVar[str] = "STOP"
    calls: ClassVar[System] = System.WORKER
    changes_lab: ClassVar[bool] = True
    claim: Claim


class Wipe(Step, frozen=True, gc=False):
    """Wipe the stopped lab."""

    label: ClassVar[str] = "WIPE"
    calls: ClassVar[System] = System.WORKER
    changes_lab: ClassVar[bool] = True
    claim: Claim


class ChangeDevice(Step, frozen=True, gc=False):
    """Start, stop or wipe one device; if CML refuses, the lablet stays as it is, and the other steps go on.

    Attributes:
        claim: As it was before the decision; a refused start leaves the wish.
        device: The device.
        act: Never RESTART, which CML does not know.
    """

    label: ClassVar[str] = "DEVICE"
    calls: ClassVar[System] = System.WORKER
    changes_lab: ClassVar[bool] = True
    holds: ClassVar[bool] = False
    claim: Claim
    device: DeviceFact
    act: DeviceAct


class DeleteLab(Step, frozen=True, gc=False):
    """Delete the wiped lab."""

    label: ClassVar[str] = "DELETE_LAB"
    calls: ClassVar[System] = System.WORKER
    changes_lab: ClassVar[bool] = True
    claim: Claim


class Extract(Step, frozen=True, gc=False):
    """Archive the devices' configurations.

    Attributes:
        username: The Pod's, for a lablet without a session.
        insist: Fail on an error that may pass; otherwise go on without what cannot be read.
    """

    label: ClassVar[str] = "EXTRACT"
    calls: ClassVar[System] = System.WORKER
    claim: Claim
    devices: tuple[DeviceFact, ...]
    username: str
    insist: bool


class Collect(Extract, frozen=True, gc=False):
    """Archive the devices' configurations and the learner's answers."""

    label: ClassVar[str] = "COLLECT"
    calls: ClassVar[System] = System.LDS | System.WORKER


class Grade(Step, frozen=True, gc=False):
    """Ask the grader for a verdict on what was collected, and store it there."""

    label: ClassVar[str] = "GRADE"
    calls: ClassVar[System] = System.GRADER
    claim: Claim


class Provision(Step, frozen=True, gc=False):
    """Make the learner's session and set its devices.

    Attributes:
        first_request: No replica can have asked for this session before: if it was certainly not made, the next try may
            go to another deployment.
        via: The mux's address and port for slots to which it leads.
    """

    label: ClassVar[str] = "PROVISION"
    calls: ClassVar[System] = System.LDS
    claim: Claim
    session: Session
    first_request: bool
    via: Mapping[str, tuple[str, int]] = {}


class Reschedule(Step, frozen=True, gc=False):
    """Give the learner's session another end.

    Attributes:
        slot_end: Unix seconds.
    """

    label: ClassVar[str] = "RESCHEDULE"
    calls: ClassVar[System] = System.LDS
    claim: Claim
    session: Session
    slot_end: int


class ArchiveSession(Step, frozen=True, gc=False):
    """Archive the learner's session."""

    label: ClassVar[str] = "ARCHIVE"
    calls: ClassVar[System] = System.LDS
    claim: Claim
    session: Session


class ConfirmGone(Step, frozen=True, gc=False):
    """Ask the API server itself whether the Pod is gone: the informer's cache may lag."""

    label: ClassVar[str] = "CONFIRM_GONE"
    calls: ClassVar[System] = System.API_SERVER
    claim: Claim


class ConfirmDeletion(Step, frozen=True, gc=False):
    """Confirm the deletion of the Pod, as a kubelet does."""

    label: ClassVar[str] = "DELETE_POD"
    calls: ClassVar[System] = System.API_SERVER
    continues: ClassVar[bool] = False
    pod: Pod


class RestoreUsername(Step, frozen=True, gc=False):
    """Put the username back on the Pod of a lablet that has a learner.

    Attributes:
        username: The learner's.
        found: What stood there instead; "" if it was removed.
    """

    label: ClassVar[str] = "RESTORE_USERNAME"
    calls: ClassVar[System] = System.API_SERVER
    continues: ClassVar[bool] = False
    holds: ClassVar[bool] = False
    pod: Pod
    username: str
    found: str


class ClearLearner(Step, frozen=True, gc=False):
    """Remove the learner's annotations from the Pod."""

    label: ClassVar[str] = "CLEAR_LEARNER"
    calls: ClassVar[System] = System.API_SERVER
    continues: ClassVar[bool] = False
    pod: Pod


class ReturnToPool(Step, frozen=True, gc=False):
    """Set the Pod's pool label again."""

    label: ClassVar[str] = "RETURN_TO_POOL"
    calls: ClassVar[System] = System.API_SERVER
    continues: ClassVar[bool] = False
    pod: Pod
    pool: str


class Expose(Step, frozen=True, gc=False):
    """Lend ports of the lablet to a mux.

    Attributes:
        wanted: What the slice says.
        seen_uid: The slice that stands and says something else; "" for none.
    """

    label: ClassVar[str] = "EXPOSE"
    calls: ClassVar[System] = System.API_SERVER
    holds: ClassVar[bool] = False
    wanted: Exposure
    seen_uid: str


class Withdraw(Step, frozen=True, gc=False):
    """Lend no port to a mux any more.

    Attributes:
        seen_uid: The slice that is known to stand; "" for none.
        rest_s: How long the ports rest then.
    """

    label: ClassVar[str] = "WITHDRAW"
    calls: ClassVar[System] = System.API_SERVER
    claim: Claim
    seen_uid: str
    rest_s: int


WAIT: Final = Wait()
SAVE: Final = Save()
FORGET: Final = Forget()
