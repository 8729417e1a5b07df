"""Pods as the demo looks at them: whether they are Ready, why not, and whether each has its lab."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from vkprovider.platform.messages import count
from vkpsandbox.demo.labs import Lab


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


def names(items: Iterable[dict[str, Any]]) -> list[str]:
    """Join the names of objects."""
    return [item["metadata"]["name"] for item in items]
