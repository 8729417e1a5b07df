"""Who is known to attend a class, by what is bound in its namespace; and what to say of learners whom nothing knows."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from vkprovider.classroom.access import BINDINGS, username_prefix
from vkprovider.classroom.roster import look_alikes
from vkprovider.lablet import names
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import RoleBinding

_NAMED_MAX: Final = 5


class Attendance(NamedTuple):
    """Who attends a class.

    Attributes:
        learners: Users who are bound by name, without the prefix of usernames; in order.
        groups: Groups that are bound: whoever is in them is known to the issuer of tokens alone.
    """

    learners: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def attendance_in(bindings: Iterable[RoleBinding], prefix: str) -> Attendance:
    """Return who attends a class, by the RoleBindings of its namespace."""
    subjects = {
        each for binding in bindings if binding.binds(names.ROLE_CLASS_LEARNER) for each in binding.subjects or ()
    }
    users = {each.username.removeprefix(prefix) for each in subjects if each.username}
    return Attendance(tuple(sorted(users)), tuple(sorted({each.name for each in subjects if each.kind == "Group"})))


def strangers(learners: Iterable[str], known: Attendance, prefix: str, namespace: str) -> str:
    """Say which learners are nobody who attends the class; "" if that cannot be told, or all are known.

    Args:
        learners: Who gets a lablet.
        known: Who attends the class.
        prefix: What usernames begin with in the cluster.
        namespace: Of the class.
    """
    unknown = [learner for learner in learners if learner not in known.learners]
    if not known.learners or known.groups or not unknown:
        return ""
    who = listed(unknown, _NAMED_MAX)
    example = prefix + unknown[0]
    spelt = [one for one, _ in look_alikes(unknown, known.learners) if one in known.learners]
    meant = (
        f"; {listed(spelt, _NAMED_MAX)} {'is' if len(spelt) == 1 else 'are'} spelt otherwise in the list"
        if spelt
        else ""
    )
    return (
        f"{who}: nobody of that name attends the class {namespace}, where {names.ROLE_CLASS_LEARNER} is bound to "
        f"{listed(known.learners, _NAMED_MAX)}{meant}. The lablet opens for whoever is {example} to the cluster, as "
        "`kubectl auth whoami` says it, and for nobody who logs in under another name"
    )


async def unknown_among(kube: KubeClient, namespace: str, learners: Iterable[str]) -> str:
    """Say which learners are nobody who attends the class; "" if that cannot be told, or all are known.

    Raises:
        OutsideError: The API server did not answer.
    """
    try:
        prefix = await username_prefix(kube, namespace)
        bindings = await Resource(kube, BINDINGS, namespace).list()
    except Forbidden:
        return ""
    return strangers(learners, attendance_in(bindings, prefix), prefix, namespace)
