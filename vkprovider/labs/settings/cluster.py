"""Settings of the provider: workers, ports, lablets, consoles, the kubelet API; and all of one replica."""

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from vkprovider.carriers.settings import HttpTunnelSettings, MqttSettings, TunnelSettings
from vkprovider.labs.settings.services import (
    ContentSettings,
    GraderSettings,
    LdsSettings,
    PackageSettings,
    UnusedSettings,
)
from vkprovider.platform.settings import (
    PORT_MAX,
    Group,
    HttpSettings,
    LogSettings,
    ReplicaProgramSettings,
    bounds,
)


class ConsoleSettings(Group):
    """Consoles of devices through kubectl."""

    prompts_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_CONSOLE_PROMPTS",
        description="YAML file of further prompts for `kubectl exec`, by node definition: `{acme-os: ios}`, or "
        "`{acme-fw: {like: asa, prompt: 'fw[>#]'}}`; kinds are ios, iosxe, iosxr, nxos, "
        "asa, firepower, aireos, viptela, frr and linux.",
    )
    exec_timeout_s: float = Field(
        30.0,
        validation_alias="VKPROVIDER_CONSOLE_EXEC_SECONDS",
        gt=0,
        description="Seconds for which a device may be silent during `kubectl exec` before the command ends with 124.",
    )


def _ports(text: str) -> str:
    """Check a range of ports: `0`, `FIRST-LAST` or one port."""
    try:
        first, last = bounds(text)
    except ValueError:
        first, last = -1, -1
    if not (0 < first <= last <= PORT_MAX or first == last == 0):
        raise ValueError(f"{text[:40]!r} is neither 0 nor a range of ports such as 20250-24249")
    return text


def _address(text: str | None) -> str | None:
    """Check an IP address."""
    return str(ipaddress.ip_address(text)) if text else None


Address = Annotated[str | None, AfterValidator(_address)]


class KubeletSettings(Group):
    """The kubelet API of the Nodes."""

    enabled: bool = Field(
        default=True,
        validation_alias="VKPROVIDER_KUBELET",
        description="Whether the replica serves the kubelet API of its Nodes: `kubectl logs`, `attach`, `exec`, "
        "`port-forward` and `top`. Without it the Nodes declare neither a port nor an InternalIP.",
    )
    internal_ip: Address = Field(
        None,
        validation_alias=AliasChoices("VKPROVIDER_INTERNAL_IP", "POD_IP"),
        description="InternalIP of the Nodes: where the API server and metrics-server reach the kubelet API of this "
        "replica. By default the address by which it reaches others.",
    )
    host: Address = Field(
        None,
        validation_alias="VKPROVIDER_KUBELET_HOST",
        description="Address that the kubelet API listens on; every one of this host if unset.",
    )
    ports: Annotated[str, AfterValidator(_ports)] = Field(
        "20250-24249",
        validation_alias="VKPROVIDER_KUBELET_PORTS",
        description="Ports of the kubelet API, one for each Node of the replica: `FIRST-LAST`, or `0` for any free "
        "ones. The API server must reach them all.",
    )
    certificate: Literal["csr", "self-signed"] = Field(
        "csr",
        validation_alias="VKPROVIDER_KUBELET_CERTIFICATE",
        description="The certificate of the kubelet API: `csr` requests one of the signer "
        "`kubernetes.io/kubelet-serving`, and until that is approved uses one that the replica makes itself; "
        "`self-signed` stays with the latter, which metrics-server accepts only by `--kubelet-insecure-tls`.",
    )
    certificate_s: int = Field(
        30 * 86400,
        validation_alias="VKPROVIDER_KUBELET_CERTIFICATE_SECONDS",
        ge=600,
        description="Seconds for which a certificate is requested; it is renewed after four fifths of its life.",
    )
    sessions_max: int = Field(
        1000,
        validation_alias="VKPROVIDER_KUBELET_SESSIONS_MAX",
        ge=1,
        description="Open logs, consoles and port-forwards of a replica, at most.",
    )

    @property
    def port_range(self) -> tuple[int, int]:
        """The first and the last port; 0, 0 for any free ones."""
        return bounds(self.ports)


class WorkerSettings(Group):
    """Workers and their Nodes."""

    probe_s: float = Field(
        5.0, validation_alias="WORKER_PROBE_SECONDS", gt=0, description="Seconds between two probes of a worker."
    )
    probe_failures_max: int = Field(
        3,
        validation_alias="VKPROVIDER_WORKER_PROBE_FAILURES",
        ge=1,
        description="Failed probes in a row after which a worker counts as silent.",
    )
    reconcile_s: float = Field(
        30.0,
        validation_alias="RECONCILE_INTERVAL",
        gt=0,
        description="Seconds between two looks at what no event announces a change of.",
    )
    taint_effect: Literal["NoExecute", "NoSchedule"] = Field(
        "NoExecute", validation_alias="VKPROVIDER_TAINT_EFFECT", description="Effect of the Nodes' taints."
    )
    provider_id: bool = Field(
        default=True,
        validation_alias="VKPROVIDER_PROVIDER_ID",
        description="Whether Nodes have a `providerID`, `vkprovider://WORKER`; false for autoscalers that stop at the "
        "ids of other clouds (docs/operate.md). A Node that has one keeps it.",
    )
    refresh_probes: int = 2
    """Every how many probes the devices of all labs are listed, if no lablet awaits them."""
    transition_s: float = 1.0
    """Seconds between two observations of a worker whose lablets await a change."""
    watched_s: float = 15.0
    resync_s: float = 60.0
    """Seconds between two observations of a worker whose agent reports every change: while lablets await one, and
    else."""
    login_check_s: float = 60.0
    """Seconds between two looks at the Secret of a worker that answers: no event announces a change of it."""
    write_retry_first_s: float = 1.0
    write_retry_cap_s: float = 30.0
    """Seconds after which claims are written again: after the first failure, and at most."""

    @property
    def refresh_s(self) -> float:
        """Seconds between two lists of all devices."""
        return self.refresh_probes * self.probe_s


