"""All settings of a replica, read from the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field

from vkprovider.api.errors import InputError
from vkprovider.api.reasons import StartReason
from vkprovider.settings.agent import AgentSettings, DialSettings
from vkprovider.settings.cluster import KubeSettings, LabletSettings, PortSettings, ReplicaSettings, WorkerSettings
from vkprovider.settings.consoles import ConsoleSettings
from vkprovider.settings.group import Group
from vkprovider.settings.kubelet import KubeletSettings
from vkprovider.settings.mux import DebugWebSettings, MuxSettings
from vkprovider.settings.portal import PortalSettings
from vkprovider.settings.relay import RelaySettings
from vkprovider.settings.services import (
    ContentSettings,
    GraderSettings,
    HttpSettings,
    LdsSettings,
    LogSettings,
    PackageSettings,
    UnusedSettings,
)
from vkprovider.settings.tunnels import HttpTunnelSettings, MqttSettings, TunnelSettings


class _Process(Group):
    """The settings of one process, by subject."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as unset.

        Raises:
            pydantic.ValidationError: A value is not what its field says.
            InputError: `SettingInvalid`: the folder of `VKPROVIDER_SECRETS_DIR` cannot be read.
        """
        folder = environment.get("VKPROVIDER_SECRETS_DIR")
        given = {**(_read_folder(Path(folder)) if folder else {}), **environment}
        variables = {name: value for name, value in given.items() if value and name.isupper()}
        return cls.model_validate(dict.fromkeys(cls.model_fields, variables))


class AgentProcessSettings(_Process):
    """The settings of one agent, by subject."""

    agent: AgentSettings = AgentSettings()
    mqtt: MqttSettings = MqttSettings()
    dial: DialSettings = DialSettings()
    log: LogSettings = LogSettings()


class RelayProcessSettings(_Process):
    """The settings of one relay, by subject."""

    relay: RelaySettings
    kube: KubeSettings = KubeSettings()
    log: LogSettings = LogSettings()


class MuxProcessSettings(_Process):
    """The settings of one replica of the program that serves muxes, by subject."""

    replica: ReplicaSettings = Field(default_factory=ReplicaSettings)
    kube: KubeSettings = KubeSettings()
    mux: MuxSettings = MuxSettings()
    http: HttpSettings = HttpSettings()
    web: DebugWebSettings = DebugWebSettings()
    log: LogSettings = LogSettings()


class PortalProcessSettings(_Process):
    """The settings of one replica of the portal, by subject."""

    replica: ReplicaSettings = Field(default_factory=ReplicaSettings)
    kube: KubeSettings = KubeSettings()
    portal: PortalSettings = PortalSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()


class DoctorProcessSettings(_Process):
    """What `vkprovider doctor` examines from where it runs, by subject."""

    mqtt: MqttSettings = MqttSettings()


class Settings(_Process):
    """The settings of one replica, by subject."""

    replica: ReplicaSettings = Field(default_factory=ReplicaSettings)
    kube: KubeSettings = KubeSettings()
    workers: WorkerSettings = WorkerSettings()
    ports: PortSettings = PortSettings()
    lablets: LabletSettings = LabletSettings()
    consoles: ConsoleSettings = ConsoleSettings()
    content: ContentSettings = ContentSettings()
    packages: PackageSettings = PackageSettings()
    lds: LdsSettings = LdsSettings()
    grader: GraderSettings = GraderSettings()
    http: HttpSettings = HttpSettings()
    kubelet: KubeletSettings = KubeletSettings()
    mqtt: MqttSettings = MqttSettings()
    http_tunnel: HttpTunnelSettings = HttpTunnelSettings()
    tunnels: TunnelSettings = TunnelSettings()
    log: LogSettings = LogSettings()
    unused: UnusedSettings = UnusedSettings()

    @property
    def ignored(self) -> list[str]:
        """Variables that are set, accepted and without effect."""
        fields = type(self.unused).model_fields
        return [str(fields[name].validation_alias) for name in sorted(self.unused.model_fields_set)]


def _read_folder(folder: Path) -> dict[str, str]:
    """Return the content of the files in a folder that are named like variables."""
    try:
        files = [path for path in folder.iterdir() if path.name.isupper() and path.is_file()]
        return {path.name: path.read_text("utf-8").rstrip("\r\n") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_SECRETS_DIR {folder}: {error}") from None
