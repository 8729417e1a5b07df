"""Who instructs in the lab of a class: the people whom RoleBindings of the class name, and nobody else.

A class is a namespace in which RoleBindings name its instructors. Each of its user labs has one RoleBinding that names
the same people, with the rights of instructors in a lab.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from vkprovider.platform.objects import RoleBinding, Subject
from vkprovider.portal.pure.record import LabRecord

CLASS_ROLE: Final = "vkprovider-instructor"
"""The ClusterRole of instructors in the namespace of a class."""
LAB_ROLE: Final = "vkprovider-lab-instructor"
"""Their ClusterRole in the namespaces of its user labs: who could make a Pod there would read the learner's token."""
BINDING: Final = "instructors"
"""The name of the RoleBinding in the namespace of a user lab."""


class Bind(NamedTuple):
    """Have the RoleBinding of a lab name exactly these people.

    Attributes:
        subjects: The people, sorted.
        present: The RoleBinding that is there, whose version is a precondition; None to create it.
    """

    subjects: tuple[Subject, ...]
    present: RoleBinding | None


class Unbind(NamedTuple):
    """Delete the RoleBinding of a lab.

    Attributes:
        present: The RoleBinding, whose UID is a precondition.
    """

    present: RoleBinding


def of_class(bindings: Iterable[RoleBinding]) -> tuple[Subject, ...]:
    """Return the instructors that the RoleBindings of a namespace name, each once."""
    mine = [binding for binding in bindings if is_of_class(binding)]
    return tuple(sorted({subject for binding in mine for subject in binding.subjects or ()}))


def is_of_class(binding: RoleBinding) -> bool:
    """Return whether a RoleBinding makes people instructors of its namespace."""
    return (binding.role_ref.kind, binding.role_ref.name) == ("ClusterRole", CLASS_ROLE)


def is_of_lab(binding: RoleBinding) -> bool:
    """Return whether a RoleBinding is the one of a user lab."""
    ref = binding.role_ref
    return (ref.kind, ref.name, binding.metadata.name) == ("ClusterRole", LAB_ROLE, BINDING)


def names_somebody(subject: Subject, username: str, groups: Collection[str]) -> bool:
    """Return whether a subject is a user, or a group of theirs."""
    match subject.kind:
        case "User":
            return subject.name == username
        case "Group":
            return subject.name in groups
        case "ServiceAccount":
            return username == f"system:serviceaccount:{subject.namespace}:{subject.name}"
        case _:
            return False


def change(record: LabRecord, instructors: tuple[Subject, ...], present: RoleBinding | None) -> Bind | Unbind | None:
    """Return what is to be written so that a lab has the instructors of its class; None if it has them.

    A lab that is being deleted gets none, for its Namespace takes nothing new. It loses those who are none any more,
    because the Namespace may take long to end.

    Args:
        record: The lab's.
        instructors: Those of the class that the record names.
        present: The RoleBinding of the lab.
    """
    has = tuple(sorted(set(present.subjects or ()))) if present is not None else ()
    wanted = instructors if record.class_ else ()
    if record.deleted:
        wanted = tuple(each for each in wanted if each in has)
    if not wanted:
        return Unbind(present) if present is not None else None
    if has == wanted:
        return None
    return Bind(wanted, present)
