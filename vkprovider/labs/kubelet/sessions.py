"""Open sessions: how many there are, who has them, and what remains of them: a line of the log, and an Event.

Of the user the kubelet API sees what the API server shows: its own client certificate. Whoever calls directly is seen
by name. The API server's audit log has the user in both cases.
"""

from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from aiohttp import web

from vkprovider.lablet.reasons import Happened
from vkprovider.labs.kubelet.server import Call, failure
from vkprovider.platform.http.connections import uncount
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context

_audit: Final = structlog.get_logger("vkprovider.audit")
_SEEN_MAX: Final = 20_000
_STUCK_S: Final = 4 * 3600.0
"""How long a session may wait for its reader, as in a kubelet (`streamingConnectionIdleTimeout`)."""
_WORDS_CHARS_MAX: Final = 200


class Sessions:
    """The open sessions of a replica.

    Attributes:
        open: How many, by kind: `logs`, `attach`, `exec`, `portForward`.
        total: How many there were.
    """

    def __init__(self, ctx: Context, sessions_max: int) -> None:
        """Create it.

        Args:
            ctx: The replica.
            sessions_max: How many may be open.
        """
        self._ctx = ctx
        self._max = sessions_max
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self.open: Tally[str] = Tally()
        self.total: Tally[str] = Tally()

    @contextmanager
    def counted(self, kind: str, request: web.Request) -> Iterator[None]:
        """Count a session while the block runs; its connection is not one that may be closed for its silence.

        Raises:
            web.HTTPException: 500: there are too many.
        """
        if self.open.total() >= self._max:
            raise failure(
                "as many sessions are open on this replica as VKPROVIDER_KUBELET_SESSIONS_MAX allows "
                f"({self._max}): try again later"
            )
        uncount(request, stuck_s=_STUCK_S)
        self.open[kind] += 1
        self.total[kind] += 1
        try:
            yield
        finally:
            self.open[kind] -= 1

    @contextmanager
    def console(self, kind: str, request: web.Request, call: Call, pod: Pod, container: str) -> Iterator[None]:
        """Count a session that reaches devices, report it on the Pod, and log who had it for how long.

        Raises:
            web.HTTPException: 500: there are too many.
        """
        began = self._ctx.now()
        about = {
            "kind": kind,
            "user": call.user.username,
            "node": call.listener.node,
            "pod": pod.key,
            "container": container,
            "forwarded_for": _word(request, "X-Forwarded-For"),
            "kubectl_session": _word(request, "Kubectl-Session"),
            "client": _word(request, "User-Agent"),
        }
        with self.counted(kind, request):
            self._report(call.user.username, pod, f"{kind} {container}".strip())
            _audit.info("a session begins", **about)
            try:
                yield
            finally:
                _audit.info("a session ends", **about, lasted_s=round(self._ctx.now() - began, 1))

    def _report(self, user: str, pod: Pod, what: str) -> None:
        """Emit an Event at the first session of a user with a Pod that this replica sees."""
        key = pod.metadata.uid, user
        if key in self._seen:
            self._seen.move_to_end(key)
            return
        self._seen[key] = None
        if len(self._seen) > _SEEN_MAX:
            self._seen.popitem(last=False)
        meta = pod.metadata
        ref = ObjectRef("v1", "Pod", meta.namespace, meta.name, meta.uid)
        note = f"{user} has begun a session ({what}); who that is for is in the API server's audit log"
        self._ctx.events.emit(ref, "Normal", Happened.CONSOLE_OPENED, note)


def _word(request: web.Request, header: str) -> str:
    return request.headers.get(header, "")[:_WORDS_CHARS_MAX]
