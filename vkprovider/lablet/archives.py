"""What a learner leaves behind, as it is kept and shown: the work, an entry of the list, the grade."""

import hashlib
import re
from typing import Any, Final

import msgspec

ARCHIVE_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-\d{1,12})?")
"""The id of what is kept: the Pod's UID, or UID-TIME of what an earlier learner of that Pod left."""
UID_CHARS: Final = 36


def lasting_id(id_: str, at: int) -> str:
    """Return the id of what was left at a time (Unix seconds), also when the Pod has left something newer since.

    >>> lasting_id("5e0c8a7e-0000-4000-8000-000000000000", 1796000000)
    '5e0c8a7e-0000-4000-8000-000000000000-1796000000'
    """
    return f"{id_[:UID_CHARS]}-{at}"


def parts_of(id_: str) -> tuple[str, int]:
    """Return the Pod's UID and the time that an id names, 0 for what was left last."""
    return id_[:UID_CHARS], int(id_[UID_CHARS + 1 :] or 0)


def owner_label(owner: str) -> str:
    """Return an owner as the value of a label, which takes no name with a colon."""
    return hashlib.sha256(owner.encode()).hexdigest()[:40]


class Verdict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The grader's verdict on a learner's work."""

    passed: bool
    message: str


class Leftovers(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The configurations and answers collected from one lablet.

    Attributes:
        namespace: Of the lablet's Pod.
        pod: Its name.
        pod_uid: Its UID.
        definition: The LabletDefinition.
        version: Of the content that it ran.
        lab_id: The id of the lab in CML.
        username: The learner.
        session_id: Of the session in the Lab Delivery System.
        configs: Device label → configuration.
        faults: Device label → why its configuration is missing.
        responses: The learner's answers, as the LDS returns them.
        at: When it was collected (Unix seconds).
        labels: Of the Pod.
        grade: The grader's verdict on the learner's work; None if it is not graded.
        shown: The name by which people know the learner.
        owner: Of a user lab: the user as the API server names it, who may read this; "" for nobody.
        hidden: The labels of devices that learners do not see; None if they were not known, so that any may be.
    """

    namespace: str
    pod: str
    pod_uid: str
    definition: str
    version: str
    lab_id: str = ""
    username: str = ""
    session_id: str = ""
    at: int = 0
    configs: dict[str, str] = {}
    faults: dict[str, str] = {}
    responses: Any = None
    labels: dict[str, str] = {}
    grade: Verdict | None = None
    shown: str = ""
    owner: str = ""
    hidden: tuple[str, ...] | None = None

    def for_owner(self) -> "Leftovers":
        """Return what the owner may see of it: no device that the definition's author hides from learners."""
        if self.hidden is None:
            return msgspec.structs.replace(self, configs={}, faults={})
        configs, faults = (
            {label: text for label, text in texts.items() if label not in self.hidden}
            for texts in (self.configs, self.faults)
        )
        return msgspec.structs.replace(self, configs=configs, faults=faults, hidden=None)


class ArchiveEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the metadata of a stored object say of it: all but the work itself.

    Attributes:
        id: The Pod's UID, or UID-TIME of what an earlier learner of that Pod left.
        at: When it was collected (Unix seconds).
        shown: The name by which people know the learner.
        devices: Of a user lab: the labels of the devices whose configuration is kept.
    """

    id: str
    namespace: str
    pod: str
    at: int
    learner: str = ""
    session_id: str = ""
    definition: str = ""
    version: str = ""
    labels: dict[str, str] = {}
    grade: Verdict | None = None
    shown: str = ""
    devices: tuple[str, ...] = ()
