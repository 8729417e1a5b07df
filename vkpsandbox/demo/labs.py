"""The labs of simulated workers, by Cisco's own client, `virl2-client`, and whether Pods are Ready and have theirs."""

import contextlib
import importlib.util
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from vkprovider.platform.messages import count
from vkpsandbox import Worker
from vkpsandbox.demo.terminal import DemoError


class Lab(NamedTuple):
    """A lab, as its worker lists it.

    Attributes:
        worker: The worker's name.
        title: The lab's title; that of a lablet ends with its Pod's UID.
        state: Such as `STARTED`.
        devices: Label and state of each, such as `h0 BOOTED`.
    """

    worker: str
    title: str
    state: str
    devices: str


class Labs:
    """The labs of several workers, foreign ones included."""

    def __init__(self, workers: list[Worker]) -> None:
        """Log in to every worker.

        Raises:
            DemoError: If a worker refuses, or the client is not installed.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an imported library, irrelevant here
            from virl2_client import ClientLibrary  # noqa: PLC0415 (optional)
        logging.getLogger("virl2_client").setLevel(logging.ERROR)  # it warns that it does not check certificates
        self.workers = [worker.name for worker in workers]
        self._clients: dict[str, Any] = {}
        for worker in workers:
            account = (worker.url, worker.username, worker.password)
            with _translated(worker.name):
                self._clients[worker.name] = ClientLibrary(*account, ssl_verify=False, raise_for_auth_failure=True)

    def read(self) -> list[Lab]:
        """List all labs with the states of their devices.

        Raises:
            DemoError: If a worker does not answer.
        """
        from virl2_client.exceptions import LabNotFound  # noqa: PLC0415 (optional)

        found = []
        for worker, client, lab_id in self._listed():
            with _translated(worker), contextlib.suppress(LabNotFound):  # deleted since, as a trial of a definition is
                lab = client.join_existing_lab(lab_id)
                devices = ", ".join(f"{node.label} {node.state}" for node in lab.nodes())
                found.append(Lab(worker, lab.title, lab.state(), devices))
        return found

    def left(self) -> list[str]:
        """List all labs as `worker: id`, even those that are about to vanish.

        Raises:
            DemoError: If a worker does not answer.
        """
        return [f"{worker}: lab {lab_id}" for worker, _, lab_id in self._listed()]

    def _listed(self) -> Iterator[tuple[str, Any, str]]:
        """Yield the worker, its client and the id of each lab."""
        for worker, client in self._clients.items():
            with _translated(worker):
                listed = client.get_lab_list(show_all=True)
            yield from ((worker, client, lab_id) for lab_id in listed)


def differences(pods: list[dict[str, Any]], labs: list[Lab]) -> list[str]:
    """Compare pods and labs: each Pod has one started lab on the worker of its Node, and there is no other lab.

    Args:
        pods: As the API server has them.
        labs: As the workers list them.
    """
    expected = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods}
    counts = Counter(uid_of(lab.title) for lab in labs)
    wrong = [
        f"pod {uid} on {node} has {count(counts[uid], 'lab')}" for uid, node in expected.items() if counts[uid] != 1
    ]
    for lab in labs:
        node = expected.get(uid_of(lab.title))
        if node is None:
            wrong.append(f"lab {lab.title} on {lab.worker} belongs to no pod")
        elif node != f"vnode.{lab.worker}":
            wrong.append(f"lab {lab.title} is on {lab.worker}, its pod on {node}")
        elif lab.state != "STARTED":
            wrong.append(f"lab {lab.title} on {lab.worker} is {lab.state}")
    return wrong


def uid_of(title: str) -> str:
    """Return the Pod's UID: the last 36 characters of a lab's title."""
    return title[-36:]


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a Pod is Ready."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def why_not_ready(pod: dict[str, Any]) -> str:
    """Return why a Pod waits, in the words of its status."""
    status = pod.get("status", {})
    waits = [entry.get("state", {}).get("waiting", {}) for entry in status.get("containerStatuses", [])]
    said = [f"{wait.get('reason', '')}: {wait.get('message', '')}" for wait in waits if wait]
    unscheduled = [entry.get("message", "") for entry in status.get("conditions", []) if entry["status"] == "False"]
    return f"({'; '.join(filter(None, said or unscheduled[:1])) or status.get('phase', 'unknown')})"


def require() -> None:
    """Check that the client is installed.

    Raises:
        DemoError: If it is not.
    """
    if importlib.util.find_spec("virl2_client") is None:
        raise DemoError(
            "the demo reads the labs with Cisco's own client, which is not installed: "
            "run `pip install virl2-client==2.10.1`"
        )


@contextmanager
def _translated(worker: str) -> Iterator[None]:
    """Translate the errors of the client and of its HTTP library.

    Raises:
        DemoError: If the client raises anything.
    """
    try:
        yield
    except Exception as error:
        raise DemoError(f"the labs of {worker} cannot be read: {type(error).__name__}: {error}") from error
