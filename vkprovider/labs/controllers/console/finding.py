"""Which device a container is, and which port of CML's host leads to a port of a Pod."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.observations import BOOTED, STARTED, DeviceFact
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.lablet.index import Lablet
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.kubelet.spi import Target
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.console.manners import WITHOUT_CONSOLE
from vkprovider.labs.pure.console.ports import PortRoute, screen_of, way_to
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.platform.errors import Fenced, InputError, NotFound, Unavailable

MOVED: Final = "this worker moved to another replica: run the command again"
ENDED: Final = "the lablet has ended"
TIME_OVER: Final = "the learner's time with it is over"
_ON: Final = frozenset({BOOTED, STARTED})


@dataclass(frozen=True, slots=True)
class FoundLablet:
    """A lablet with a lab, on a worker that this replica acts for."""

    worker: Worker
    lablet: Lablet
    claim: Claim
    content: Content | None


@dataclass(frozen=True, slots=True)
class FoundDevice:
    """A device of a lablet.

    Attributes:
        place: The lablet.
        fact: The device as it was observed last.
    """

    place: FoundLablet
    fact: DeviceFact

    @property
    def worker(self) -> Worker:
        """Its worker."""
        return self.place.worker

    @property
    def label(self) -> str:
        """Its label."""
        return self.fact.label

    @property
    def lab_id(self) -> str:
        """Its lab."""
        return self.place.claim.lab_id

    @property
    def is_on(self) -> bool:
        """Whether it runs, by what was observed last."""
        return self.fact.state in _ON


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds lablets and their devices.

    Attributes:
        lablets: By Pod UID.
        workers: Those that this replica acts for, by name.
        contents: By digest.
    """

    lablets: Mapping[str, Lablet]
    workers: Mapping[str, Worker]
    contents: Mapping[str, Content]

    def place(self, namespace: str, pod: str, uid: str = "") -> FoundLablet:
        """Find a lablet.

        Raises:
            NotFound: There is no such Pod here.
            Unavailable: Another replica acts for its worker.
            InputError: `NoLab`.
        """
        lablet = self.lablets.get(uid) if uid else self._by_name(namespace, pod)
        if lablet is None or lablet.pod is None:
            raise NotFound(f'pods "{pod}" not found', status=404)
        worker = self.workers.get(lablet.worker)
        if worker is None:
            raise Unavailable(MOVED)
        check(worker)
        claim = worker.claims.claims.get(lablet.uid)
        if claim is None or not claim.lab_id:
            raise InputError(ConsoleReason.NO_LAB, f"pod {pod} has no lab yet: see `kubectl describe pod {pod}`")
        return FoundLablet(worker, lablet, claim, self.contents.get(claim.digest))

    def _by_name(self, namespace: str, pod: str) -> Lablet | None:
        for lablet in self.lablets.values():
            if lablet.pod is not None and lablet.pod.key == f"{namespace}/{pod}":
                return lablet
        return None

    async def device(self, target: Target, *, named: str = "") -> FoundDevice:
        """Find a device with a console, by its container or, in a session with the lablet as a whole, by its name.

        Raises:
            InputError: `NotADevice`, `NoLab`, `NoConsole`.
            OutsideError: The worker did not answer; `NotFound`: there is no such Pod here.
        """
        device = await self.any_device(target, named=named)
        fact = device.fact
        if fact.definition in WITHOUT_CONSOLE:
            text = f"CML has no console for {fact.label}: a device of the kind {fact.definition} never has one"
            raise InputError(ConsoleReason.NO_CONSOLE, text)
        return device

    async def any_device(self, target: Target, *, named: str = "") -> FoundDevice:
        """Find a device, with a console or without, as `device` does.

        Raises:
            InputError: `NotADevice`, `NoLab`.
            OutsideError: As in `device`.
        """
        place = self.place(target.namespace, target.pod, target.uid)
        facts = await facts_of(place)
        containers = _containers(place, facts)
        by_label = {fact.label: fact for fact in facts}
        fact = by_label.get(named) or by_label.get(containers.get(named or target.container, ""))
        if fact is None:
            known = ", ".join(containers)
            what = f"device {named!r} of pod {target.pod}" if named else f"container {target.container}"
            hint = "" if named else f". For one without a container: kubectl lablet console {target.pod} DEVICE"
            raise InputError(ConsoleReason.NOT_A_DEVICE, f"{what} is not a device of the lab, which has {known}{hint}")
        return FoundDevice(place, fact)

    async def is_whole(self, target: Target) -> bool:
        """Return whether a container is the lablet as a whole, and no device.

        Raises:
            InputError: `NoLab`.
            OutsideError: As in `device`.
        """
        place = self.place(target.namespace, target.pod, target.uid)
        return target.container not in _containers(place, await facts_of(place))

    async def running(self, target: Target, *, named: str = "") -> FoundDevice:
        """Find a device that runs.

        Raises:
            InputError: `DeviceOff`; as in `device`.
            OutsideError: As in `device`.
        """
        device = await self.device(target, named=named)
        if not device.is_on:
            text = f"{device.label} of pod {target.pod} does not run: it is {device.fact.state}"
            raise InputError(ConsoleReason.DEVICE_OFF, text)
        return device

    def again(self, device: FoundDevice) -> FoundDevice:
        """Return a device as it is known now, as long as the learner has it for whom it was found.

        Raises:
            NotFound: Its lablet has ended, or is not that learner's any more.
            Unavailable: Another replica acts for its worker, or its lab is being replaced.
        """
        place = device.place
        worker = self.workers.get(place.lablet.worker)
        claim = worker.claims.claims.get(place.lablet.uid) if worker is not None else None
        if worker is None or claim is None or not claim.lab_id:
            pod = place.lablet.pod
            if pod is None or pod.terminal or pod.metadata.deletion_timestamp is not None:
                raise NotFound(ENDED)
            raise Unavailable(MOVED if worker is None else "the lab is being replaced: run the command again later")
        if place.claim.learner and claim.learner != place.claim.learner:
            raise NotFound(TIME_OVER)
        facts = worker.seen.devices.get(claim.lab_id, ())
        fact = next((fact for fact in facts if fact.label == device.label), None)
        return FoundDevice(FoundLablet(worker, place.lablet, claim, place.content), fact or device.fact)

    def way(self, namespace: str, pod: str, port: int) -> tuple[FoundLablet, PortRoute]:
        """Find where a port of a Pod leads.

        Raises:
            InputError: `UnknownPort`, `AmbiguousPort`, `NoLab`.
            OutsideError: As in `place`.
        """
        place = self.place(namespace, pod)
        return place, way_to(topology_of(place).template, place.claim.ports, port, pod=pod)

    async def screen(self, target: Target, device: str) -> tuple[FoundLablet, PortRoute]:
        """Find the screen of a device that runs.

        Raises:
            InputError: `NoScreen`; as in `running`.
            OutsideError: As in `device`.
        """
        found = await self.running(target, named=device)
        place, pod = found.place, target.pod
        return place, screen_of(topology_of(place).template, place.claim.ports, found.label, pod=pod)