class PortSettings(Group):
    """External ports."""

    start: int = Field(
        10000,
        validation_alias="PORT_RANGE_START",
        ge=1,
        le=65535,
        description="First external port of a worker without a port range of its own.",
    )
    end: int = Field(
        20000, validation_alias="PORT_RANGE_END", ge=1, le=65535, description="Last external port, included."
    )
    per_instance_max: int = Field(
        50, validation_alias="PORTS_PER_INSTANCE_MAX", ge=0, description="External ports of one lablet, at most."
    )
    check_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_PORT_CHECK_SECONDS",
        ge=0,
        description="Seconds within which one of a ready lablet's console ports must open; 0 disables the check.",
    )

    @property
    def range(self) -> tuple[int, int]:
        """The first and the last port."""
        return self.start, self.end

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"PORT_RANGE_END {self.end} is below PORT_RANGE_START {self.start}")
        return self


class LabletSettings(Group):
    """Lablets."""

    start_timeout_s: float | None = Field(
        None,
        validation_alias="LAB_START_TIMEOUT",
        gt=0,
        description="Seconds from the start of a device until it must have booted, for all labs. Unset: "
        "`spec.bootTimeoutSeconds` of the definition, else 1.5 times CML's `boot.timeout` of its slowest device "
        "(`stats: On`), at least 300, else 1800.",
    )
    extract_on_stop: bool = Field(
        default=True,
        validation_alias="CONFIG_EXTRACT_ON_STOP",
        description="Whether configurations are extracted before a lab is stopped.",
    )
    recoveries_max: int = Field(
        3,
        validation_alias="RECOVERY_MAX_ATTEMPTS",
        ge=0,
        description="Starts without a wipe of a lab whose devices stopped, before a person has to intervene.",
    )
    stopped_max_s: float = Field(
        86400.0,
        validation_alias="VKPROVIDER_STOPPED_MAX_SECONDS",
        gt=0,
        description="Seconds that a lablet may stay stopped on request; then it ends.",
    )
    announce_end_s: float = Field(
        300.0,
        validation_alias="VKPROVIDER_TIMESLOT_WARNING_SECONDS",
        ge=0,
        description="Seconds before the end of a learner's timeslot at which a Warning Event (`TimeslotEnding`) and a "
        "line on each open console announce it; 0: nothing does.",
    )
    kept_s: float = Field(
        604800.0,
        validation_alias="VKPROVIDER_KEPT_SECONDS",
        gt=0,
        description="Seconds that a learner's configurations and responses are kept after they were collected.",
    )
    kept_bytes_max: int = Field(
        512 * 2**20,
        validation_alias="VKPROVIDER_KEPT_BYTES_MAX",
        ge=2**20,
        description="Bytes of learners' configurations and responses that are kept; a namespace may use a quarter. "
        "The oldest go first (Event `KeptDropped`).",
    )
    port_rest_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_EXPOSED_PORT_REST_SECONDS",
        ge=0,
        description="Seconds before a worker's port that was lent to a mux is given to another lablet, or a lablet "
        "with such ports to another learner.",
    )
    access_wait_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_ACCESS_WAIT_SECONDS",
        ge=0,
        description="Seconds that a session waits until the mux leads to the lablet's ports (`spec.expose.lds`); then "
        "the Lab Delivery System is told the worker's address.",
    )
    sign_default_s: float = 300.0
    """Seconds, if LAB_START_TIMEOUT is not set, after which a lab is given up of which no device moves when it is
    started, or that shows nothing to go by."""
    transition_s: float = 1.0
    """Seconds before a lablet looks again at a change that it has requested."""
    step_retry_first_s: float = 1.0
    step_retry_cap_s: float = 30.0
    """Seconds after which a failed step is repeated: after the first failure, and at most."""
    start_retry_first_s: float = 10.0
    start_retry_cap_s: float = 300.0
    """Seconds between two starts of a lab: after the first, and at most."""
    stable_s: float = 600.0
    """Seconds that a lab is ready before its recoveries are forgotten."""
    progress_after_s: float = 2.0
    """Seconds before progress alone is written to the Pod."""
    progress_every_s: float = 15.0
    """Seconds between two writes of progress alone."""

    @property
    def sign_s(self) -> float:
        """Seconds after which a lab is given up that shows no sign of life."""
        return self.sign_default_s if self.start_timeout_s is None else self.start_timeout_s


class Settings(ReplicaProgramSettings):
    """The settings of one replica, by subject."""

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
