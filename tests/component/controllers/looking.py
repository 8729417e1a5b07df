"""Wait for what a test expects, and read it from objects and from the log of a simulator."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.support.apiserver import until
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.http.access_log import Entry

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], what: str) -> T:
    """Return the first truthy answer; say what did not happen otherwise."""
    try:
        return await until(look)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


async def when(predicate: Callable[[], T], what: str) -> T:
    """Return the first truthy answer of a plain function."""

    async def look() -> T:
        return predicate()

    return await eventually(look, what)


def rows_of(config_map: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the rows of a claims ConfigMap, by Pod UID."""
    if config_map is None:
        return {}
    document = json.loads(config_map["data"]["allocations.json"])
    return {row["podUID"]: row for row in document["lablets"]}


def condition(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a condition of an object; without one its status is empty."""
    found = item.get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == kind), {"status": "", "reason": "", "message": ""})


def is_ready(item: dict[str, Any]) -> bool:
    """Return whether a Node or a Pod is Ready."""
    return bool(condition(item, "Ready")["status"] == "True")


def waiting(pod: dict[str, Any], container: str = "lab") -> dict[str, Any]:
    """Return why a container waits; empty if it does not."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    found: dict[str, Any] = next((s["state"].get("waiting", {}) for s in statuses if s["name"] == container), {})
    return found


def requests(simulator: CmlSimulator, method: str, ending: str) -> list[Entry]:
    """Return the requests that a simulator answered with success, by method and the end of the path."""
    return [
        entry
        for entry in simulator.log.entries
        if entry.method == method and entry.path.endswith(ending) and entry.status < 300
    ]


def imports(simulator: CmlSimulator) -> list[Entry]:
    """Return the imports that a simulator carried out."""
    return [entry for entry in simulator.log.entries if entry.lab]


def labs(simulator: CmlSimulator) -> dict[str, str]:
    """Return the state of every lab of a simulator, by title."""
    return {lab.title: str(lab.state) for lab in simulator.simulation.world.labs.values()}
