"""The line of labs that wait until they may start: a worker boots only so many at once. Pure.

Labs of users go before warm ones, older ones before younger; every replica sees the same line.
"""

from typing import Final, Literal

from vkprovider.domain.userlab.facts import UserLab

_Place = tuple[bool, float, str]
"""The order of the line: whether the lab is warm, when it was asked for, and a UID."""
WAITS: Final = "waits"
STARTS: Final = "starts"


class Line:
    """Which labs wait, and which start."""

    def __init__(self, starts_max: int) -> None:
        """Begin with nobody in line.

        Args:
            starts_max: Labs that start at once, at most.
        """
        self._starts_max = starts_max
        self._waiting: dict[str, _Place] = {}
        self._starting: set[str] = set()
        self._places: dict[str, int] = {}

    def put(self, namespace: str, lab: UserLab | None) -> list[str]:
        """Note a lab, None if there is none; return the namespaces of those whose place has changed."""
        phase = phase_of(lab) if lab is not None else None
        place = _place_of(lab) if lab is not None and phase == WAITS else None
        starts = phase == STARTS
        if self._waiting.get(namespace) == place and (namespace in self._starting) == starts:
            return []
        before = self._ahead()
        if place is None:
            self._waiting.pop(namespace, None)
        else:
            self._waiting[namespace] = place
        (self._starting.add if starts else self._starting.discard)(namespace)
        order = sorted(self._waiting, key=lambda each: self._waiting[each])
        self._places = {each: at for at, each in enumerate(order)}
        return [each for each, ahead in self._ahead().items() if before.get(each) != ahead]

    @property
    def waiting(self) -> int:
        """How many labs may not start yet."""
        return sum(ahead > 0 for ahead in self._ahead().values())

    @property
    def starting(self) -> int:
        """How many labs start."""
        return len(self._starting)

    def ahead(self, namespace: str) -> int:
        """Return how many labs must have started before this one may; 0 if it may now, or is not in line."""
        place = self._places.get(namespace)
        return max(0, place + 1 - self._free) if place is not None else 0

    def place(self, namespace: str) -> int | None:
        """Return the place of a lab that may not start yet, from 1; None if it may, or is not in line."""
        return self.ahead(namespace) or None

    @property
    def _free(self) -> int:
        return max(0, self._starts_max - len(self._starting))

    def _ahead(self) -> dict[str, int]:
        return {each: self.ahead(each) for each in self._places}


def phase_of(lab: UserLab) -> Literal["waits", "starts"] | None:
    """Return whether a lab waits for its start, or starts; None if it does neither."""
    record = lab.record
    if record.deleted or record.ending is not None or record.outcome is not None or lab.second:
        return None
    if not record.warm and record.request is None:
        return None
    pod = lab.pod if record.warm else lab.own_pod
    if pod is None:
        return "waits"
    return "starts" if lab.ready_at is None and not pod.terminal and pod.metadata.deletion_timestamp is None else None


def _place_of(lab: UserLab) -> _Place:
    record = lab.record
    asked_at = record.request.at if record.request is not None else record.created_at
    return record.warm, float(asked_at), record.uid
