"""The simulated LDS of a sandbox, as a test without an event loop sees it: its API, and what learners do in it."""

from typing import Any

from tests.support.asking import ask
from vkpsandbox import Lds


class LdsSide:
    """Look at the sessions of a simulated LDS, act as their learners, and make it misbehave."""

    def __init__(self, lds: Lds) -> None:
        self.lds = lds
        self.process = lds.process

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send one request, with the token; give the status and the decoded answer.

        Raises:
            OSError: If nothing listens.
        """
        return ask(self.lds.url, method, path, body, self.lds.token)

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Call the API below `/api/v1`."""
        return self._good(*self.request(method, f"/api/v1{path}", body))

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """Call the simulator's own interface below `/sim`."""
        return self._good(*self.request(method, f"/sim{path}", body))

    def sessions(self) -> list[dict[str, Any]]:
        """List all sessions with their devices, also archived ones: `id`, `username`, `state`, `client_key`, …"""
        sessions: list[dict[str, Any]] = self.admin("GET", "/sessions")
        return sessions

    def session_of(self, client_key: str) -> dict[str, Any] | None:
        """Find the session with a client key that is not archived; there must not be two."""
        live = [one for one in self.sessions() if one["client_key"] == client_key and one["state"] != "ARCHIVED"]
        assert len(live) <= 1, live
        return live[0] if live else None

    def act(self, session: str, act: str, body: object = None) -> None:
        """Do what a learner does: `log-in`, `finish`, `pause`, `resume`; `answer` and `say` with a body."""
        self.admin("POST", f"/sessions/{session}/{act}", body)

    def fault(self, kind: str, route: str = "", **how: object) -> None:
        """Put a fault of requests in force; see `vkpsim.http.faults`."""
        self.admin("POST", "/faults", {"kind": kind, "route": route, **how})

    def event_fault(self, kind: str, type: str = "", **how: object) -> None:  # noqa: A002 (as in the fault)
        """Put a fault of events in force; see `vkpsim.lds.events.eventfaults`."""
        self.admin("POST", "/event-faults", {"kind": kind, "type": type, **how})

    def clear_faults(self) -> None:
        """End all faults and every silence."""
        self.admin("DELETE", "/faults")
        self.admin("DELETE", "/event-faults")

    def silence(self, seconds: float, mode: str = "refuse") -> None:
        """Be down for a while: `refuse` closes the listener, `hold` accepts and never answers."""
        self.admin("POST", "/silence", {"seconds": seconds, "mode": mode})

    def deliveries(self, since: int = 0) -> list[dict[str, Any]]:
        """List the tries to deliver events: `number`, `event`, `type`, `session`, `target`, `status` …"""
        deliveries: list[dict[str, Any]] = self.admin("GET", f"/deliveries?since={since}")
        return deliveries

    def access_log(self, since: int = 0) -> list[dict[str, Any]]:
        """List requests: `number`, `method`, `path`, `status`, `session`, `arrived_unix_s` …"""
        entries: list[dict[str, Any]] = self.admin("GET", f"/access-log?since={since}")
        return entries

    @staticmethod
    def _good(status: int, answer: Any) -> Any:
        assert status < 400, answer
        return answer
