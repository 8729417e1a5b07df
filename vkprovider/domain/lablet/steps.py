"""The steps of a lablet, one side effect each, with their operands.

Every step is safe to repeat. `decide` chooses one, the controllers' `effects` execute it, `after` records its outcome.
"""

from enum import Enum, auto
from typing import ClassVar, Final

import msgspec

from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.session.delivery import Session


class Kind(Enum):
    """The kinds of steps; their names label the metrics of steps."""

    NONE = auto()
    CLAIM = auto()
    RENEW = auto()
    SAVE = auto()
    SEARCH = auto()
    IMPORT = auto()
    NOTE = auto()
    START = auto()
    STOP = auto()
    WIPE = auto()
    DELETE_LAB = auto()
    CONFIRM_GONE = auto()
    PROVISION = auto()
    RESCHEDULE = auto()
    EXTRACT = auto()
    COLLECT = auto()
    GRADE = auto()
    ARCHIVE = auto()
    RESTORE_USERNAME = auto()
    CLEAR_LEARNER = auto()
    RETURN_TO_POOL = auto()
    DELETE_POD = auto()
    RELEASE = auto()
    FORGET = auto()


WORKER_KINDS: Final = frozenset(
    {
        Kind.SEARCH,
        Kind.IMPORT,
        Kind.NOTE,
        Kind.START,
        Kind.EXTRACT,
        Kind.COLLECT,
        Kind.STOP,
        Kind.WIPE,
        Kind.DELETE_LAB,
    }
)
"""Kinds of steps that call the worker."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One side effect.

    Attributes:
        kind: Which.
        continues: Whether the next step can be decided at once; otherwise a watch or a write brings the turn back.
    """

    kind: ClassVar[Kind]
    continues: ClassVar[bool] = True


class Wait(Step, frozen=True, gc=False):
    """Do nothing now."""

    kind: ClassVar[Kind] = Kind.NONE


class Save(Step, frozen=True, gc=False):
    """Nothing but the changed claim of the decision, which is written before any step."""

    kind: ClassVar[Kind] = Kind.SAVE


class Forget(Step, frozen=True, gc=False):
    """Forget the lablet: neither Pod nor claim is left."""

    kind: ClassVar[Kind] = Kind.FORGET


class MakeClaim(Step, frozen=True, gc=False):
    """Make the claim of a Pod and allocate its ports."""

    kind: ClassVar[Kind] = Kind.CLAIM
    continues: ClassVar[bool] = False
    pod: Pod


class Renew(Step, frozen=True, gc=False):
    """Give the claim of a warm lablet, whose lab is gone, the content and ports that its Pod would get now."""

    kind: ClassVar[Kind] = Kind.RENEW
    continues: ClassVar[bool] = False
    pod: Pod
    claim: Claim


class Release(Step, frozen=True, gc=False):
    """Drop the claim: the lab is known to be absent."""

    kind: ClassVar[Kind] = Kind.RELEASE
    claim: Claim


class Search(Step, frozen=True, gc=False):
    """Search the worker for the claim's lab by mark, notes and title."""

    kind: ClassVar[Kind] = Kind.SEARCH
    claim: Claim


class Import(Step, frozen=True, gc=False):
    """Import the lab from the content that the claim names, with the variables of the Pod as its parameters.

    Attributes:
        learner: Whom the lab's notes name; "" for a warm lablet.
    """

    kind: ClassVar[Kind] = Kind.IMPORT
    claim: Claim
    pod: Pod
    learner: str = ""

    @property
    def noted(self) -> Claim:
        """The claim as the lab's notes show it."""
        return msgspec.structs.replace(self.claim, learner=self.learner)


class NoteLearner(Step, frozen=True, gc=False):
    """Write the claim's learner and session into the lab's notes."""

    kind: ClassVar[Kind] = Kind.NOTE
    claim: Claim


class Start(Step, frozen=True, gc=False):
    """Start the lab.

    Attributes:
        claim: As it was before the decision; a refused start does not count as an attempt.
    """

    kind: ClassVar[Kind] = Kind.START
    claim: Claim


class Stop(Step, frozen=True, gc=False):
    """Stop the lab."""

    kind: ClassVar[Kind] = Kind.STOP
    claim: Claim


class Wipe(Step, frozen=True, gc=False):
    """Wipe the stopped lab."""

    kind: ClassVar[Kind] = Kind.WIPE
    claim: Claim


class DeleteLab(Step, frozen=True, gc=False):
    """Delete the wiped lab."""

    kind: ClassVar[Kind] = Kind.DELETE_LAB
    claim: Claim


class Extract(Step, frozen=True, gc=False):
    """Archive the devices' configurations.

    Attributes:
        username: The Pod's, for a lablet without a session.
        insist: Fail on an error that may pass; otherwise go on without what cannot be read.
    """

    kind: ClassVar[Kind] = Kind.EXTRACT
    claim: Claim
    devices: tuple[DeviceFact, ...]
    username: str
    insist: bool


class Collect(Extract, frozen=True, gc=False):
    """Archive the devices' configurations and the learner's answers."""

    kind: ClassVar[Kind] = Kind.COLLECT


class Grade(Step, frozen=True, gc=False):
    """Ask the grader for a verdict on what was collected."""

    kind: ClassVar[Kind] = Kind.GRADE
    claim: Claim


class Provision(Step, frozen=True, gc=False):
    """Make the learner's session and set its devices.

    Attributes:
        first_request: No replica can have asked for this session before: if it was certainly not made, the next try may
            go to another deployment.
    """

    kind: ClassVar[Kind] = Kind.PROVISION
    claim: Claim
    session: Session
    first_request: bool


class Reschedule(Step, frozen=True, gc=False):
    """Give the learner's session another end.

    Attributes:
        slot_end: Unix seconds.
    """

    kind: ClassVar[Kind] = Kind.RESCHEDULE
    claim: Claim
    session: Session
    slot_end: int


class ArchiveSession(Step, frozen=True, gc=False):
    """Archive the learner's session."""

    kind: ClassVar[Kind] = Kind.ARCHIVE
    claim: Claim
    session: Session


class ConfirmGone(Step, frozen=True, gc=False):
    """Ask the API server itself whether the Pod is gone: the informer's cache may lag."""

    kind: ClassVar[Kind] = Kind.CONFIRM_GONE
    claim: Claim


class DeletePod(Step, frozen=True, gc=False):
    """Confirm the deletion of the Pod, as a kubelet does."""

    kind: ClassVar[Kind] = Kind.DELETE_POD
    continues: ClassVar[bool] = False
    pod: Pod


class RestoreUsername(Step, frozen=True, gc=False):
    """Put the username back on the Pod of a lablet that has a learner.

    Attributes:
        username: The learner's.
        found: What stood there instead; "" if it was removed.
    """

    kind: ClassVar[Kind] = Kind.RESTORE_USERNAME
    continues: ClassVar[bool] = False
    pod: Pod
    username: str
    found: str


class ClearLearner(Step, frozen=True, gc=False):
    """Remove the learner's annotations from the Pod."""

    kind: ClassVar[Kind] = Kind.CLEAR_LEARNER
    continues: ClassVar[bool] = False
    pod: Pod


class ReturnToPool(Step, frozen=True, gc=False):
    """Set the Pod's pool label again."""

    kind: ClassVar[Kind] = Kind.RETURN_TO_POOL
    continues: ClassVar[bool] = False
    pod: Pod
    pool: str


WAIT: Final = Wait()
SAVE: Final = Save()
FORGET: Final = Forget()
