"""What the replica that leads decides: how many warm labs there are, and who instructs in the lab of a class.

A class is a namespace in which RoleBindings name its instructors. Each of its user labs has one RoleBinding that names
the same people, with the rights of instructors in a lab.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from vkprovider.platform.objects import RoleBinding, Subject
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import ImageType
from vkprovider.portal.pure.record import LabRecord


class WarmPlan(NamedTuple):
    """What is to be done so that enough labs wait.

    Attributes:
        make: The image of the Pod for each lab to make, by family, and how many.
        end: Labs that nobody will take: of an old version, of another family, or too many.
    """

    make: Mapping[str, tuple[str, int]]
    end: tuple[UserLab, ...]


def takeable(labs: Iterable[UserLab], pod_image: str) -> list[UserLab]:
    """Return the warm labs that a user who gets this image may take, the one to try first at the beginning."""
    found = [lab for lab in labs if _serves(lab, pod_image) and lab.ready_at is not None]
    return sorted(found, key=lambda lab: (lab.ready_at or 0.0, lab.record.uid))


def warm_images(menu: Menu) -> dict[str, tuple[str, int]]:
    """Return by family the image of the Pods that wait, of the recommended version and the usual size, and how many.

    None waits of a definition that asks for variables: its lab is imported before anybody has given one.
    """
    wanted = {}
    for family, number in menu.config.warm.items():
        image = menu._replace(family=family).typed(ImageType.RECOMMENDED)
        lab = image.sizes[menu.usual_size(image)] if image is not None else None
        if lab is not None and number and not lab.parameters:
            wanted[family] = lab.pod_image, number
    return wanted


def warm_plan(labs: Iterable[UserLab], wanted: Mapping[str, tuple[str, int]]) -> WarmPlan:
    """Return the labs to make and to end.

    A failed lab counts until its record is removed, so that what cannot be made is not tried without a pause.

    Args:
        labs: All warm labs.
        wanted: By family, from `warm_images`.
    """
    present = [lab for lab in labs if _waits(lab)]
    make, end = {}, [lab for lab in present if _image_of(lab) != wanted.get(lab.record.family, ("", 0))[0]]
    for family, (pod_image, number) in wanted.items():
        current = [lab for lab in present if lab.record.family == family and _image_of(lab) == pod_image]
        end += sorted(current, key=_worth)[number:]
        if len(current) < number:
            make[family] = pod_image, number - len(current)
    return WarmPlan(make, tuple(end))


def _waits(lab: UserLab) -> bool:
    record = lab.record
    return record.warm and not record.deleted and not record.damaged and record.ending is None


def _serves(lab: UserLab, pod_image: str) -> bool:
    pod = lab.own_pod
    whole = pod is not None and not pod.terminal and pod.metadata.deletion_timestamp is None
    return whole and _waits(lab) and lab.record.last_outcome is None and _image_of(lab) == pod_image


def _image_of(lab: UserLab) -> str:
    return lab.record.request.definition if lab.record.request is not None else ""


def _worth(lab: UserLab) -> tuple[bool, bool, float, str]:
    """Return the key by which labs are kept: what has not failed, then what is Ready, then what is older."""
    return lab.record.last_outcome is not None, lab.ready_at is None, lab.record.created_at, lab.record.uid


CLASS_ROLE: Final = "vkprovider-instructor"
"""The ClusterRole of instructors in the namespace of a class."""
LAB_ROLE: Final = "vkprovider-lab-instructor"
"""Their ClusterRole in the namespaces of its user labs: who could make a Pod there would read the variables."""
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
    return binding.binds(CLASS_ROLE)


def is_of_lab(binding: RoleBinding) -> bool:
    """Return whether a RoleBinding is the one of a user lab."""
    ref = binding.role_ref
    return (ref.kind, ref.name, binding.metadata.name) == ("ClusterRole", LAB_ROLE, BINDING)


def names_somebody(subject: Subject, username: str, groups: Collection[str]) -> bool:
    """Return whether a subject is a user, or a group of theirs."""
    return subject.name in groups if subject.kind == "Group" else bool(username) and subject.username == username


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
