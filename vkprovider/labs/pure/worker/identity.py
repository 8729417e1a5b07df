"""Whether two CMLWorkers are one CML controller, which would open the same ports for the labs of both.

CML has no id of its own outside its system API, which only `stats: On` may ask. So several kinds of evidence are
published in `status.identity` of each CMLWorker, and one in common is enough: the url, the id of the controller's
compute host if CML reports it, and a few labs, whose ids no other controller has.

CML's user, in `status.user`, tells nothing of the controller: a user that is no administrator sees no labs of others.
So a list without a lab of the claims says that the lab is gone only if an earlier one was asked for by the same user,
and at the same url unless it has other labs of the claims.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.worker.reach import age, entries_of_address
from vkprovider.labs.pure.worker.secrets import host_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count
from vkprovider.platform.objects import CustomResource

_LABS_MAX: Final = 3
_URL, _HOST, _LAB = "url:", "host:", "lab:"
_AGENT: Final = "agent://"
_NOTHING: Final = "Until then nothing is imported again or removed"
AGENTS_OWN: Final = "(the agent's own)"
"""Stands for CML's user where an agent logs in, which does not tell it; no user of CML can be called so."""


class CmlAccess(NamedTuple):
    """Where and by whom the labs of a controller are asked for.

    Attributes:
        url: As an entry of the identity has it; "" if it is unknown.
        user: Of CML, or `AGENTS_OWN`; "" before the login.
    """

    url: str = ""
    user: str = ""

    def differs(self, before: "CmlAccess") -> bool:
        """Return whether it may see other labs than an earlier one, as far as that is known."""
        return bool(before.url and self.url != before.url) or bool(before.user and self.user != before.user)


UNSEEN: Final = CmlAccess()
"""Nobody has seen the labs."""


def access_of(url: str, user: str) -> CmlAccess:
    """Return the access to a controller by a url and a user.

    >>> access_of("https://cml-1.example.com/", "labs")
    CmlAccess(url='cml-1.example.com', user='labs')
    """
    return CmlAccess(host_of(url) or url, user)


def access_in(published: Iterable[str], user: str) -> CmlAccess:
    """Return the access by which the labs were seen last, as identity and user say that were published."""
    return CmlAccess(next((entry.removeprefix(_URL) for entry in published if entry.startswith(_URL)), ""), user)


def unseen_labs(
    worker: str, before: CmlAccess, now: CmlAccess, claimed: AbstractSet[str], lab_ids: AbstractSet[str]
) -> str:
    """Return why a list of labs does not say that the labs of the claims are gone; "" if it does, or has all of them.

    Args:
        worker: The CMLWorker's name.
        before: The access by which labs of the claims were seen.
        now: That of the list.
        claimed: The labs that claims name.
        lab_ids: Those in the list.
    """
    there = claimed & lab_ids
    if there == claimed or not now.differs(before) or (there and before.user in {"", now.user}):
        return ""
    admin = f"make that user an administrator of CML, or {_back(before.user, now.user)}"
    if there:
        return (
            f"{_called(now.user)} sees {len(there)} of {len(claimed)} labs that the worker's claims name, and "
            f"{_called(before.user)} saw: {admin}. If it is an administrator, others were deleted: "
            f"{_called(before.user)} must look once, in a new account if the old one is gone. {_NOTHING}"
        )
    none = f"no lab of the worker's {count(len(claimed), 'claim')}"
    over = (
        f"{_NOTHING}. If those labs are given up for good: kubectl annotate cmlw {worker} "
        f"{names.ANNOTATION_ABANDON}=true, delete the CMLWorker and create it again; Kubernetes removes its Pods, and "
        "those of a Deployment or Job begin again with new labs"
    )
    if now.url != before.url:
        back = "spec.tunnel" if before.url.startswith(_AGENT) else "spec.url"
        return f"{now.url} has {none}, which were seen at {before.url}: put {back} back to what it was. {over}"
    return f"{_called(now.user)} sees {none}, which {_called(before.user)} saw: {admin}. {over}"


def unfound(before: CmlAccess, now: CmlAccess) -> str:
    """Return why lost claims are not rebuilt: not all labs are seen, and an earlier access may see others."""
    who, other = f"{_called(now.user)} at {now.url}", f"{_called(before.user)} may have seen at {before.url}"
    return f"{who} does not see all labs that {other}: put the former user or url back"


def _called(user: str) -> str:
    return "the agent's own user" if user == AGENTS_OWN else f"user {user or '(not known)'}"


