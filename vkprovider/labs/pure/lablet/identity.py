"""Whose lab it is, by its notes and description, and which lab is the one of a claim that names none.

The description is for people, and nothing is read from it. Our line in it has a form of its own, so that it is found,
and leaves again, whatever else was written beside it; copies that somebody imports as another topology carry it, too.

The notes name the learner before the learner sees the lab, and the session before it is requested: if the claim is
lost, no edit of the Pod gives that lab to anyone else.

    vkprovider installation=<UID of the namespace kube-system>
    pod: team/alice
    replica: vkprovider-0, epoch 3
    lablet: {"podUID": "…", "namespace": "team", "pod": "alice", "definition": "netlab", …, "learner": "alice", …}

The first line is the mark of the installation; a lab without exactly that line is foreign. The last line is for us, the
others are for people.

Export and import keep a lab's title and notes, so a copy that somebody saved looks like its original. Two things tell
them apart: the note of an import, which is the worker's time before it and stands in the claim and in the lab's notes,
and the time at which the worker created the lab. No two imports of a lablet have the same note, and a lab that was
created later than an import may take is a copy of the imported one. Where that leaves a doubt, nothing is chosen and
nothing is removed.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.observations import IMPORT_S
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session, client_key
from vkprovider.labs.pure.topology.topology import NOTES_CHARS_MAX
from vkprovider.platform.objects import Pod

DESCRIPTION_CHARS_MAX: Final = 4096
_LINE: Final = re.compile(r"^Learner: .* \(vkprovider\)\r?$\n?(?:\r?\n)?", re.MULTILINE)
"""The line with the blank one after it."""


def described(description: str, learner: str) -> str:
    r"""Return a lab's description with its learner, and with no other one; "" is nobody.

    A text that leaves no room for the line stays as its author wrote it.

    >>> described("Learner: bob (vkprovider)\n\nOSPF in two areas", "alice")
    'Learner: alice (vkprovider)\n\nOSPF in two areas'
    """
    own = _LINE.sub("", description)
    if not learner:
        return own
    line = f"Learner: {learner} (vkprovider)"
    whole = f"{line}\n\n{own}" if own else line
    return whole if len(whole) <= DESCRIPTION_CHARS_MAX else own


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


NOTE_S: Final = 20
"""How old a note may be when its import is sent."""
_RESOLUTION_S: Final = 1
"""The resolution of an HTTP date, and of the time at which CML created a lab."""


class KnownLab(msgspec.Struct, frozen=True):
    """A lab that was read.

    Attributes:
        created: ISO 8601; "" if CML does not say.
        origin: What a marked lab was imported from; None if it does not say.
        tags: The tags of a marked lab's devices, by label.
    """

    lab_id: str
    title: str
    marked: bool
    created: str
    origin: Origin | None
    tags: Mapping[str, tuple[str, ...]] = {}


def shown_lab(pod: Pod | None) -> str:
    """Return the id of the lab that a Pod shows, "" if it shows none; it only chooses among labs that bear its UID."""
    return pod.metadata.annotations.get(names.ANNOTATION_LAB_ID, "") if pod is not None else ""


def matches(claim: Claim, labs: Iterable[KnownLab], shown: str) -> list[KnownLab]:
    """Return the labs that may be a claim's.

    Args:
        claim: Names no lab.
        labs: The marked labs that no claim names.
        shown: The id of the lab that the claim's Pod shows; it decides where the claim has no note.
    """
    ours = [lab for lab in labs if lab.title == claim.title or _uid(lab) == claim.pod_uid]
    if claim.asked_at:
        return [lab for lab in ours if _asked(lab) == claim.asked_at and _in_time(lab, unknown=True)]
    return [lab for lab in ours if lab.lab_id == shown] or ours


def certain(claim: Claim, found: Collection[KnownLab], shown: str) -> KnownLab | None:
    """Return the lab that is a claim's for certain, of its `matches`; None if none is."""
    if len(found) != 1:
        return None
    [lab] = found
    return lab if claim.asked_at or shown in {"", lab.lab_id} else None


def is_leftover(claim: Claim, lab: KnownLab, labs: Iterable[KnownLab]) -> bool:
    """Return whether a lab is what an import left behind whose answer was lost, and that was found too late.

    Its note is that of an earlier import of the claim than the one of the claim's lab, so that it is no copy of that.

    Args:
        claim: Of the lab's Pod.
        lab: A marked lab that no claim names.
        labs: All of them: of two with one note, one is a copy, and both stay.
    """
    asked = _asked(lab)
    if not claim.lab_id or not claim.first_asked_at or _uid(lab) != claim.pod_uid:
        return False
    if not claim.first_asked_at <= asked < claim.asked_at or not _in_time(lab, unknown=False):
        return False
    return sum(_asked(other) == asked and _uid(other) == claim.pod_uid for other in labs) == 1


def _in_time(lab: KnownLab, *, unknown: bool) -> bool:
    """Return whether a lab was created within the deadline of the import whose note it has; `unknown` if CML is silent.

    >>> lab = KnownLab("l", "t", True, "2026-01-01T00:01:00+00:00", Origin("u", "n", "p", "d", asked=1767225600))
    >>> _in_time(lab, unknown=False)
    True
    """
    try:
        created = datetime.fromisoformat(lab.created)
    except ValueError:
        return unknown
    at = (created if created.tzinfo is not None else created.replace(tzinfo=UTC)).timestamp()
    asked = _asked(lab)
    return asked - _RESOLUTION_S <= at <= asked + NOTE_S + IMPORT_S + _RESOLUTION_S


def _uid(lab: KnownLab) -> str:
    return lab.origin.pod_uid if lab.origin is not None else ""


def _asked(lab: KnownLab) -> int:
    return lab.origin.asked if lab.origin is not None else 0
