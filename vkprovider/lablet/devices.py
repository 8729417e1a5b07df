"""The devices of a lablet with their states, and the ports, as its Pod reports them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.exposure import Access
from vkprovider.lablet.models.status import DefinitionStatus, ShownDevice
from vkprovider.lablet.ports import INFRASTRUCTURE_NODE_TYPES, PortInfo
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import LabletObject, has_ended
from vkprovider.lablet.standings import Tone
from vkprovider.platform.objects import ContainerStatus
from vkprovider.platform.reasons import reason_of

_answers: Final = msgspec.json.Decoder(dict[str, Access])
_infos: Final = msgspec.json.Decoder(dict[str, PortInfo])


class Port(msgspec.Struct, frozen=True, rename="camel"):
    """One port, as `-o json` shows it.

    Attributes:
        name: By which `kubectl lablet forward` knows it.
        device: The device's label.
        access: The way in: `serial`, `vnc`, `pat` …
        address: Of the worker.
        port: On the worker.
        container: The Pod's container that stands for the device; "" if there is none.
        original_port: The placeholder in the topology.
        internal_port: The device's own port behind it; null for its consoles.
        transport: `tcp` or `udp`; empty if an older version reported it.
        opened: Whether CML listens there.
        via: The address and port of the mux to which the port is lent, or why it has none; "" if it is lent to none.
    """

    name: str
    device: str
    access: str
    address: str
    port: int
    container: str
    original_port: int
    internal_port: int | None
    transport: str
    opened: bool
    via: str

    @property
    def can_be_forwarded(self) -> bool:
        """Whether `kubectl port-forward` leads there: it has no UDP."""
        return self.opened and self.transport != "udp"


def reported_ports(pod: LabletObject, containers: Mapping[str, str]) -> list[Port]:
    """Parse the ports that a Pod reports.

    Args:
        pod: A lablet's.
        containers: Device label → container name, as far as it is known.

    Raises:
        MsgspecError: The annotation is invalid.
    """
    text = pod.metadata.annotations.get(names.ANNOTATION_PORT_MAPPINGS, "")
    if not text:
        return []
    infos = _infos.decode(text)
    via = _via_of(pod)
    there = {container.name for container in pod.spec.containers}
    labels = {info.device_label for info in infos.values()}
    guessed = Counter(names.container_name(label, set()) for label in labels)

    def container_of(label: str) -> str:
        """Return the container that the definition names, else the only one that the label can mean."""
        name = containers.get(label) or names.container_name(label, set())
        known = label in containers or guessed[name] == 1
        return name if name in there and known else ""

    found = [
        Port(
            name=key,
            device=info.device_label,
            access=info.protocol,
            address=pod.status.pod_ip,
            port=info.allocated_port,
            container=container_of(info.device_label),
            original_port=info.original_port,
            internal_port=info.internal_port,
            transport=info.transport,
            opened=info.opened,
            via=access.text if (access := via.get(key)) is not None else "",
        )
        for key, info in infos.items()
    ]
    return sorted(found, key=lambda row: (row.device, row.port))


def _via_of(pod: LabletObject) -> dict[str, Access]:
    """Parse the answers of a mux that a Pod reports, by the name of the port; none if a later version wrote them."""
    try:
        return _answers.decode(pod.metadata.annotations.get(names.ANNOTATION_ACCESS, "{}"))
    except msgspec.MsgspecError:
        return {}


class DeviceState(StrEnum):
    """The states of a device in plain words."""

    NOT_STARTED = "not started"
    BOOTING = "booting"
    RUNNING = "running"
    OFF = "off"
    ENDED = "ended"
    UNKNOWN = "not known"


_TONES: Final = {DeviceState.RUNNING: Tone.GOOD, DeviceState.OFF: Tone.BAD}
_OFF: Final = frozenset({Trouble.DEVICE_STOPPED, Progress.LAB_STOPPED, Progress.DEVICE_OFF})
_WHILE_ON: Final = (DeviceAct.RESTART, DeviceAct.STOP, DeviceAct.WIPE)
_WHILE_OFF: Final = (DeviceAct.START, DeviceAct.WIPE)


class SeenDevice(msgspec.Struct, frozen=True):
    """A device, as people see it.

    Attributes:
        label: By which a console knows it.
        kind: Its node definition; "" if it is not known.
        state: How it is; None for a device without a login, such as a switch.
        console: Whether its console can be opened.
        ports: Those by which it is reached from outside.
        acts: What may be asked of it now.
    """

    label: str
    kind: str = ""
    state: DeviceState | None = None
    console: bool = False
    ports: tuple[Port, ...] = ()
    acts: tuple[DeviceAct, ...] = ()

    @property
    def has_screen(self) -> bool:
        """Whether one of its ports is that of a screen."""
        return any(port.access == "vnc" for port in self.ports)

    @property
    def tone(self) -> Tone:
        """The colour of its state."""
        return _TONES.get(self.state, Tone.BUSY) if self.state is not None else Tone.BUSY


def devices_in(pod: LabletObject | None, definition: DefinitionStatus) -> tuple[SeenDevice, ...]:
    """Return the devices of a lablet that learners may see, those without a login among them.

    Args:
        pod: The lablet's; None before it is made.
        definition: The status of its definition; an empty one if that has another version than the lablet.
    """
    if pod is None:
        return tuple(_seen(each.label, each.node_definition, None, ()) for each in _shown(definition))
    try:
        ports = reported_ports(pod, {each.label: each.container for each in definition.devices})
    except msgspec.MsgspecError:  # of a later version
        ports = []
    by_label: dict[str, list[Port]] = {}
    for port in ports:
        by_label.setdefault(port.device, []).append(port)
    states = {status.name: status for status in pod.status.container_statuses}
    if definition.devices:
        return tuple(
            _seen(
                each.label,
                each.node_definition,
                _state(pod, states.get(each.container), states),
                by_label.get(each.label, ()),
                imported=_is_imported(pod),
                asked_off=_is_asked_off(states.get(each.container)),
            )
            for each in _shown(definition)
        )
    labels = {port.container or port.device: port.device for port in ports}
    found = [each.name for each in pod.spec.containers if each.name != names.LAB_CONTAINER]
    return tuple(
        _seen(
            labels.get(name, name),
            "",
            _state(pod, states.get(name), states),
            by_label.get(labels.get(name, name), ()),
            imported=_is_imported(pod),
            asked_off=_is_asked_off(states.get(name)),
        )
        for name in dict.fromkeys([*found, *labels])
    )


def _shown(definition: DefinitionStatus) -> list[ShownDevice]:
    return [each for each in definition.devices if each.hidden is not True]


def _seen(
    label: str,
    kind: str,
    state: DeviceState | None,
    ports: Sequence[Port],
    *,
    imported: bool = False,
    asked_off: bool = False,
) -> SeenDevice:
    if kind in INFRASTRUCTURE_NODE_TYPES:
        return SeenDevice(label, kind)
    console = imported and state in {DeviceState.BOOTING, DeviceState.RUNNING, DeviceState.UNKNOWN}
    acts = _WHILE_OFF if asked_off else _WHILE_ON if state is DeviceState.RUNNING else ()
    return SeenDevice(label, kind, state or DeviceState.NOT_STARTED, console, tuple(ports), acts)


def _state(pod: LabletObject, status: ContainerStatus | None, states: Mapping[str, ContainerStatus]) -> DeviceState:
    """Return the state of a device: that of its container, else what that of the lab tells of all devices."""
    if has_ended(pod):
        return DeviceState.ENDED
    if any(c.type == "Ready" and c.reason == Trouble.WORKER_UNREACHABLE for c in pod.status.conditions):
        return DeviceState.UNKNOWN
    lab = states.get(names.LAB_CONTAINER)
    told = status or lab
    if told is None or not told.state:
        return DeviceState.NOT_STARTED
    if "running" in told.state:
        return DeviceState.RUNNING
    if "terminated" in told.state:
        return DeviceState.ENDED
    reason = reason_of(str(told.state.get("waiting", {}).get("reason", "")))
    if reason in _OFF:
        return DeviceState.OFF
    if not _is_imported(pod):
        return DeviceState.NOT_STARTED
    if status is None and reason != Progress.STARTING_NODES:
        return DeviceState.UNKNOWN
    return DeviceState.BOOTING


def _is_asked_off(status: ContainerStatus | None) -> bool:
    return status is not None and status.state.get("waiting", {}).get("reason") == Progress.DEVICE_OFF


def _is_imported(pod: LabletObject) -> bool:
    return any(c.type == names.CONDITION_LAB_IMPORTED and c.status == "True" for c in pod.status.conditions)
