"""All settings of a replica, read from the environment."""

from pydantic import Field

from vkprovider.carriers.settings import HttpTunnelSettings, MqttSettings, TunnelSettings
from vkprovider.labs.settings.cluster import LabletSettings, PortSettings, WorkerSettings
from vkprovider.labs.settings.consoles import ConsoleSettings
from vkprovider.labs.settings.kubelet import KubeletSettings
from vkprovider.labs.settings.services import (
    ContentSettings,
    GraderSettings,
    LdsSettings,
    PackageSettings,
    UnusedSettings,
)
from vkprovider.platform.settings import HttpSettings, KubeSettings, LogSettings, ProgramSettings, ReplicaSettings


class Settings(ProgramSettings):
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
