"""The null backend: labs in a dict, every operation done when it returns. For measuring the bridge itself.

A null worker is a name within this process; its labs outlive the handles opened on it. Another process that takes the
worker over knows its labs from the claims (`recall`), so that replicas may come and go as with a real worker.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import yaml

from vkprovider.cml.captures import NoCaptures
from vkprovider.cml.consoles import NoConsoles
from vkprovider.cml.spi import Captures, Consoles, DeviceFact
from vkprovider.cml.wire import CmlImport, CmlLabDetail
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.platform.errors import NotFound, OutsideError

VERSION: Final = "2.9.1+build.7"
DEFAULT_DEVICES: Final = (("n0", "alpine"),)
"""(label, node definition) of each device of a lab."""

_AFTER: Final = {DeviceAct.START: "BOOTED", DeviceAct.STOP: "STOPPED", DeviceAct.WIPE: "DEFINED_ON_CORE"}
_DEVICE_STATE: Final = {"DEFINED_ON_CORE": "DEFINED_ON_CORE", "STARTED": "BOOTED", "STOPPED": "STOPPED"}


class _NullLab(msgspec.Struct, gc=False):
    title: str
    topology_yaml: str
    state: str = "DEFINED_ON_CORE"
    notes: str | None = None
    description: str | None = None
    apart: dict[str, str] = {}
    """The states of devices that are not as the lab is, by label."""


class NullWorker:
    """The labs of one null worker.

    Args:
        name: The worker's name.
        devices: (label, node definition) of the devices that every lab has, whatever its topology says.
    """

    def __init__(self, name: str, devices: tuple[tuple[str, str], ...] = DEFAULT_DEVICES) -> None:
        self.name: Final = name
        self.labs: dict[str, _NullLab] = {}
        self.devices: Final = {
            lab_state: tuple(DeviceFact(label, label, definition, state) for label, definition in devices)
            for lab_state, state in _DEVICE_STATE.items()
        }

    def lab(self, lab_id: str) -> _NullLab:
        """Get a lab."""
        try:
            return self.labs[lab_id]
        except KeyError:
            raise NotFound(f"Lab not found: {lab_id}", status=404) from None

    def devices_of(self, lab: _NullLab) -> tuple[DeviceFact, ...]:
        """Return the devices of a lab."""
        devices = self.devices[lab.state]
        if not lab.apart:
            return devices
        return tuple(msgspec.structs.replace(d, state=lab.apart.get(d.label, d.state)) for d in devices)

    def add(self, title: str, topology_yaml: str) -> str:
        """Add a lab and return its id."""
        lab_id = str(uuid.uuid4())
        self.labs[lab_id] = _NullLab(title, topology_yaml)
        return lab_id


class NullLabs:
    """`Labs` of a null worker; `NotFound` is raised for a lab that it does not have.

    Args:
        worker: Holds the labs.
        guard: Called before every operation; raises to stop it.
    """

    def __init__(self, worker: NullWorker, guard: Callable[[], None] | None = None) -> None:
        self._worker = worker
        self._guard = guard

    @property
    def immediate(self) -> bool:
        """Everything has happened when a call returns."""
        return True

    @property
    def consoles(self) -> Consoles:
        """There are none."""
        return NoConsoles()

    @property
    def captures(self) -> Captures:
        """There are no links."""
        return NoCaptures()

    def time(self) -> int:
        """Return 0: an import is done when it returns, so that no time before it is needed."""
        return 0

    async def version(self) -> str:
        """Return a fixed version."""
        self._check()
        return VERSION

    async def list_lab_ids(self) -> list[str]:
        """List the lab ids."""
        self._check()
        return list(self._worker.labs)

    async def list_all_devices(self) -> dict[str, tuple[DeviceFact, ...]]:
        """List all devices by lab id."""
        self._check()
        of = self._worker.devices_of
        return {lab_id: of(lab) for lab_id, lab in self._worker.labs.items()}

    async def get_lab(self, lab_id: str) -> CmlLabDetail:
        """Get one lab; its notes are read from the topology here, so that an import costs nothing."""
        self._check()
        lab = self._worker.lab(lab_id)
        notes, description = lab.notes, lab.description
        if notes is None or description is None:
            written = _header(lab.topology_yaml)
            notes = written.get("notes", "") if notes is None else notes
            description = written.get("description", "") if description is None else description
        return CmlLabDetail(
            id=lab_id,
            lab_title=lab.title,
            lab_notes=str(notes),
            lab_description=str(description),
            state=lab.state,
            node_count=len(self._worker.devices[lab.state]),
        )

    async def download_lab(self, lab_id: str) -> bytes:
        """Return the topology that was imported."""
        self._check()
        return self._worker.lab(lab_id).topology_yaml.encode()

    async def list_devices(self, lab_id: str) -> tuple[DeviceFact, ...]:
        """List the devices of one lab."""
        self._check()
        return self._worker.devices_of(self._worker.lab(lab_id))

    async def list_tags(self, lab_id: str) -> dict[str, tuple[str, ...]]:
        """List the tags in the topology that was imported, by label."""
        self._check()
        topology = _loaded(self._worker.lab(lab_id).topology_yaml)
        return {node["label"]: tuple(node.get("tags") or ()) for node in topology.get("nodes") or ()}

    async def import_lab(self, topology_yaml: str, title: str) -> CmlImport:
        """Add a lab."""
        self._check()
        return CmlImport(self._worker.add(title, topology_yaml))

    async def note_lab(self, lab_id: str, notes: str, description: str | None = None) -> None:
        """Replace the notes of a lab, and its description unless that is None."""
        self._check()
        lab = self._worker.lab(lab_id)
        lab.notes = notes
        lab.description = lab.description if description is None else description

    async def start_lab(self, lab_id: str) -> None:
        """Boot all devices."""
        self._move(lab_id, "STARTED")

    async def stop_lab(self, lab_id: str) -> None:
        """Stop all devices."""
        if self._worker.lab(lab_id).state == "STARTED":
            self._move(lab_id, "STOPPED")

    async def wipe_lab(self, lab_id: str) -> None:
        """Reset the lab."""
        self._move(lab_id, "DEFINED_ON_CORE")

    async def change_device(self, lab_id: str, device: DeviceFact, act: DeviceAct) -> None:
        """Move one device to another state."""
        self._check()
        self._worker.lab(lab_id).apart[device.label] = _AFTER[act]

    async def delete_lab(self, lab_id: str) -> None:
        """Delete the lab."""
        self._check()
        self._worker.lab(lab_id)
        del self._worker.labs[lab_id]

    async def extract_configs(
        self,
        lab_id: str,  # noqa: ARG002 (its devices have no configurations)
        devices: tuple[DeviceFact, ...],  # noqa: ARG002 (as above)
    ) -> tuple[dict[str, str], dict[str, OutsideError]]:
        """Return nothing: null devices have no configurations."""
        self._check()
        return {}, {}

    def user(self) -> str:
        """Return "", because there is no login."""
        return ""

    async def check_login(self) -> None:
        """Do nothing: there is no login."""

    def recall(self, labs: Mapping[str, bool]) -> None:
        """Replace the labs by these: the previous owner of the worker may have been another process."""
        self._worker.labs = {
            lab_id: _NullLab("", "", "STARTED" if started else "DEFINED_ON_CORE") for lab_id, started in labs.items()
        }

    async def close(self) -> None:
        """Do nothing: the labs belong to the worker."""

    def _check(self) -> None:
        if self._guard is not None:
            self._guard()

    def _move(self, lab_id: str, state: str) -> None:
        self._check()
        lab = self._worker.lab(lab_id)
        lab.state, lab.apart = state, {}


def _header(topology_yaml: str) -> dict[str, Any]:
    lab = _loaded(topology_yaml).get("lab")
    return lab if isinstance(lab, dict) else {}


def _loaded(topology_yaml: str) -> dict[str, Any]:
    try:
        topology: Any = yaml.load(topology_yaml, Loader=_LOADER)  # noqa: S506 (both are safe loaders)
    except yaml.YAMLError:
        return {}
    return topology if isinstance(topology, dict) else {}


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