def _back(before: str, now: str) -> str:
    """Return how a user of CML is exchanged for the one before."""
    if before == AGENTS_OWN:
        return "have the agent log in itself again, by spec.tunnel and without spec.credentialsSecretName"
    if now == AGENTS_OWN:
        return f"name a Secret of user {before} in spec.credentialsSecretName again"
    return f"put user {before} back into the Secret"


def evidence_of(url: str, host: str, lab_ids: AbstractSet[str] | None, before: Iterable[str]) -> list[str]:
    """Return the identity of a worker's controller.

    Args:
        url: That of the access by which its labs were seen last, or are to be.
        host: Id of the controller's compute host; "" while it is unknown.
        lab_ids: All labs on it; None while they are unknown.
        before: What was published last, and stays until the labs are known. Labs that are still there are kept, so that
            the status rarely changes.

    >>> evidence_of("cml-1.example.com", "", {"b", "a"}, ["lab:c", "lab:b"])
    ['url:cml-1.example.com', 'lab:a', 'lab:b']
    """
    published = list(before)
    if lab_ids is None:
        return published or [_URL + url]
    labs = [lab for entry in published if entry.startswith(_LAB) and (lab := entry.removeprefix(_LAB)) in lab_ids]
    if len(labs) < _LABS_MAX:
        labs += sorted(lab_ids - set(labs))[: _LABS_MAX - len(labs)]
    return [_URL + url, *([_HOST + host] if host else []), *sorted(_LAB + lab for lab in labs)]


def may_be_twin(name: str, evidence: Iterable[str], others: Iterable[CustomResource]) -> bool:
    """Return whether another CMLWorker may be the same controller.

    Only the ids of two compute hosts say that it is not. Labs do not: each publishes a few, and of some time ago.
    """
    mine = _host_in(evidence)
    theirs = (_host_in(worker_status(other).identity or ()) for other in others if other.metadata.name != name)
    return any(not mine or not host or host == mine for host in theirs)


def _host_in(evidence: Iterable[str]) -> str:
    return next((entry for entry in evidence if entry.startswith(_HOST)), "")


def entries_of(evidence: Iterable[str], lab_ids: AbstractSet[str]) -> set[str]:
    """Return all that may show another CMLWorker to be the same controller: the evidence, and every lab on it."""
    return {*evidence, *(_LAB + lab_id for lab_id in lab_ids)}


class Identities:
    """The CMLWorkers by what they have in common, so that a look at one of thousands does not pass by all the others.

    That is what they publish of their controllers, and the addresses at which learners reach them.
    """

    def __init__(self) -> None:
        """Know no CMLWorker yet."""
        self._by_entry: dict[str, dict[str, CustomResource]] = {}

    def changed(self, old: CustomResource | None, new: CustomResource | None) -> None:
        """Note a change of a CMLWorker; a handler for an informer."""
        if old is not None:
            for entry in _shared_by(old):
                sharing = self._by_entry.get(entry, {})
                sharing.pop(old.metadata.name, None)
                if not sharing:
                    self._by_entry.pop(entry, None)
        if new is not None:
            for entry in _shared_by(new):
                self._by_entry.setdefault(entry, {})[new.metadata.name] = new

    def sharing(self, entries: Iterable[str]) -> list[CustomResource]:
        """Return the CMLWorkers that have at least one of some entries."""
        found = {name: other for entry in entries for name, other in self._by_entry.get(entry, {}).items()}
        return list(found.values())


def same_controller(
    mine: CustomResource, entries: AbstractSet[str], alike: Iterable[CustomResource]
) -> InputError | None:
    """Return `SameController` for a CMLWorker whose controller an earlier CMLWorker has; None if there is none.

    Args:
        mine: The CMLWorker.
        entries: Of its controller, see `entries_of`.
        alike: The CMLWorkers that publish one of them; `mine` may be among them.
    """
    earliest = min(alike, key=age, default=mine)
    if age(earliest) >= age(mine):
        return None
    kind, _, value = next(entry for entry in worker_status(earliest).identity or () if entry in entries).partition(":")
    name = earliest.metadata.name
    return InputError(
        WorkerReason.SAME_CONTROLLER,
        f"it is the CML controller of CMLWorker {name} (same {kind}, {value}), which was created earlier; "
        f"learners of both would get the same ports. Delete one of the two: kubectl delete cmlw {mine.metadata.name}",
    )


def _shared_by(resource: CustomResource) -> set[str]:
    return {*(worker_status(resource).identity or ()), *entries_of_address(resource)}
