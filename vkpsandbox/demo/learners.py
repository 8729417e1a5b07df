"""The learners of a class, who have neither a right in Kubernetes nor an account of CML."""

import json
import urllib.request
from typing import Any, Final

from vkprovider.platform.errors import VkproviderError
from vkpsandbox import Lds

NAMES: Final = (
    *("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "kim", "leo"),
    *("mallory", "nina", "olivia", "peggy", "quentin", "rupert", "sybil", "trent", "ursula", "victor", "wendy", "xena"),
)
ITEM: Final = "task-1"
GOOD, BAD = "router ospf 1", "no idea"
"""Answers to the only item of the exam, one that passes and one that does not."""
_DEADLINE_S: Final = 10.0


def answer_of(learner: str) -> str:
    """Return a learner's answer to the item: every third one's is wrong."""
    return BAD if learner in NAMES[1::3] else GOOD


def verdict_on(learner: str) -> str:
    """Return the verdict by points.json on a learner's answer: whether it passes, and its score."""
    return "yes 100" if answer_of(learner) == GOOD else "no 20"


class Exam:
    """The sessions of a simulated Lab Delivery System, in which the learners work."""

    def __init__(self, lds: Lds) -> None:
        self.url = lds.url

    def sessions(self) -> dict[str, str]:
        """Return the sessions by the UID of the lablet's Pod."""
        return {one["client_key"]: one["id"] for one in self._ask("GET", "/sessions") if one["state"] != "ARCHIVED"}

    def work(self, session: str, learner: str) -> None:
        """Log in and answer."""
        self._ask("POST", f"/sessions/{session}/log-in")
        self._ask("POST", f"/sessions/{session}/answer", {"item": ITEM, "answer": answer_of(learner)})

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Give an order to the simulator.

        Raises:
            VkproviderError: It does not answer, or refuses.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/sim{path}", data, headers, method=method)  # noqa: S310 (ours)
        try:
            with urllib.request.urlopen(request, timeout=_DEADLINE_S) as answer:  # noqa: S310 (ours)
                text = answer.read()
        except OSError as error:
            raise VkproviderError(f"the Lab Delivery System at {self.url}: {error}") from error
        return json.loads(text) if text else None
