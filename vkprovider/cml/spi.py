"""The seam between the controllers and a CML worker."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from tunnels.base import ByteChannel
from vkprovider.cml.wire import CmlImport, CmlLabDetail
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.observations import CaptureFact, DeviceFact, LinkFact
from vkprovider.platform.errors import OutsideError

__all__ = ["Captures", "Consoles", "Credentials", "CredentialsReader", "DeviceFact", "Labs"]


class Credentials(msgspec.Struct, frozen=True):
    """A CML user; the password never shows in a repr.

    Attributes:
        source: Where they are read from and how they are corrected, for messages.
    """

    username: str
    password: str
    source: str = "the worker's credentials Secret"

    def __repr__(self) -> str:
        return f"Credentials(username={self.username!r}, password=…)"


CredentialsReader = Callable[[], Awaitable[Credentials]]
"""Reads the worker's Secret; called before every login, so that a changed password needs no restart."""


class Consoles(Protocol):
    """Consoles, screens and ports of one worker's devices; every method raises what those of `Labs` do.

    `NotFound`: CML itself said that there is no such lab or node, or that it has no such console or screen now.
    """

    async def read_log(self, lab_id: str, node_id: str, line: int = 0, *, lines: int | None = None) -> str:
        """Get the history of a console, each line as `|<milliseconds>|text`; the last `lines` only, if given."""

    async def open_console(self, lab_id: str, node_id: str, line: int = 0) -> ByteChannel:
        """Connect to a serial console, which all who are connected share."""

    async def open_screen(self, lab_id: str, node_id: str) -> ByteChannel:
        """Connect to the VNC server of a device."""

    async def open_port(self, port: int) -> ByteChannel:
        """Connect to a TCP port of CML's host."""

    async def cpu_percent(self, lab_id: str) -> dict[str, float]:
        """Get how much CPU each running node of a lab uses, in percent of a core, by node id."""


class Captures(Protocol):
    """Packets of links, as CML captures them, one capture of each; every method raises what those of `Labs` do."""

    async def list_links(self, lab_id: str) -> tuple[LinkFact, ...]:
        """List the links of a lab."""

    async def start(self, lab_id: str, link_id: str, wanted: CaptureRequest) -> str:
        """Begin a capture and return its key; one that the link had is gone."""

    async def stop(self, lab_id: str, link_id: str) -> None:
        """End a capture."""

    async def status(self, lab_id: str, link_id: str) -> CaptureFact | None:
        """Get the capture of a link; None if none runs."""

    async def read(self, key: str) -> bytes:
        """Get what was captured until now as a pcap file, all of it each time."""


class Labs(Protocol):
    """The labs of one worker.

    Every method may raise what an outside call may raise: `Unavailable` (with `Throttled`, `DeadlineExceeded`),
    `Unauthorized`, `Forbidden`, `TlsFailed`, `Invalid`; and what the guard raises. `NotFound` is raised only when CML
    itself said that the object does not exist: a 404 by a proxy or a login is `Unavailable`. An incomplete or
    unreadable list is an error, never a shorter list.
    """

    @property
    def immediate(self) -> bool:
        """Whether what a call asked for has happened when it returns."""

    @property
    def consoles(self) -> Consoles:
        """The consoles of the devices."""

    @property
    def captures(self) -> Captures:
        """The captures of the links."""

    def time(self) -> int:
        """Return the worker's time by its last answer, in Unix seconds and never ahead of it; 0 while it is unknown."""

    async def version(self) -> str:
        """Get CML's version, `2.9.1+build.7`; needs no login."""

    async def list_lab_ids(self) -> list[str]:
        """List the ids of all labs, also other users'; short deadline, fit for a probe."""

    async def list_all_devices(self) -> dict[str, tuple[DeviceFact, ...]]:
        """Observe all devices of the worker in one request, by lab id; a lab without devices is not in it."""

    async def get_lab(self, lab_id: str) -> CmlLabDetail:
        """Get one lab."""

    async def download_lab(self, lab_id: str) -> bytes:
        """Get a lab as a topology file, with the configurations that CML has."""

    async def list_devices(self, lab_id: str) -> tuple[DeviceFact, ...]:
        """List the devices of one lab."""

    async def list_tags(self, lab_id: str) -> dict[str, tuple[str, ...]]:
        """List the tags of a lab's devices, by label."""

    async def import_lab(self, topology_yaml: str, title: str) -> CmlImport:
        """Import a topology under a title; return the lab's id and CML's warnings.

        Without an answer the lab may exist.
        """

    async def note_lab(self, lab_id: str, notes: str, description: str | None = None) -> None:
        """Replace the notes of a lab, and its description unless that is None."""

    async def start_lab(self, lab_id: str) -> None:
        """Ask for all devices to be started; those that run stay as they are."""

    async def stop_lab(self, lab_id: str) -> None:
        """Ask for all devices to be stopped."""

    async def wipe_lab(self, lab_id: str) -> None:
        """Ask for the disks of a stopped lab to be wiped."""

    async def change_device(self, lab_id: str, device: DeviceFact, act: DeviceAct) -> None:
        """Ask for one device to be started, stopped or, if it is stopped, wiped; RESTART is not known."""

    async def delete_lab(self, lab_id: str) -> None:
        """Delete a wiped lab."""

    async def extract_configs(
        self, lab_id: str, devices: tuple[DeviceFact, ...]
    ) -> tuple[dict[str, str], dict[str, OutsideError]]:
        """Fetch the configurations of running devices: by label, and by label why there is none.

        A device that cannot be extracted stops no other; only what the guard raises is raised. `Invalid`: devices of
        its kind have no configuration.
        """

    def user(self) -> str:
        """Return the user of the last login, whose labs are seen; "" before it, and where an agent logs in."""

    async def check_login(self) -> None:
        """Log in with credentials that have changed since the login; its token serves until another one is there.

        `Unauthorized`: They are refused, or missing.
        """

    def recall(self, labs: Mapping[str, bool]) -> None:
        """Restore the labs that the claims name, started or not, in a backend that keeps them in this process only."""

    async def close(self) -> None:
        """Close the connections."""
