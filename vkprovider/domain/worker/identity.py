"""Whether two CMLWorkers are one CML controller, which would open the same ports for the labs of both.

CML has no id of its own outside its system API, which only `stats: On` may ask. So several kinds of evidence are
published in `status.identity` of each CMLWorker, and one in common is enough: the url, the id of the controller's
compute host if CML reports it, and a few labs, whose ids no other controller has.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from vkprovider.api.errors import InputError
from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import WorkerReason
from vkprovider.domain.worker.secrets import host_of

_LABS_MAX: Final = 3
_URL, _HOST, _LAB = "url:", "host:", "lab:"


def evidence_of(url: str, host: str, lab_ids: AbstractSet[str] | None, before: Iterable[str]) -> list[str]:
    """Return what identifies the controller of a worker.

    Args:
        url: The CMLWorker's.
        host: Id of the controller's compute host; "" while it is unknown.
        lab_ids: All labs on it; None while they are unknown.
        before: What was published last. Labs that are still there are kept, so that the status rarely changes.

    >>> evidence_of("https://cml-1.example.com/", "", {"b", "a"}, ["lab:c", "lab:b"])
    ['url:cml-1.example.com', 'lab:a', 'lab:b']
    """
    address = _URL + (host_of(url) or url)
    published = list(before)
    if lab_ids is None:
        kept = [entry for entry in published if not entry.startswith(_URL)] if address in published else []
        return [address, *kept]
    labs = [lab for entry in published if entry.startswith(_LAB) and (lab := entry.removeprefix(_LAB)) in lab_ids]
    if len(labs) < _LABS_MAX:
        labs += sorted(lab_ids - set(labs))[: _LABS_MAX - len(labs)]
    return [address, *([_HOST + host] if host else []), *sorted(_LAB + lab for lab in labs)]


def may_be_twin(name: str, evidence: Iterable[str], others: Iterable[CustomResource]) -> bool:
    """Return whether another CMLWorker may be the same controller.

    Only the ids of two compute hosts say that it is not. Labs do not: each publishes a few, and of some time ago.
    """
    mine = _host_in(evidence)
    theirs = [_host_in(other.status.get("identity", ())) for other in others if other.metadata.name != name]
    return any(not mine or not host or host == mine for host in theirs)


def _host_in(evidence: Iterable[str]) -> str:
    return next((entry for entry in evidence if entry.startswith(_HOST)), "")


def same_controller(
    mine: CustomResource, evidence: Iterable[str], lab_ids: AbstractSet[str], others: Iterable[CustomResource]
) -> InputError | None:
    """Return `SameController` for a CMLWorker whose controller an earlier CMLWorker has; None if there is none.

    Args:
        mine: The CMLWorker.
        evidence: Of its controller.
        lab_ids: All labs on it, as far as they are known.
        others: All CMLWorkers; `mine` may be among them.
    """
    known = {*evidence, *(_LAB + lab_id for lab_id in lab_ids)}
    # At every look at every worker: all but the few with something in common are passed over first.
    alike = [other for other in others if not known.isdisjoint(other.status.get("identity", ()))]
    earliest = min(alike, key=_age, default=mine)
    if _age(earliest) >= _age(mine):
        return None
    kind, _, value = next(entry for entry in earliest.status["identity"] if entry in known).partition(":")
    name = earliest.metadata.name
    return InputError(
        WorkerReason.SAME_CONTROLLER,
        f"it is the CML controller of CMLWorker {name} (same {kind}, {value}), which was created earlier; "
        f"learners of both would get the same ports. Delete one of the two: kubectl delete cmlw {mine.metadata.name}",
    )


def _age(resource: CustomResource) -> tuple[str, str]:
    return resource.metadata.creation_timestamp, resource.metadata.name
