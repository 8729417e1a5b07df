"""Shapes of a pyATS testbed, from those of real controllers that are public, and what Cisco's client reads of it."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from tests.support.cmlapi.kinds import Label, Port, Shape, Uuid


class Login(Shape):
    """A user with a password."""

    username: str
    password: str


class Secret(Shape):
    """A password alone."""

    password: str


class Credentials(Shape):
    """The logins of a device."""

    default: Login
    enable: Secret | UnsetType = UNSET


class Ssh(Shape):
    """How the terminal server is reached."""

    protocol: Literal["ssh"]
    ip: Annotated[str, Meta(min_length=1)]
    port: Port


class Console(Shape):
    """A console; Cisco's client replaces the last digit of the command."""

    protocol: Literal["telnet"]
    proxy: Literal["terminal_server"]
    command: Annotated[str, Meta(pattern=r"^open /.+/.+/[0-4]$")]


class ConsoleClass(Shape):
    """The library that connects."""

    library: Literal["unicon.Unicon"] = field(name="class")


class Connections(Shape):
    """The connections of a device, or of the terminal server, to which Cisco's client adds options."""

    cli: Ssh | UnsetType = UNSET
    defaults: ConsoleClass | UnsetType = UNSET
    a: Console | UnsetType = UNSET


class Device(Shape):
    """A device of the lab, or the terminal server, whose login Cisco's client replaces."""

    os: Literal["ios", "iosxe", "iosxr", "nxos", "asa", "linux", "fxos", "viptela"]
    type: str
    credentials: Credentials
    connections: Connections
    platform: str | UnsetType = UNSET
    series: str | UnsetType = UNSET


class Interface(Shape):
    """An interface in the topology."""

    type: Literal["ethernet", "loopback"]
    link: Uuid | UnsetType = UNSET


class Interfaces(Shape):
    """The interfaces of a device by label."""

    interfaces: dict[Label, Interface]


class Name(Shape):
    """The name of a testbed."""

    name: str


class Testbed(Shape):
    """A testbed."""

    __test__ = False

    testbed: Name
    devices: dict[Label, Device]
    topology: dict[Label, Interfaces]

    def __post_init__(self) -> None:
        """Require the terminal server, and of each device that it is reached through it."""
        for label, device in self.devices.items():
            ways = {name for name in ("cli", "defaults", "a") if getattr(device.connections, name) is not UNSET}
            if ways != ({"cli"} if label == "terminal_server" else {"defaults", "a"}):
                raise ValueError(f"{label} has the connections {ways}")
        if "terminal_server" not in self.devices:
            raise ValueError("there is no terminal_server")
