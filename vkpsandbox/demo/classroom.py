"""A class: its lablets at one time, how they differ from what is wanted, and its learners, who have no other access.

Learners have neither a right in Kubernetes nor an account of CML.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

from vkprovider.lablet import names
from vkpsandbox import Lds, Sandbox
from vkpsandbox.demo.terminal import Caller

NAMES: Final = (
    *("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "kim", "leo"),
    *("mallory", "nina", "olivia", "peggy", "quentin", "rupert", "sybil", "trent", "ursula", "victor", "wendy", "xena"),
)
ITEM: Final = "task-1"
GOOD, BAD = "router ospf 1", "no idea"
"""Answers to the only item of the exam, one that passes and one that does not."""
_WIPE: Final = re.compile(r'"path":"/api/v0/labs/([0-9a-f-]+)/wipe"')


class Classroom(NamedTuple):
    """The lablets of a namespace.

    Attributes:
        free: Those that nobody has.
        given: Those that learners have, by learner.
        replicas: Of the pool; None without one.
        wipes: How often each lab was wiped, by the id of the lab.
    """

    free: list[dict[str, Any]]
    given: dict[str, dict[str, Any]]
    replicas: int | None
    wipes: Mapping[str, int]

    @property
    def uids(self) -> dict[str, str]:
        """The UID of each learner's Pod."""
        return {learner: pod["metadata"]["uid"] for learner, pod in self.given.items()}

    @property
    def labs(self) -> dict[str, str]:
        """The lab of each learner, as its Pod names it."""
        return self._noted(names.ANNOTATION_LAB_ID)

    @property
    def states(self) -> dict[str, str]:
        """The state of each learner's lablet."""
        return self._noted(names.ANNOTATION_STATE)

    @property
    def ends(self) -> dict[str, datetime]:
        """When the time of each learner ends."""
        return {who: datetime.fromisoformat(end) for who, end in self._noted(names.ANNOTATION_TIMESLOT_END).items()}

    def _noted(self, annotation: str) -> dict[str, str]:
        found = {learner: pod["metadata"]["annotations"].get(annotation) for learner, pod in self.given.items()}
        return {learner: value for learner, value in found.items() if value}


def look(sandbox: Sandbox, namespace: str, pool: str) -> Classroom:
    """Look at the lablets of a namespace, as an admin."""
    found = json.loads(sandbox.kubectl("get", "pods,deployments", f"--namespace={namespace}", "-o", "json").stdout)
    pods = [item for item in found["items"] if item["kind"] == "Pod"]
    pools = [item for item in found["items"] if item["kind"] == "Deployment"]
    logs = (Path(worker.access_log) for worker in sandbox.workers if worker.access_log)
    return Classroom(
        free=[pod for pod in pods if not _learner(pod)],
        given={learner: pod for pod in pods if (learner := _learner(pod))},
        replicas=next((each["spec"]["replicas"] for each in pools if each["metadata"]["name"] == pool), None),
        wipes=Counter(found for log in logs for found in _WIPE.findall(log.read_text())),
    )


def _learner(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("annotations", {}).get(names.ANNOTATION_USERNAME, ""))


def unlike(wanted: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    """List by what that which was found differs from what is wanted.

    >>> unlike({"alice": 1, "bob": 2}, {"alice": 1, "carol": 3})
    ['bob: none instead of 2', 'carol: 3 instead of none']
    """
    keys = sorted({*wanted, *found})
    pairs = {key: (wanted.get(key, "none"), found.get(key, "none")) for key in keys}
    return [
        f"{key}: {there} instead of {there_should}"
        for key, (there_should, there) in pairs.items()
        if there != there_should
    ]


def each(learners: Iterable[str], value: object) -> dict[str, object]:
    """Return the same value for each learner."""
    return dict.fromkeys(learners, value)


def answer_of(learner: str) -> str:
    """Return a learner's answer to the item: every third one's is wrong."""
    return BAD if learner in NAMES[1::3] else GOOD


def verdict_on(learner: str) -> str:
    """Return the verdict by points.json on a learner's answer: whether it passes, and its score."""
    return "yes 100" if answer_of(learner) == GOOD else "no 20"


class Exam:
    """The sessions of a simulated Lab Delivery System, in which the learners work.

    Attributes:
        url: Where it is.
    """

    def __init__(self, lds: Lds) -> None:
        self.url = lds.url
        self._orders = Caller(f"{lds.url}/sim")

    def sessions(self) -> dict[str, str]:
        """Return the sessions by the UID of the lablet's Pod."""
        found = self._orders.expect(HTTPStatus.OK, "GET", "/sessions")
        return {each["client_key"]: each["id"] for each in found if each["state"] != "ARCHIVED"}

    def work(self, session: str, learner: str) -> None:
        """Log in and answer."""
        self._orders.expect(HTTPStatus.OK, "POST", f"/sessions/{session}/log-in")
        answer = {"item": ITEM, "answer": answer_of(learner)}
        self._orders.expect(HTTPStatus.OK, "POST", f"/sessions/{session}/answer", answer)
