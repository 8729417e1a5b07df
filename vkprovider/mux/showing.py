"""What muxes show on their Services: the annotations `channels`, `topology` and `summary`.

They are written apart from passes: a patch of a Service with a thousand ports takes the API server a second at times,
for which no changed backend should wait.
"""

from collections.abc import Mapping

from vkprovider.mux.effects.reports import mux_annotations
from vkprovider.mux.effects.store import Writes
from vkprovider.mux.events import Events
from vkprovider.mux.index import SERVICES, Service, is_leaving
from vkprovider.mux.memory import MuxMemory
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.settings import MuxSettings
from vkprovider.platform.errors import Forbidden, Invalid
from vkprovider.platform.kube.queue import DONE, Result
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.ownership import Ownership


class Showing:
    """Writes what muxes show."""

    def __init__(
        self,
        ctx: Context,
        settings: MuxSettings,
        ownership: Ownership,
        memory: MuxMemory,
        writes: Writes,
        events: Events,
    ) -> None:
        """Write nothing yet.

        Args:
            ctx: The replica.
            settings: How muxes are served.
            ownership: Which muxes this replica serves.
            memory: The last pass over each.
            writes: Carries out writes.
            events: Tells of what was done.
        """
        self._ctx = ctx
        self._prefix = settings.prefix
        self._every_s = settings.queue_timeout_s
        self._ownership = ownership
        self._memory = memory
        self._writes = writes
        self._events = events
        self._services = Resource(ctx.kube, SERVICES)

    async def show(self, key: str) -> Result:
        """Write what the last pass over a mux found, once in a while.

        Raises:
            Fenced: This replica no longer serves it, or may not act for a while.
            Conflict: Somebody has written the Service meanwhile.
        """
        seen = self._memory.seen.get(key)
        if seen is None:
            return DONE
        guard, ref = self._ownership.guard(key), seen.service.ref
        wanted = mux_annotations(seen.service, seen.channels, seen.plan, seen.sources, self._prefix)
        if _shows(seen.service, wanted):
            return DONE
        wait_s = self._memory.annotated_at.get(key, float("-inf")) + self._every_s - self._ctx.now()
        if wait_s > 0:
            return Result(max(0.1, wait_s))
        services = self._services.within(ref.namespace)
        service = await services.get(ref.name)  # the pass may be older than what was written here last
        if service is None or is_leaving(service, self._prefix) or _shows(service, wanted):
            return DONE
        body, version = {"metadata": {"annotations": wanted}}, service.metadata.resource_version
        what = f"patch the annotations of mux {ref}"
        patched = services.metadata_only
        try:
            await self._writes.send(
                what, body, lambda: patched.patch(ref.name, body, resource_version=version, guard=guard)
            )
        except (Forbidden, Invalid) as error:
            self._ctx.events.emit(service.about, "Warning", MuxReason.MUX_WRITE_REFUSED, error.message, guard=guard)
            return Result(self._every_s)
        self._memory.annotated_at[key] = self._ctx.now()
        text = next(text for name, text in wanted.items() if name.endswith("summary"))
        self._events.happened(key, service.about, MuxReason.MUX_ANNOTATIONS_UPDATED, text, guard)
        return DONE


def _shows(service: Service, wanted: Mapping[str, str]) -> bool:
    return all(service.metadata.annotations.get(name) == text for name, text in wanted.items())
