"""What was done to labs, as the workers themselves wrote it down."""

from typing import Any

from tests.support.simulator import Simulator


class History:
    """What anybody has done to labs, since this was made or ever, by the access logs of workers."""

    def __init__(self, *workers: Simulator, ever: bool = False) -> None:
        self._workers = {worker.name: (worker, 0 if ever else worker.last_request()) for worker in workers}

    def entries(self) -> list[dict[str, Any]]:
        """List all attempts to change a lab, in order: access log entries, whose `lab` is now always set."""
        found = []
        for worker, since in self._workers.values():
            for entry in sorted(worker.access_log(since), key=lambda entry: int(entry["number"])):
                parts = entry["path"].split("/")  # /api/v0/labs/<id>[/<operation>]
                if entry["method"] == "GET" or "authenticate" in parts or parts[-1] == "extract_configuration":
                    continue
                found.append({"lab": parts[4] if len(parts) > 4 else "", **entry})
        return found

    def of(self, pod_uid: str) -> list[str]:
        """List what was done to the labs of a Pod: `import`, `start`, `stop`, `wipe`, `DELETE`; not what failed."""
        return [operation(entry) for entry in to_labs_of(pod_uid, self.done())]

    def done(self) -> list[dict[str, Any]]:
        """List the entries that were answered with success."""
        return [entry for entry in self.entries() if 200 <= entry.get("status", 0) < 300]

    def refused(self) -> list[str]:
        """List what was attempted and not answered with success, on any lab."""
        return [operation(entry) for entry in self.entries() if not 200 <= entry.get("status", 0) < 300]


def to_labs_of(pod_uid: str, done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of some entries that changed a lab of a Pod; there may be several, one after the other."""
    labs = {entry["lab"] for entry in done if entry.get("title", "").endswith(pod_uid)}
    return [entry for entry in done if entry["lab"] in labs]


def operation(entry: dict[str, Any]) -> str:
    """Name what an entry of the access log did: `import`, `start`, `stop`, `wipe`, `DELETE`."""
    return str(entry["method"] if entry["method"] == "DELETE" else entry["path"].rsplit("/", 1)[1])
