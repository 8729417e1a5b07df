"""Notes that somebody has typed at a console of a lablet, for the report `vkprovider.io/last-activity`."""

from collections.abc import Callable
from dataclasses import dataclass

from vkprovider.labs.controllers.console.finding import FoundLablet
from vkprovider.labs.pure.console import activity
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class Noting:
    """Notes input, at most once a minute for each lablet; what is noted is written with the Pod's status.

    Attributes:
        ctx: The replica.
        wake: Queue a lablet, by Pod UID.
    """

    ctx: Context
    wake: Callable[[str], None]

    def typed(self, place: FoundLablet) -> None:
        """Note that keys were passed on to a device of a lablet."""
        lablet, pod = place.lablet, place.lablet.pod
        claim = place.worker.claims.claims.get(lablet.uid)
        if pod is None or claim is None:
            return
        noted = activity.noted(lablet.activity, pod.metadata.annotations, claim.learner, self.ctx.now_unix)
        if noted is not lablet.activity:
            lablet.activity = noted
            self.wake(lablet.uid)
