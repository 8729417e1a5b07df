"""What is told about a lablet: its Pod's status, Events about it, its state in the metrics."""

from collections.abc import Mapping
from typing import Final

import structlog

from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.lablet.statuses import publish
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet import intent, lifecycle
from vkprovider.domain.lablet.facts import Report
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.status import NO_EXTRAS, Extras
from vkprovider.domain.topology import mappings as portmap
from vkprovider.kube.events import ObjectRef

_log: Final = structlog.get_logger(__name__)


class Teller:
    """Tells about lablets."""

    def __init__(self, ctx: Context, contents: Mapping[str, Content], workers: Mapping[str, Worker]) -> None:
        """Take the replica, the contents by digest, and the workers that are ours."""
        self._ctx = ctx
        self._contents = contents
        self._workers = workers

    def move(self, lablet: Lablet, state: State) -> None:
        """Note the state that a lablet is in."""
        old, counters = lablet.state, self._ctx.counters
        if old is state:
            return
        if not lifecycle.allowed(old, state):
            counters.transitions_refused += 1
            _log.warning("a state follows that may not", pod=lablet.uid, old=old, new=state)
        key = (str(old or ""), str(state))
        counters.transitions[key] = counters.transitions.get(key, 0) + 1
        lablet.state = state

    def warn(self, lablet: Lablet, reason: str, note: str) -> None:
        """Emit a Warning once, however often it is found to be true."""
        before, lablet.warned = lablet.warned, (reason, note)
        if before != lablet.warned and not (before is None and _says(lablet, reason, note)):
            self.emit(lablet, "Warning", reason, note)

    def emit(self, lablet: Lablet, type_: str, reason: str, note: str) -> None:
        """Emit an Event about a lablet's Pod."""
        pod = lablet.pod
        if pod is not None:
            meta = pod.metadata
            ref = ObjectRef("v1", "Pod", meta.namespace, meta.name, meta.uid)
            worker = self._workers.get(lablet.worker)
            guard = worker.guard if worker is not None else None
            self._ctx.events.emit(ref, "Warning" if type_ == "Warning" else "Normal", reason, note, guard=guard)

    async def publish(
        self, lablet: Lablet, worker: Worker, report: Report | None, *, urgent: bool = False
    ) -> float | None:
        """Make the Pod's status say what is reported; returns after how many seconds to come back, if ever.

        Raises:
            OutsideError: The write failed.
            Fenced: The node is not ours any more.
        """
        pod = lablet.pod
        if report is None or pod is None:
            return None
        claim = worker.claims.claims.get(lablet.uid)
        content = self._contents.get(claim.digest) if claim is not None else None
        devices = intent.devices_of(pod, content) if content is not None else {}
        ip = worker.ip
        mappings = portmap.rendered(content.topology.template, claim.ports) if content and claim else ""
        extras = Extras(mappings, lablet.ports_open) if mappings else NO_EXTRAS
        return await publish(
            self._ctx, pod, report, claim, devices, ip, lablet.written, extras, guard=worker.guard, urgent=urgent
        )


def _says(lablet: Lablet, reason: str, note: str) -> bool:
    """Tell whether the Pod's status says so already: an earlier replica has told it."""
    statuses = lablet.pod.status.container_statuses if lablet.pod is not None else []
    waiting = [status.state.get("waiting", {}) for status in statuses]
    return any(w.get("reason") == reason and w.get("message", "").startswith(note) for w in waiting)
