"""The line of labs that wait until they may start: a worker boots only so many at once.

`portal.pure.state` says who is in line; here it is asked only when a change of a lab can move the line.
"""

from collections.abc import Mapping

from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.state import UserLabStatus, places, status_of


class Line:
    """Which labs wait for their start, and how long the line is before each."""

    def __init__(self, starts_max: int) -> None:
        """Begin with nobody in line.

        Args:
            starts_max: Labs that start at once, at most.
        """
        self._starts_max = starts_max
        self._pending: dict[str, UserLab] = {}
        self._ahead: Mapping[str, int] = {}

    def put(self, namespace: str, lab: UserLab | None) -> list[str]:
        """Note a lab, None if there is none; return the namespaces of those whose place has changed."""
        if lab is not None and status_of(lab) is not UserLabStatus.PENDING:
            lab = None
        old = self._pending.get(namespace)
        if _standing(old) == _standing(lab):
            return []
        if lab is None:
            self._pending.pop(namespace, None)
        else:
            self._pending[namespace] = lab
        before, self._ahead = self._ahead, places(self._pending.values(), self._starts_max)
        uids = {each: lab.record.uid for each, lab in self._pending.items()}
        return [each for each, uid in uids.items() if before.get(uid) != self._ahead.get(uid)]

    @property
    def waiting(self) -> int:
        """How many labs may not start yet."""
        return sum(ahead > 0 for ahead in self._ahead.values())

    def ahead(self, namespace: str) -> int:
        """Return how many labs must have started before this one may; 0 if it may now, or is not in line."""
        lab = self._pending.get(namespace)
        return self._ahead.get(lab.record.uid, 0) if lab is not None else 0


def _standing(lab: UserLab | None) -> object:
    """Return what counts in the line of a lab that is pending: nothing else moves it."""
    if lab is None:
        return None
    return (
        lab.record.uid,
        lab.record.request and lab.record.request.at,
        lab.second,
        lab.own_pod is None,
        lab.pod is None,
        lab.ready_at is None,
        lab.pod is not None and lab.pod.terminal,
    )
