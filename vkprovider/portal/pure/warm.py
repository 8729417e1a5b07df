"""Warm labs: which one a user takes, how many more are made, and which are of no more use."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import ImageType


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
    """Return by family the image of the Pods that wait, of the recommended version and the usual size, and how many."""
    wanted = {}
    for family, number in menu.config.warm.items():
        image = menu._replace(family=family).typed(ImageType.RECOMMENDED)
        if image is not None and number:
            wanted[family] = image.sizes[menu.usual_size(image)].pod_image, number
    return wanted


def plan(labs: Iterable[UserLab], wanted: Mapping[str, tuple[str, int]]) -> WarmPlan:
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
