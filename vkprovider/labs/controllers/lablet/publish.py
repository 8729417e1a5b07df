"""Publishes what is decided about a lablet: its Pod's status, Events, and counts of its states.

A status is written only if it changed: what a user or a controller acts on at once, mere progress later or never.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet import exposure, standing
from vkprovider.lablet import ports as portmap
from vkprovider.lablet.standing import State
from vkprovider.labs.controllers.counters import STATUS_ANSWERED, STATUS_SENT, Counters
from vkprovider.labs.controllers.lablet.index import Lablet, Written
from vkprovider.labs.controllers.lablet.ports import slice_of
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import intent
from vkprovider.labs.pure.lablet import status as podstatus
from vkprovider.labs.pure.lablet.exposing import Exposing, read_slice
from vkprovider.labs.pure.lablet.facts import Report
from vkprovider.labs.pure.lablet.status import Extras, LabletStatus
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.messages import Notice
from vkprovider.platform.objects import EndpointSlice, Pod
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_SAME_HEADLINE_S: Final = 1.0
_PATIENCE: Final = 16
_PATIENCE_S_MAX: Final = 5.0
"""Progress is written after so many times what the API server takes to answer, for the slower it is, the less it should
get; but after so many seconds at the latest, for a learner watches."""
_BUSY_S: Final = 1.0
"""How soon progress is looked at again that the API server has no time for."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes status, Events and states of lablets.

    Attributes:
        contents: By digest.
        slices: The EndpointSlices of exposed lablets, by `namespace/name`.
        wake: Queue a lablet, by Pod UID.
        announce: Called with a worker, a lab's id and a text that the open consoles of that lab are to show.
    """

    ctx: Context
    counters: Counters
    settings: LabletSettings
    contents: Mapping[str, Content]
    slices: Mapping[str, EndpointSlice]
    wake: Callable[[str], None]
    announce: Callable[[str, str, str], None]

    def count_transition(self, uid: str, old: State | None, new: State | None) -> None:
        """Count a change of a lablet's state."""
        if new is None or old is new:
            return
        counters = self.counters
        if not standing.allowed(old, new):
            counters.transitions_refused += 1
            _log.warning("a state follows that may not", pod=uid, old=old, new=new)
        key = (str(old or ""), str(new))
        counters.transitions[key] = counters.transitions.get(key, 0) + 1

    def emit(self, lablet: Lablet, worker: Worker, notices: Iterable[Notice]) -> None:
        """Emit Events on a lablet's Pod; those of some reasons are shown on its open consoles, too."""
        pod, claim = lablet.pod, worker.claims.claims.get(lablet.uid)
        if pod is not None:
            meta = pod.metadata
            ref = ObjectRef("v1", "Pod", meta.namespace, meta.name, meta.uid)
            for notice in notices:
                self.ctx.events.emit(ref, notice.type, notice.reason, notice.message, guard=worker.guard)
                if notice.reason.announced and claim is not None and claim.lab_id:
                    self.announce(worker.name, claim.lab_id, notice.message)

    async def publish(
        self, lablet: Lablet, worker: Worker, report: Report | None, *, urgent: bool = False
    ) -> float | None:
        """Write the Pod's status, if it differs from the report and the write is due.

        Args:
            lablet: Whose Pod.
            worker: The lablet's.
            report: None leaves the status as it is.
            urgent: Do not hold the write back as mere progress.

        Returns:
            After how many seconds the write is due; None if the status says what is reported.

        Raises:
            OutsideError: The write failed.
        """
        pod, written, ctx = lablet.pod, lablet.written, self.ctx
        if report is None or pod is None:
            return None
        claim = worker.claims.claims.get(lablet.uid)
        wanted = self._wanted(lablet, worker, pod, report, claim)
        known = written.status
        if known is None or _number(pod) >= written.version:
            known = podstatus.read_status(pod, wanted)
        if wanted == known:
            written.progress_since = 0.0
            return None
        now = ctx.now()
        if not written.progress_since:
            written.progress_since = now
        acted_on = _is_acted_on(wanted, known)
        left = self._due_at(wanted, known, written, at_once=acted_on, urgent=urgent) - now
        if left > 0:
            return left
        if ctx.kube.flow.busy and not acted_on and not urgent:
            return _BUSY_S  # waiting for its turn, it would hold up the lablet's next step
        body, meta = podstatus.patch(pod, wanted, claim, ctx.now_unix), pod.metadata
        pods = ctx.api.pods.within(meta.namespace).metadata_only
        guard = self.counters.timeline.sending(lablet.uid, STATUS_SENT, worker.guard)
        lane = Lane.RESULT if acted_on else Lane.WORK
        changes, written.sending = lablet.changes, True
        try:
            after = await pods.patch_status(meta.name, body, strategic=True, uid=meta.uid, guard=guard, lane=lane)
            written.status, written.version = wanted, int(after.metadata.resource_version or 0)
        except (NotFound, Conflict):
            return None  # gone, or the name is another Pod's already: the watch is about to show it
        finally:
            written.sending = False
            if lablet.changes != changes and not _is_echo(lablet, changes):
                self.wake(lablet.uid)
        written.at, written.progress_since = ctx.now(), 0.0
        self.counters.status_writes += 1
        self.counters.timeline.note(lablet.uid, STATUS_ANSWERED)
        return None

    def _wanted(self, lablet: Lablet, worker: Worker, pod: Pod, report: Report, claim: Claim | None) -> LabletStatus:
        content = self.contents.get(claim.digest) if claim is not None else None
        devices = intent.devices_of(pod, content) if content is not None else {}
        told = content is not None and claim is not None and claim.ports_fault is None
        mappings = portmap.rendered(content.topology.template, claim.ports) if told and content and claim else ""
        ports_open = lablet.ports_open if mappings else None
        extras = Extras(mappings, ports_open, self._access(lablet.uid), lablet.activity, worker.spec.cml_url)
        return podstatus.render(pod, report, claim, devices, worker.seen.ip, extras)

    def _access(self, uid: str) -> str:
        """Return the answer of the mux to which ports of a lablet are lent; "" if none are."""
        found = slice_of(self.slices, self.ctx.namespace, uid)
        if found is None or found.metadata.deletion_timestamp is not None:
            return ""
        seen, answer = read_slice(found)
        return exposure.encode_answer(Exposing(seen=seen, answer=answer).access) if seen is not None else ""

    def _due_at(
        self, wanted: LabletStatus, known: LabletStatus, written: Written, *, at_once: bool, urgent: bool
    ) -> float:
        """Return when a change is due: at once if a user or a controller acts on it, progress later."""
        same = wanted.headline == known.headline
        if at_once or (urgent and not same):
            return 0.0
        if urgent or not wanted.is_progress:
            return written.at + _SAME_HEADLINE_S
        if same:
            return max(written.at, written.progress_since) + self.settings.progress_every_s
        patience_s = min(_PATIENCE * self.ctx.kube.flow.took_s, _PATIENCE_S_MAX)
        after_s = max(self.settings.progress_after_s, patience_s)
        return max(written.progress_since, written.at) + after_s


def _is_acted_on(wanted: LabletStatus, known: LabletStatus) -> bool:
    """Return whether a user or a controller acts on a change; when Ready turns False, traffic must stop."""
    return wanted.headline != known.headline and (not wanted.is_progress or known.headline[1] == "True")


def _is_echo(lablet: Lablet, changes: int) -> bool:
    """Return whether the only change of a Pod since the write of its status began is that write."""
    return lablet.changes == changes + 1 and lablet.pod is not None and _number(lablet.pod) == lablet.written.version


def _number(pod: Pod) -> int:
    version = pod.metadata.resource_version
    return int(version) if version.isdigit() else 0
