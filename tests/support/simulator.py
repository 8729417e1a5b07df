"""One simulated worker, as a test sees it: its labs through the CML API, its behaviour through `/sim`."""

from typing import Any

from tests.support.asking import ask
from vkpsandbox import Worker


class Simulator:
    """Look at the labs of a simulated worker, and make it misbehave."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.name = worker.name
        self.node = worker.node
        self.process = worker.process
        self.password = worker.password
        self._token = ""

    def request(self, method: str, path: str, body: object = None, token: str = "") -> tuple[int, Any]:
        """Send one request; give the status and the decoded answer.

        Raises:
            OSError: If nothing listens.
        """
        return ask(self.worker.url, method, path, body, token)

    # -------------------------------------------------------------------------------------- as CML
    def cml(self, method: str, path: str, body: object = None) -> Any:
        """Call the CML API below `/api/v0`, logged in as the worker's account."""
        answer: Any = None
        for _ in range(2):
            if not self._token:
                account = {"username": self.worker.username, "password": self.password}
                status, self._token = self.request("POST", "/api/v0/authenticate", account)
                assert status == 200, self._token
            status, answer = self.request(method, f"/api/v0{path}", body, self._token)
            if status != 401:
                assert status < 400, answer
                return answer
            self._token = ""
        raise AssertionError(f"{self.name} refuses a new token: {answer}")

    def labs(self) -> list[dict[str, Any]]:
        """List all labs with their details: `id`, `lab_title`, `lab_notes`, `state`, `owner`, …"""
        return [self.cml("GET", f"/labs/{lab}") for lab in self.cml("GET", "/labs?show_all=true")]

    def lab_of(self, pod_uid: str) -> dict[str, Any] | None:
        """Find the lab whose title ends with a Pod's UID; there must not be two."""
        found = [lab for lab in self.labs() if lab["lab_title"].endswith(pod_uid)]
        assert len(found) <= 1, found
        return found[0] if found else None

    def devices(self, lab_id: str) -> list[dict[str, Any]]:
        """List the nodes of a lab with their details: `id`, `label`, `state`, `booted`, …"""
        nodes: list[dict[str, Any]] = self.cml("GET", f"/labs/{lab_id}/nodes?data=true")
        return nodes

    # -------------------------------------------------------------------------------------- under /sim
    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Call the simulator's own interface below `/sim`."""
        status, answer = self.request(method, f"/sim{path}", body)
        assert status < 400, answer
        return answer

    def fault(self, kind: str, route: str = "", **how: object) -> None:
        """Put a fault in force; see `vkpsim.http.faults`: `fault("status", "/start$", status=503, count=3)`."""
        self.admin("POST", "/faults", {"kind": kind, "route": route, **how})

    def clear_faults(self) -> None:
        """End all faults and every silence."""
        self.admin("DELETE", "/faults")

    def silence(self, seconds: float, mode: str = "hold") -> None:
        """Be silent for a while: `hold` accepts and never answers, `refuse` closes the listener."""
        self.admin("POST", "/silence", {"seconds": seconds, "mode": mode})

    def crash(self, lab_id: str, device: str) -> None:
        """Let a device, named by id or label, power itself off."""
        self.admin("POST", f"/nodes/{lab_id}/{device}/crash")

    def reboot(self) -> None:
        """Restart the host: whatever was active is stopped."""
        self.admin("POST", "/reboot")

    def set_password(self, password: str) -> None:
        """Change the password of the worker's account and end its sessions."""
        self.admin("PUT", "/password", {"password": password})
        self.password, self._token = password, ""

    def access_log(self, since: int = 0) -> list[dict[str, Any]]:
        """List requests: `number`, `method`, `path`, `status`, `title` of an import, `arrived_unix_s` …"""
        entries: list[dict[str, Any]] = self.admin("GET", f"/access-log?since={since}")
        return entries

    def last_request(self) -> int:
        """Give the number of the last request, for `access_log(since=…)`."""
        return max((int(entry["number"]) for entry in self.access_log()), default=0)
