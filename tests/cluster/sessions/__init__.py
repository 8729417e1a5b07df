"""Sessions with the sandbox's LDS: what their tests share."""

from typing import Any

from tests.cluster.test_lablets_life import made
from tests.support.cluster import Cluster
from tests.support.lds import LdsSide
from tests.support.topologies import pod
from tests.support.waiting import until

NOTE = "vkprovider.io/"


def state(found: dict[str, Any] | None) -> str:
    """What a Pod reports as its lablet's state."""
    return str((found or {}).get("metadata", {}).get("annotations", {}).get(f"{NOTE}state", ""))


def learner(name: str, definition_name: str, username: str = "alice", **more: Any) -> dict[str, Any]:
    """A lablet with a user; `notes`: further annotations, the rest goes to its spec."""
    notes = more.pop("notes", {})
    item = pod(name, definition_name, **more)
    item["metadata"]["annotations"] = {f"{NOTE}username": username} | {f"{NOTE}{k}": v for k, v in notes.items()}
    return item


def wait_state(cluster: Cluster, namespace: str, name: str, wanted: str, within_s: float = 90) -> dict[str, Any]:
    """Wait until a Pod reports a state; give the Pod."""

    def there() -> dict[str, Any]:
        now = made(cluster, namespace, name)
        assert state(now) == wanted, (state(now), now["status"])
        return now

    return until(there, within_s)


def session_of(lds: LdsSide, found: dict[str, Any]) -> dict[str, Any]:
    """The session of a Pod: there is one, and the Pod names it."""
    session = lds.session_of(found["metadata"]["uid"])
    assert session is not None
    assert found["metadata"]["annotations"][f"{NOTE}lds-session-id"] == session["id"]
    return session


def told(cluster: Cluster, namespace: str, name: str) -> dict[str, str]:
    """Reason and message of the Events of a Pod."""
    return {event["reason"]: event["message"] for event in cluster.events(namespace, name)}
