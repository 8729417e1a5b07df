"""A lab's notes: whose lab it is, so that it is found again when its title was changed, or its claim was lost.

    vkprovider installation=<UID of the namespace kube-system>
    pod: team/alice
    replica: vkprovider-0, epoch 3
    lablet: {"podUID": "…", "namespace": "team", "pod": "alice", "definition": "netlab", "definitionUID": "…", …}

The first line is the mark of the installation; a lab without exactly that line is foreign. The last line is for us, the
others are for people.
"""

import re
from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.domain.claims.claim import Claim

_LABLET: Final = "lablet: "
_POD: Final = "pod: "
_TITLE: Final = re.compile(r"(?P<definition>.+)-[0-9a-f]{8}-(?P<uid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_LINES_MAX: Final = 8
"""Lines of the notes in which ours are looked for; the author's follow."""


class Origin(msgspec.Struct, frozen=True, rename="camel"):
    """What a lab was imported from.

    Attributes:
        digest: Of the content; "" if the notes do not name it.
    """

    pod_uid: str = msgspec.field(name="podUID")
    namespace: str
    pod: str
    definition: str
    definition_uid: str = msgspec.field(name="definitionUID", default="")
    version: str = ""
    digest: str = ""


_decoder: Final = msgspec.json.Decoder(Origin)


def notes_of(claim: Claim, *, installation: str, replica: str, epoch: int) -> str:
    """Return the notes of a claim's lab."""
    origin = Origin(
        pod_uid=claim.pod_uid,
        namespace=claim.namespace,
        pod=claim.pod,
        definition=claim.definition,
        definition_uid=claim.definition_uid,
        version=claim.version,
        digest=claim.digest,
    )
    return (
        f"{names.mark(installation)}\n{_POD}{claim.namespace}/{claim.pod}\nreplica: {replica}, epoch {epoch}\n"
        f"{_LABLET}{msgspec.json.encode(origin).decode()}"
    )


def origin_of(title: str, notes: str) -> Origin | None:
    """Return what a marked lab was imported from, by its notes, else by its title; None if neither says so."""
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
