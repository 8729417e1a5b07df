"""A lablet that its learner shares with guests, to watch or to type, by whoever runs the class.

The Pod names the guests (`lablet.guests`), and is written first; the RoleBinding of its assignment follows (`access`),
so that a guest has the Role on that Pod which its learner has, and loses it with the assignment. That a guest only
watches is kept by the portal, which opens their consoles without input; it holds for all who come by a link, whose
token no browser sees. Who has a token of the cluster could type by kubectl: RBAC knows no exec without input.
"""

from collections.abc import Callable
from typing import NamedTuple

from vkprovider.classroom.access import guests_let_in, let_in, open_access
from vkprovider.classroom.links import LinkRound, end_guest_link, make_guest_link
from vkprovider.classroom.pods import TRIES, LabletPod, change, pods_in
from vkprovider.lablet import names
from vkprovider.lablet.guests import GUESTS_MAX, GuestMode, guests_in, guests_note
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import KubeClient

_Decision = Callable[[LabletPod], dict[str, GuestMode]]
"""Called with a Pod before each attempt to write it; returns its guests, or raises `SharingError`."""


class SharingError(Exception):
    """A lablet cannot be shared so; the text says why, and what to do about it."""


class SharedLablet(NamedTuple):
    """What became of it.

    Attributes:
        pod: As it was written.
        links: The guest's link, if there was to be one.
        closed: Whom the lablet does not let in, and why: sentences; see `access.open_access`.
    """

    pod: LabletPod
    links: LinkRound = LinkRound()
    closed: tuple[str, ...] = ()


async def share(
    kube: KubeClient,
    namespace: str,
    name: str,
    guest: str,
    mode: GuestMode,
    *,
    link: bool = False,
    learner: str | None = None,
) -> SharedLablet:
    """Let a guest into a learner's lablet; repeat it at will, also to change the mode.

    Args:
        kube: The API server, with the rights of whoever runs the class.
        namespace: Of the class.
        name: Of the Pod.
        guest: A name as learners have them: of a user of the cluster without the prefix.
        mode: Whether the guest watches or types.
        link: Whether the guest gets a link, too, in the place of an earlier one.
        learner: Who must have the lablet; None for anybody.

    Raises:
        SharingError: It cannot be shared so.
        OutsideError: The API server did not do it.
    """
    guest = guest.strip()

    def with_guest(pod: LabletPod) -> dict[str, GuestMode]:
        if pod.over or not pod.user:
            raise SharingError(f"pod/{name} has no learner who could share it; assign it first")
        _check_learner(pod, learner)
        if guest == pod.user:
            raise SharingError(f"pod/{name} is the lablet of {guest}")
        found = {**pod.guests, guest: mode}
        if len(found) > GUESTS_MAX:
            raise SharingError(f"pod/{name} has {GUESTS_MAX} guests already: {', '.join(sorted(pod.guests))}")
        if not guests_in({names.ANNOTATION_GUESTS: guests_note(found) or ""}):
            raise SharingError("name a guest, in 256 printable characters at most")
        return found

    pod = await _written(kube, namespace, name, with_guest)
    made = await make_guest_link(kube, pod, guest) if link else LinkRound()
    return SharedLablet(pod, made, await let_in(kube, namespace, [pod]))


async def unshare(
    kube: KubeClient, namespace: str, name: str, guest: str, *, learner: str | None = None
) -> SharedLablet:
    """Let a guest into a lablet no more; what is open ends within a minute. Repeat it where it was interrupted.

    For the arguments see `share`.

    Raises:
        SharingError: There is no such guest.
        OutsideError: The API server did not do it.
    """
    there: set[str] = set()

    def without(pod: LabletPod) -> dict[str, GuestMode]:
        _check_learner(pod, learner)
        there.update(pod.guests)
        return {other: mode for other, mode in pod.guests.items() if other != guest}

    pod = await _written(kube, namespace, name, without)
    had_link = await end_guest_link(kube, pod, guest)
    if guest not in there and not had_link and guest not in await guests_let_in(kube, pod):
        others = ", ".join(sorted(pod.guests))
        raise SharingError(f"{guest} is no guest of pod/{name}" + (f", which has {others}" if others else ""))
    return SharedLablet(pod, closed=await open_access(kube, namespace, [pod]))


def _check_learner(pod: LabletPod, learner: str | None) -> None:
    if learner is not None and pod.user != learner:
        raise SharingError(f"pod/{pod.metadata.name} is the lablet of {pod.user or 'nobody'} now, not of {learner}")


async def _written(kube: KubeClient, namespace: str, name: str, decide: _Decision) -> LabletPod:
    """Write the guests of a Pod, decided by the Pod as it is.

    Raises:
        SharingError: There is no such Pod, or `decide` raises it.
        OutsideError: The API server did not do it.
    """
    for _ in range(TRIES):
        pod = await pods_in(kube, namespace).get(name)
        if pod is None or not pod.is_lablet:
            raise SharingError(f"there is no lablet pod/{name} in namespace {namespace}")
        if (guests := decide(pod)) == pod.guests:
            return pod
        try:
            return await change(kube, pod, annotations={names.ANNOTATION_GUESTS: guests_note(guests)}, unchanged=True)
        except Conflict:
            continue
    raise SharingError(f"pod/{name} is written to all the time; try again")
