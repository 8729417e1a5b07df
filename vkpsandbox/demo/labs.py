"""Read the labs of simulated workers with Cisco's own client, `virl2-client`."""

import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from vkprovider.platform.errors import VkproviderError
from vkpsandbox import Worker


class LabsError(VkproviderError):
    """The labs cannot be read; the message says what to do."""


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
            LabsError: If a worker refuses, or the client is not installed.
        """
        require()
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
            LabsError: If a worker does not answer.
        """
        from virl2_client.exceptions import LabNotFound  # noqa: PLC0415 (optional)

        found = []
        for name, client in self._clients.items():
            with _translated(name):
                for lab_id in client.get_lab_list(show_all=True):
                    with contextlib.suppress(LabNotFound):  # it was deleted since, as the trial of a definition is
                        lab = client.join_existing_lab(lab_id)
                        devices = ", ".join(f"{node.label} {node.state}" for node in lab.nodes())
                        found.append(Lab(name, lab.title, lab.state(), devices))
        return found

    def left(self) -> list[str]:
        """List all labs as `worker: id`, even those that are about to vanish.

        Raises:
            LabsError: If a worker does not answer.
        """
        found = []
        for name, client in self._clients.items():
            with _translated(name):
                found += [f"{name}: lab {lab_id}" for lab_id in client.get_lab_list(show_all=True)]
        return found


def require() -> None:
    """Check that the client is installed.

    Raises:
        LabsError: If it is not.
    """
    if importlib.util.find_spec("virl2_client") is None:
        raise LabsError(
            "the demo reads the labs with Cisco's own client, which is not installed: "
            "run `pip install virl2-client==2.10.1`"
        )


@contextmanager
def _translated(worker: str) -> Iterator[None]:
    """Translate the errors of the client and of its HTTP library.

    Raises:
        LabsError: If the client raises anything.
    """
    try:
        yield
    except Exception as error:
        raise LabsError(f"the labs of {worker} cannot be read: {type(error).__name__}: {error}") from error
