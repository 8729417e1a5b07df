"""The device list of a learner's session: each visible device with its primary access, or with every one."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from vkprovider.lablet.ports import accesses
from vkprovider.labs.pure.topology.topology import Topology

AccessProtocol = Literal["ssh", "telnet", "vnc", "http", "https"]


class DeviceAccessInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the LDS reaches one device; the password never shows in a repr.

    Attributes:
        name: The device's label.
        host: The worker's address, or that of a mux.
        port: The external port there.
        uri: `vnc://10.0.1.50:10012`.
    """

    name: str
    protocol: AccessProtocol
    host: str
    port: int
    uri: str
    username: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"DeviceAccessInfo(name={self.name!r}, uri={self.uri!r}, username={self.username!r}, password=…)"


_NO_VIA: Final[Mapping[str, tuple[str, int]]] = {}


def devices_for(
    topology: Topology,
    ports: Mapping[str, int],
    worker: str,
    secret: Mapping[str, str],
    *,
    via: Mapping[str, tuple[str, int]] = _NO_VIA,
    every_access: bool = False,
) -> list[DeviceAccessInfo]:
    """List the devices that a learner reaches, in topology order.

    Args:
        topology: Of the lablet.
        ports: Port name → the allocated port of the worker.
        worker: The worker's address.
        secret: Credentials: `username` and `password` for all devices, `CONTAINER.username` and `CONTAINER.password`
            for one, named by its container.
        via: Port name → address and port that lead to it; for all others these are the worker's.
        every_access: List every access of a device, the primary one first; else each device once.
    """
    found = []
    for device in topology.devices:
        if not device.visible:
            continue
        ways = accesses(slot for slot in topology.template.slots if slot.device == device.label)
        for way in ways if every_access else ways[:1]:
            if way.slot not in ports:
                continue
            host, port = via.get(way.slot, (worker, ports[way.slot]))
            found.append(
                DeviceAccessInfo(
                    name=device.label,
                    protocol=msgspec.convert(way.protocol, AccessProtocol),
                    host=host,
                    port=port,
                    uri=f"{way.protocol}://{f'[{host}]' if ':' in host else host}:{port}",
                    username=secret.get(f"{device.container}.username", secret.get("username")),
                    password=secret.get(f"{device.container}.password", secret.get("password")),
                )
            )
    return found