def check(worker: Worker) -> None:
    """Check that this replica acts for a worker now.

    Raises:
        Unavailable: It does not.
    """
    with told():
        worker.guard()


@contextmanager
def told() -> Iterator[None]:
    """Tell a user who asks for what another replica owns that the next try reaches it.

    Raises:
        Unavailable: Instead of `Fenced`.
    """
    try:
        yield
    except Fenced:
        raise Unavailable(MOVED) from None


def topology_of(place: FoundLablet) -> Topology:
    """Return the topology of a lablet.

    Raises:
        Unavailable: It is not known yet.
    """
    if place.content is None:
        raise Unavailable(f"the content of pod {place.claim.pod} is not known yet")
    return place.content.topology


async def facts_of(place: FoundLablet) -> tuple[DeviceFact, ...]:
    """Return the devices of a lablet, as they were observed last."""
    facts = place.worker.seen.devices.get(place.claim.lab_id)
    return facts if facts is not None else await place.worker.labs.list_devices(place.claim.lab_id)


def _containers(place: FoundLablet, facts: tuple[DeviceFact, ...]) -> dict[str, str]:
    """Return the label of the device by the name of its container."""
    if place.content is not None:
        return {device.container: device.label for device in place.content.topology.devices}
    taken = {names.LAB_CONTAINER}
    return {names.container_name(fact.label, taken): fact.label for fact in facts}
