"""A lab's notes: whose lab it is, so that it is found again when its title was changed, or its claim was lost.

They name the learner before the learner sees the lab, and the session before it is requested: if the claim is lost, no
edit of the Pod gives that lab to anyone else.

    vkprovider installation=<UID of the namespace kube-system>
    pod: team/alice
    replica: vkprovider-0, epoch 3
    lablet: {"podUID": "…", "namespace": "team", "pod": "alice", "definition": "netlab", …, "learner": "alice", …}

The first line is the mark of the installation; a lab without exactly that line is foreign. The last line is for us, the
others are for people.
"""

import re
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session, client_key
from vkprovider.labs.pure.topology.topology import NOTES_CHARS_MAX

_LABLET: Final = "lablet: "
_POD: Final = "pod: "
_TITLE: Final = re.compile(r"(?P<definition>.+)-[0-9a-f]{8}-(?P<uid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_LINES_MAX: Final = 8
"""Lines of the notes in which ours are looked for; the author's follow."""


class Origin(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a lab was imported from, and whose it is.

    Attributes:
        digest: Of the content; "" if the notes do not name it.
        asked: The worker's time that its claim noted before the import: no two imports of a lablet have the same, and
            a saved copy has that of its original. 0 if the notes do not name it.
        learner: Whose lablet it is; "" while warm.
        deployment: The LDS deployment of the learner's session; "" without one.
        sessions: How many sessions the lablet has had, with the learner's.
        slot_start, slot_end: Of the learner's session.
    """

    pod_uid: str = msgspec.field(name="podUID")
    namespace: str
    pod: str
    definition: str
    definition_uid: str = msgspec.field(name="definitionUID", default="")
    version: str = ""
    digest: str = ""
    asked: int = 0
    learner: str = ""
    deployment: str = ""
    sessions: int = 0
    slot_start: int = 0
    slot_end: int = 0

    @property
    def session(self) -> Session | None:
        """The learner's session, as it was when it was requested; None without one."""
        if not self.deployment:
            return None
        key = client_key(self.pod_uid, self.sessions)
        return Session(self.deployment, key, self.learner, self.slot_start, self.slot_end)


_decoder: Final = msgspec.json.Decoder(Origin)


def notes_of(claim: Claim, *, installation: str, replica: str, epoch: int) -> str:
    """Return the notes of a claim's lab."""
    return (
        f"{names.mark(installation)}\n{_POD}{claim.namespace}/{claim.pod}\nreplica: {replica}, epoch {epoch}\n"
        f"{_line_of(claim)}"
    )


def renewed(notes: str, claim: Claim, *, installation: str, replica: str, epoch: int) -> str:
    """Return the notes of a lab whose learner or session has changed; what others wrote in them stays."""
    lines = notes.split("\n")
    at = next((at for at, line in enumerate(lines[:_LINES_MAX]) if line.startswith(_LABLET)), 0)
    if lines[0].strip() == names.mark(installation) and at:
        renewed = "\n".join([*lines[:at], _line_of(claim), *lines[at + 1 :]])
    else:  # someone has removed ours
        renewed = f"{notes_of(claim, installation=installation, replica=replica, epoch=epoch)}\n\n{notes}"
    return renewed[:NOTES_CHARS_MAX]


def _line_of(claim: Claim) -> str:
    """Return the line that names the lablet."""
    session = claim.session
    origin = Origin(
        pod_uid=claim.pod_uid,
        namespace=claim.namespace,
        pod=claim.pod,
        definition=claim.definition,
        definition_uid=claim.definition_uid,
        version=claim.version,
        digest=claim.digest,
        asked=claim.asked_at,
        learner=claim.learner,
        deployment=session.deployment if session is not None else "",
        sessions=claim.sessions,
        slot_start=session.slot_start if session is not None else 0,
        slot_end=session.slot_end if session is not None else 0,
    )
    return f"{_LABLET}{msgspec.json.encode(origin).decode()}"


def origin_of(title: str, notes: str) -> Origin | None:
    """Return the source of a marked lab's import, by its notes, else by its title; None if neither says so."""
    lines = notes.split("\n", _LINES_MAX)[:_LINES_MAX]
    for line in lines:
        if line.startswith(_LABLET):
            try:
                return _decoder.decode(line.removeprefix(_LABLET))
            except msgspec.MsgspecError:
                break
    found = _TITLE.fullmatch(title)
    pod = next((line.removeprefix(_POD) for line in lines if line.startswith(_POD)), "")
    namespace, _, name = pod.partition("/")
    if found is None or not namespace or not name:
        return None
    return Origin(found["uid"], namespace, name, found["definition"])
