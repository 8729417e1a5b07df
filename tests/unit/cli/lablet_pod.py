"""A lablet's Pod, as the commands read it."""

from typing import Any

import msgspec

from vkprovider.classroom.pods import LabletPod


def lablet_pod(
    name: str = "a",
    *,
    notes: dict[str, str] | None = None,
    ready: bool = True,
    containers: tuple[str, ...] = ("lab",),
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> LabletPod:
    """Make a Pod of JSON; `metadata`: further fields of it."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "n", "annotations": notes or {}, **metadata},
            "spec": {
                "containers": [{"name": container, "image": "netlab:1.0"} for container in containers],
                "runtimeClassName": "netlab",
                "nodeSelector": {"vkprovider.io/component": "vnode"},
            },
            "status": {"phase": "Running", "conditions": conditions, "podIP": "198.51.100.1", **(status or {})},
        },
        LabletPod,
    )
