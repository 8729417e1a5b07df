"""What keeps lablets of a LabletDefinition from working although its content is good: said before a learner waits."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.controllers.secrets import read_device_secret
from vkprovider.labs.pure.definition.content import Content, charged, versions_of_few
from vkprovider.labs.pure.definition.fitting import Room, room_of, too_large, too_new
from vkprovider.labs.pure.lablet.exposing import unknown_slots
from vkprovider.labs.pure.worker.secrets import secrets_of
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.messages import Fault, listed
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context

_NAMED_MAX: Final = 5
"""The most devices in a message."""


class Impediments:
    """Checks what a definition needs beside its content: a worker that is large and new enough, and a Secret."""

    def __init__(
        self, ctx: Context, workers: Callable[[], Collection[CustomResource]], port_range: tuple[int, int]
    ) -> None:
        """Create it.

        Args:
            ctx: The replica.
            workers: Returns all CMLWorkers.
            port_range: First and last external port of a worker whose spec names none.
        """
        self._ctx = ctx
        self._workers = workers
        self._port_range = port_range
        self._rooms: dict[str, tuple[tuple[int, str], Room]] = {}  # by UID, with generation and version

    async def of(self, spec: LabletDefinitionSpec, kept: list[Content]) -> list[Fault]:
        """Return the impediments.

        Args:
            spec: The definition's.
            kept: The versions that new Pods may run, newest first.
        """
        if not kept:
            return []
        topology = kept[0].topology
        found = [Fault(DefinitionReason.IMPORT_DOUBTFUL, text) for text in (*topology.faults, *topology.doubts)]
        found += [Fault(DefinitionReason.TAG_UNCLEAR, text) for text in topology.suspect_tags()]
        rooms = self._all_rooms()
        if text := too_new(versions_of_few(kept), spec.environment, rooms):
            found.append(Fault(DefinitionReason.TOPOLOGY_TOO_NEW, text))
        if text := too_large(charged(kept), spec.environment, rooms):
            found.append(Fault(DefinitionReason.TOO_LARGE, text))
        if spec.device_secret_name is not None:
            try:
                await read_device_secret(self._ctx, spec.device_secret_name, secrets_of(self._workers()))
            except InputError as error:
                found.append(error.fault)
            except OutsideError:
                pass  # it cannot be told now
        expose = spec.expose
        if expose is not None and (unknown := unknown_slots(expose.ports or (), topology.template)):
            named = listed([repr(name) for name in unknown], _NAMED_MAX)
            text = f"spec.expose.ports names what is no port of the topology: {named}"
            found.append(Fault(DefinitionReason.EXPOSED_PORT_UNKNOWN, text))
        if topology.unreached:
            found.append(Fault(DefinitionReason.PAT_UNREACHABLE, _unreached(topology.unreached)))
        return found

    def _all_rooms(self) -> list[Room]:
        """Return the capacities of the workers; a spec is parsed once."""
        before, self._rooms = self._rooms, {}
        for worker in self._workers():
            meta = worker.metadata
            known = before.get(meta.uid)
            state = (meta.generation, str(worker.status.get("cmlVersion", "")))
            if known is None or known[0] != state:
                known = (state, room_of(worker, self._port_range))
            self._rooms[meta.uid] = known
        return [room for _, room in self._rooms.values()]


def _unreached(labels: Sequence[str]) -> str:
    named = listed([repr(label) for label in labels], _NAMED_MAX)
    return f"CML passes no `pat:` port on to {named}: no link joins it with an external connector"
