"""Pods share what they have in common: those of one template differ in their names, their times and their labs.

A thousand Pods of one Deployment are a thousand specs, labels and conditions, word for word the same. Whatever equals
what the last such Pod had is replaced by that, which takes a comparison and no copy.
"""

from typing import Any, Final

from msgspec.structs import force_setattr

from vkprovider.api.objects import Pod, share_nothings

_KEPT_MAX: Final = 1024
_RUNNING: Final[dict[str, dict[str, Any]]] = {"running": {}}


class PodSharing:
    """Makes Pods smaller that were just decoded.

    They lose what no controller reads: whose they are, and since when conditions and containers are as they are.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], Any] = {}

    def __call__(self, pod: Pod) -> Pod:
        """Change a Pod that nobody else has yet; give it back."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        class_, phase = spec.runtime_class_name, status.phase
        force_setattr(meta, "owner_references", [])
        share_nothings(meta)
        force_setattr(meta, "labels", self._alike(meta.labels, "labels", class_))
        force_setattr(pod, "spec", self._alike(spec, "spec", class_, spec.node_name))
        if status.conditions:
            for condition in status.conditions:
                force_setattr(condition, "last_transition_time", None)
            count = str(len(status.conditions))
            force_setattr(status, "conditions", self._alike(status.conditions, "conditions", phase, count))
        if status.container_statuses:
            for container in status.container_statuses:
                if "running" in container.state:
                    force_setattr(container, "state", _RUNNING)
            shared = self._alike(status.container_statuses, "containers", class_, phase)
            force_setattr(status, "container_statuses", shared)
        return pod

    def _alike(self, part: Any, *key: str) -> Any:
        """Give what the last Pod of this kind had, if it is the same."""
        last = self._last.get(key)
        if last == part:
            return last
        if len(self._last) >= _KEPT_MAX:
            self._last.clear()
        self._last[key] = part
        return part
