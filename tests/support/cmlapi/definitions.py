"""Shapes of node and image definitions."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from tests.support.cmlapi.kinds import CpuLimit, Cpus, DefinitionId, Description, Gigabytes, Name, Ram, Shape

Nature = Literal["router", "switch", "server", "host", "cloud", "firewall", "external_connector"]


class General(Shape):
    """The kind of a node."""

    nature: Nature
    description: Description
    read_only: bool | UnsetType = UNSET


Ports = Annotated[list[Annotated[str, Meta(min_length=1, max_length=32)]], Meta(min_length=1)]


class Interfaces(Shape):
    """The interfaces of a kind; the simplified definitions have the same, as in the document of 2.9."""

    serial_ports: Annotated[int, Meta(ge=0, le=4)]
    has_loopback_zero: bool
    physical: Ports
    default_count: Annotated[int, Meta(ge=1, le=64)] | UnsetType = UNSET
    min_count: Annotated[int, Meta(ge=0, le=64)] | UnsetType = UNSET
    default_console: Annotated[int, Meta(ge=0, le=4)] | UnsetType = UNSET
    iol_static_ethernets: Literal[0, 4, 8, 12, 16] | UnsetType = UNSET
    loopback: Ports | UnsetType = UNSET
    management: Ports | UnsetType = UNSET


class Device(Shape):
    """The device of a definition."""

    interfaces: Interfaces


class Ui(Shape):
    """How a kind looks."""

    label_prefix: Annotated[str, Meta(min_length=1, max_length=32)]
    icon: Literal["router", "switch", "server", "host", "cloud", "firewall", "access_point", "wl"]
    label: Annotated[str, Meta(min_length=1, max_length=32)]
    visible: bool
    group: Literal["Cisco", "Others"] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    has_configuration: bool | UnsetType = UNSET
    has_config_extraction: bool | UnsetType = UNSET
    show_ram: bool | UnsetType = UNSET
    show_cpus: bool | UnsetType = UNSET
    show_cpu_limit: bool | UnsetType = UNSET
    show_data_volume: bool | UnsetType = UNSET
    show_boot_disk_size: bool | UnsetType = UNSET


class Native(Shape):
    """The machine of a kind."""

    libvirt_domain_driver: Literal["none", "kvm", "lxc", "docker", "iol"]
    driver: str
    ram: Ram | UnsetType = UNSET
    cpus: Annotated[int, Meta(ge=1, le=128)] | UnsetType = UNSET
    cpu_limit: CpuLimit | UnsetType = UNSET
    data_volume: Gigabytes | UnsetType = UNSET
    boot_disk_size: Gigabytes | UnsetType = UNSET
    disk_driver: str | UnsetType = UNSET
    nic_driver: str | UnsetType = UNSET
    video: dict[str, Any] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Require what CML requires of a virtual machine."""
        if self.libvirt_domain_driver == "kvm" and UNSET in {self.disk_driver, self.nic_driver}:
            raise ValueError("disk_driver and nic_driver must be specified when libvirt_domain_driver is kvm")


class Simulation(Shape):
    """How a kind is run."""

    linux_native: Native
    parameters: dict[str, Any] | UnsetType = UNSET
    usage_estimations: dict[str, Any] | UnsetType = UNSET


class FlatSimulation(Shape):
    """How a kind is run, as a user interface needs it."""

    console: bool
    simulate: bool
    custom_mac: bool
    vnc: bool
    parameters: dict[str, Any]
    ram: int | UnsetType = UNSET
    cpus: int | UnsetType = UNSET
    cpu_limit: CpuLimit | UnsetType = UNSET
    data_volume: int | UnsetType = UNSET
    boot_disk_size: int | UnsetType = UNSET


class Boot(Shape):
    """When a node counts as booted."""

    timeout: Annotated[int, Meta(le=86400)]
    completed: Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(min_length=1)] | UnsetType = UNSET
    uses_regex: bool | UnsetType = UNSET


class Generator(Shape):
    """The driver that writes day-0 configurations."""

    driver: str | None


class DayZeroFile(Shape):
    """A day-0 file."""

    name: Name
    content: str
    editable: bool


class Provisioning(Shape):
    """The day-0 files of a kind."""

    files: list[DayZeroFile]
    media_type: Literal["iso", "fat", "raw", "ext4"]
    volume_name: str


class Configuration(Shape):
    """The configuration of a kind."""

    generator: Generator
    provisioning: Provisioning | UnsetType = UNSET


class Pyats(Shape):
    """What pyATS needs to know of a kind."""

    os: Name
    series: Annotated[str, Meta(min_length=1, max_length=32)] | UnsetType = UNSET
    model: Annotated[str, Meta(min_length=1, max_length=32)] | UnsetType = UNSET
    use_in_testbed: bool | UnsetType = UNSET
    username: Name | UnsetType = UNSET
    password: Name | UnsetType = UNSET
    config_extract_command: Description | UnsetType = UNSET


class NodeDefinition(Shape):
    """A node definition."""

    id: DefinitionId
    boot: Boot
    sim: Simulation
    general: General
    configuration: Configuration
    device: Device
    ui: Ui
    inherited: dict[Literal["image", "node"], dict[str, bool]] | UnsetType = UNSET
    pyats: Pyats | UnsetType = UNSET
    schema_version: str | UnsetType = UNSET


class SimplifiedDefinition(Shape):
    """A node definition as a user interface needs it."""

    id: DefinitionId
    general: General
    device: Device
    ui: Ui
    sim: FlatSimulation
    image_definitions: list[DefinitionId]


class ImageDefinition(Shape):
    """An image definition; null figures are inherited."""

    id: DefinitionId
    node_definition_id: DefinitionId
    label: Name
    disk_image: Annotated[str, Meta(min_length=1, max_length=255)]
    read_only: bool
    description: Description | UnsetType = UNSET
    configuration: str | UnsetType | None = UNSET
    pyats: dict[str, Any] | UnsetType | None = UNSET
    ram: Ram | UnsetType | None = UNSET
    cpus: Cpus | UnsetType | None = UNSET
    cpu_limit: CpuLimit | UnsetType | None = UNSET
    data_volume: Gigabytes | UnsetType | None = UNSET
    boot_disk_size: Gigabytes | UnsetType | None = UNSET
    schema_version: str | UnsetType = UNSET
