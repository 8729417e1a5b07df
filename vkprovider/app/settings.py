"""Settings, all from the environment; each field says what it is, its unit and its default."""

import socket
from collections.abc import Mapping
from typing import Final, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from vkprovider.api.errors import InputError
from vkprovider.content.objects import StorePlace, check_url
from vkprovider.controllers.context import Tuning, default_replica
from vkprovider.domain.definition.package import MIB, PackageLimits
from vkprovider.domain.lablet.facts import Limits
from vkprovider.domain.session.deployments import Strategy
from vkprovider.domain.topology.resources import SHIPPED, NodeDefinition
from vkprovider.lds.config import Source
from vkprovider.lds.grader import HttpGrader

NEVER: Final = frozenset({"etcd_host", "etcd_port", "control_plane_api_url"})
"""Settings of the lablet controller that mean nothing here: the Kubernetes API is the only store."""


class Settings(BaseModel):
    """What one replica is told by its environment. Empty variables count as unset."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, frozen=True, hide_input_in_errors=True)

    # ------------------------------------------------------------------------------ names of the lablet controller
    instance_id: str = Field(
        default_factory=default_replica,
        validation_alias="LABLET_CONTROLLER_INSTANCE_ID",
        description="Name of this replica; who finds it taken waits until that replica has ended. Generated if unset.",
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?$",
    )
    lease_ttl_s: float = Field(
        15.0,
        validation_alias="LEADER_LEASE_TTL",
        ge=3,
        description="Seconds from the death of a replica until its nodes are taken over.",
    )
    reconcile_s: float = Field(
        30.0,
        validation_alias="RECONCILE_INTERVAL",
        gt=0,
        description="Seconds between two looks at what nobody announced a change of.",
    )
    lab_start_timeout_s: float = Field(
        300.0,
        validation_alias="LAB_START_TIMEOUT",
        gt=0,
        description="Seconds from the start of a lab until all of its devices must have booted.",
    )
    config_extract_on_stop: bool = Field(
        default=True,
        validation_alias="CONFIG_EXTRACT_ON_STOP",
        description="Whether configurations are extracted before a lab is stopped.",
    )
    port_range_start: int = Field(
        10000,
        validation_alias="PORT_RANGE_START",
        ge=1,
        le=65535,
        description="First external port of a worker that does not say its own.",
    )
    port_range_end: int = Field(
        20000, validation_alias="PORT_RANGE_END", ge=1, le=65535, description="Last external port, included."
    )
    ports_per_instance_max: int = Field(
        50, validation_alias="PORTS_PER_INSTANCE_MAX", ge=0, description="External ports of one lablet, at most."
    )
    etcd_host: str = Field("localhost", validation_alias="ETCD_HOST", description="Accepted and not used.")
    etcd_port: int = Field(2379, validation_alias="ETCD_PORT", description="Accepted and not used.")
    control_plane_api_url: str = Field(
        "http://localhost:8080", validation_alias="CONTROL_PLANE_API_URL", description="Accepted and not used."
    )
    lds_api_url: str = Field(
        "http://localhost:8081",
        validation_alias="LDS_API_URL",
        description="The Lab Delivery System. It takes part only when this is set.",
    )
    lds_api_timeout_s: float = Field(
        30.0,
        validation_alias="LDS_API_TIMEOUT",
        gt=0,
        description="Seconds for one call of the Lab Delivery System of `LDS_API_URL`.",
    )
    lds_api_token: SecretStr | None = Field(
        None,
        validation_alias="LDS_API_TOKEN",
        description="Bearer token of Lab Delivery Systems that have no `token_file`.",
    )
    lds_deployments_config: str = Field(
        "config/lds_deployments.yaml",
        validation_alias="LDS_DEPLOYMENTS_CONFIG",
        description="File with several deployments of it, read again when it changes; goes before `LDS_API_URL`.",
    )
    lds_default_timeout_s: float = Field(
        30.0,
        validation_alias="LDS_DEFAULT_TIMEOUT",
        gt=0,
        description="Seconds for one call of a deployment of the file.",
    )
    lds_selection_strategy: Strategy = Field(
        "round-robin",
        validation_alias="LDS_SELECTION_STRATEGY",
        description="Which deployment takes a session: each in its turn, or the lowest priority number with room.",
    )
    lds_every_access: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_LDS_EVERY_ACCESS",
        description="Whether a session is told every way to a device, not its primary access alone.",
    )
    s3_endpoint: str = Field(
        "http://localhost:9000",
        validation_alias="S3_ENDPOINT",
        description="The S3 of content packages; read on request only.",
    )
    s3_access_key: SecretStr | None = Field(
        None, validation_alias="S3_ACCESS_KEY", description="Its access key; it is asked anonymously if unset."
    )
    s3_secret_key: SecretStr | None = Field(None, validation_alias="S3_SECRET_KEY", description="Its secret key.")

    # ------------------------------------------------------------------------------ our own
    namespace: str = Field(
        "vkprovider-system",
        validation_alias="VKPROVIDER_NAMESPACE",
        description="Namespace of claims, content, Secrets and membership Leases.",
    )
    content_store: str = Field(
        "s3://content",
        validation_alias="VKPROVIDER_CONTENT_STORE",
        description="Where content packages are: `s3://BUCKET[/PREFIX]` or `file:///FOLDER`.",
    )
    s3_region: str = Field(
        "us-east-1", validation_alias="VKPROVIDER_S3_REGION", min_length=1, description="Region of the S3."
    )
    content_timeout_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_CONTENT_TIMEOUT",
        gt=0,
        description="Seconds until a content package must be here.",
    )
    package_bytes_max: int = Field(
        20 * MIB, validation_alias="VKPROVIDER_PACKAGE_BYTES_MAX", ge=1, description="Size of a content package."
    )
    package_unpacked_bytes_max: int = Field(
        100 * MIB,
        validation_alias="VKPROVIDER_PACKAGE_UNPACKED_BYTES_MAX",
        ge=1,
        description="Size of all files in a content package together, unpacked.",
    )
    package_file_bytes_max: int = Field(
        4 * MIB,
        validation_alias="VKPROVIDER_PACKAGE_FILE_BYTES_MAX",
        ge=1,
        description="Size of one file of a content package that is read, unpacked.",
    )
    package_files_max: int = Field(
        1000,
        validation_alias="VKPROVIDER_PACKAGE_FILES_MAX",
        ge=1,
        description="How many files and folders a content package may hold.",
    )
    kubeconfig: str | None = Field(
        None,
        validation_alias=AliasChoices("KUBECONFIG"),
        description="Path of a kubeconfig; if unset the Pod's ServiceAccount, outside of a Pod `~/.kube/config`.",
    )
    http_host: str = Field(
        "0.0.0.0",  # noqa: S104 (probes come from the node)
        validation_alias="VKPROVIDER_HTTP_HOST",
        description="Address of the page with probes, metrics, /events and /admin.",
    )
    http_port: int = Field(
        8082, validation_alias="VKPROVIDER_HTTP_PORT", ge=0, le=65535, description="Its port; 0 takes a free one."
    )
    http_tls_cert: str | None = Field(
        None,
        validation_alias="VKPROVIDER_HTTP_TLS_CERT",
        description="PEM file of its certificate, with the chain; read again when it is renewed. Plain HTTP if unset.",
    )
    http_tls_key: str | None = Field(
        None, validation_alias="VKPROVIDER_HTTP_TLS_KEY", description="PEM file of the certificate's key."
    )
    events_secret: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_EVENTS_SECRET",
        description="What senders of session events must know; several, to change it, separated by blanks. "
        "No event is taken without.",
    )
    events_retry_s: float = Field(
        600.0,
        validation_alias="VKPROVIDER_EVENTS_RETRY",
        ge=0,
        description="Seconds for which the sender of an event about an unknown session is asked to come again.",
    )
    internal_ip: str | None = Field(
        None,
        validation_alias=AliasChoices("VKPROVIDER_INTERNAL_IP", "POD_IP"),
        description="InternalIP of the Nodes: where the API server reaches this replica.",
    )
    worker_probe_s: float = Field(
        5.0, validation_alias="WORKER_PROBE_SECONDS", gt=0, description="Seconds between two probes of a worker."
    )
    worker_probe_failures_max: int = Field(
        3,
        validation_alias="VKPROVIDER_WORKER_PROBE_FAILURES",
        ge=1,
        description="Failed probes in a row after which a worker counts as silent.",
    )
    recovery_attempts_max: int = Field(
        3,
        validation_alias="RECOVERY_MAX_ATTEMPTS",
        ge=0,
        description="Starts without a wipe of a lab whose devices stopped, before somebody has to look.",
    )
    stopped_max_s: float = Field(
        86400.0,
        validation_alias="VKPROVIDER_STOPPED_MAX_SECONDS",
        gt=0,
        description="Seconds that a lablet may stay stopped on request; then it ends.",
    )
    kept_s: float = Field(
        604800.0,
        validation_alias="VKPROVIDER_KEPT_SECONDS",
        gt=0,
        description="Seconds that a learner's configurations and responses are kept after they were collected.",
    )
    port_check_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_PORT_CHECK_SECONDS",
        ge=0,
        description="Seconds within which one of a ready lablet's console ports must open; 0 does not look.",
    )
    grader_url: str = Field(
        "",
        validation_alias="VKPROVIDER_GRADER_URL",
        description="Where what a learner leaves is graded; nobody grades it if unset.",
    )
    grader_token: SecretStr | None = Field(
        None, validation_alias="VKPROVIDER_GRADER_TOKEN", description="The grader's bearer token."
    )
    grader_timeout_s: float = Field(
        60.0, validation_alias="VKPROVIDER_GRADER_TIMEOUT", gt=0, description="Seconds for one answer of the grader."
    )
    timeslot_s: float = Field(
        86400.0,
        validation_alias="VKPROVIDER_TIMESLOT_SECONDS",
        gt=0,
        description="Seconds of a learner's timeslot where the Pod does not say when it ends.",
    )
    taint_effect: Literal["NoExecute", "NoSchedule"] = Field(
        "NoExecute", validation_alias="VKPROVIDER_TAINT_EFFECT", description="Effect of the Nodes' taints."
    )
    api_qps: float = Field(
        1000.0, validation_alias="VKPROVIDER_API_QPS", gt=0, description="Requests a second to the API server."
    )
    api_burst: int = Field(
        2000, validation_alias="VKPROVIDER_API_BURST", ge=1, description="Requests that may be sent at once."
    )
    workload_levels: int = Field(
        10,
        validation_alias="VKPROVIDER_WORKLOAD_LEVELS",
        ge=1,
        description="Levels of load; for a node that its planned owner leaves unclaimed, the least loaded try first.",
    )
    api_in_flight_max: int = Field(
        24,
        validation_alias="VKPROVIDER_API_IN_FLIGHT",
        ge=1,
        description="Requests that may await the API server's answer; each one takes a connection.",
    )
    node_definitions_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_NODE_DEFINITIONS",
        description="YAML file of further node definitions: `{name: {cpus: 1, ram: 512, licensed: true}}`, MiB.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", validation_alias="VKPROVIDER_LOG_LEVEL", description="The least important log lines that are written."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", validation_alias="VKPROVIDER_LOG_FORMAT", description="`auto` is console on a terminal, else json."
    )

    @model_validator(mode="after")
    def _check_range(self) -> "Settings":
        if self.port_range_end < self.port_range_start:
            raise ValueError(f"PORT_RANGE_END {self.port_range_end} is below PORT_RANGE_START {self.port_range_start}")
        return self

    @field_validator("lds_api_token", "grader_token", "s3_access_key", "s3_secret_key")
    @classmethod
    def _one_line(cls, secret: SecretStr | None) -> SecretStr | None:
        """Take off the line break that a Secret made with `echo` ends with."""
        text = secret.get_secret_value().strip() if secret is not None else ""
        if not text.isprintable():
            raise ValueError("holds what no header may hold, such as a line break")
        return SecretStr(text) if text else None

    @model_validator(mode="after")
    def _check_tls(self) -> "Settings":
        if bool(self.http_tls_cert) != bool(self.http_tls_key):
            raise ValueError("set both VKPROVIDER_HTTP_TLS_CERT and VKPROVIDER_HTTP_TLS_KEY, or neither")
        return self

    @model_validator(mode="after")
    def _check_content(self) -> "Settings":
        check_url(self.content_store)
        found = urlsplit(self.s3_endpoint)
        if found.scheme not in {"http", "https"} or not found.hostname or found.query or found.fragment:
            raise ValueError(f"S3_ENDPOINT {self.s3_endpoint[:80]!r} is no URL like http://minio:9000")
        return self

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as unset.

        Raises:
            pydantic.ValidationError: A value is not what its field says.
        """
        return cls.model_validate({name: value for name, value in environment.items() if value})

    @property
    def ignored(self) -> list[str]:
        """Variables that are set, accepted and without effect, so that nobody waits for one."""
        unused = sorted(NEVER & self.model_fields_set)
        return [str(type(self).model_fields[name].validation_alias) for name in unused]

    @property
    def events_secrets(self) -> list[str]:
        """Secrets of which a sender of session events must know one."""
        return self.events_secret.get_secret_value().split() if self.events_secret is not None else []

    def limits(self) -> Limits:
        """What decisions depend on."""
        return Limits(
            start_timeout_s=self.lab_start_timeout_s,
            recoveries_max=self.recovery_attempts_max,
            stopped_max_s=self.stopped_max_s,
            slot_s=self.timeslot_s,
            extract_on_stop=self.config_extract_on_stop,
        )

    def tuning(self) -> Tuning:
        """The times of the controllers."""
        return Tuning(
            lease_ttl_s=self.lease_ttl_s,
            workload_levels=self.workload_levels,
            probe_s=self.worker_probe_s,
            refresh_s=2 * self.worker_probe_s,
            probe_failures_max=self.worker_probe_failures_max,
            reconcile_s=self.reconcile_s,
            kept_s=self.kept_s,
            port_range=(self.port_range_start, self.port_range_end),
            ports_per_instance_max=self.ports_per_instance_max,
            port_check_s=self.port_check_s,
            every_access=self.lds_every_access,
            taint_effect=self.taint_effect,
            internal_ip=self.internal_ip or _own_ip(),
        )

    def lds(self) -> Source | None:
        """Where the Lab Delivery System is; None if it takes no part, because nobody said so."""
        if not {"lds_api_url", "lds_deployments_config"} & self.model_fields_set:
            return None
        return Source(
            self.lds_deployments_config,
            self.lds_api_url if "lds_api_url" in self.model_fields_set else "",
            strategy=self.lds_selection_strategy,
            timeout_s=self.lds_default_timeout_s,
            url_timeout_s=self.lds_api_timeout_s,
            token=self.lds_api_token.get_secret_value() if self.lds_api_token else None,
        )

    def content_place(self) -> StorePlace:
        """Where content packages are."""
        access, secret = self.s3_access_key, self.s3_secret_key
        return StorePlace(
            url=self.content_store,
            endpoint=self.s3_endpoint,
            access_key=access.get_secret_value() if access else None,
            secret_key=secret.get_secret_value() if secret else None,
            region=self.s3_region,
            timeout_s=self.content_timeout_s,
        )

    def package_limits(self) -> PackageLimits:
        """How large content packages may be."""
        return PackageLimits(
            package_bytes=self.package_bytes_max,
            unpacked_bytes=self.package_unpacked_bytes_max,
            file_bytes=self.package_file_bytes_max,
            files=self.package_files_max,
        )

    def grader(self, agent: str) -> HttpGrader | None:
        """Who grades; None for nobody."""
        if not self.grader_url:
            return None
        token = self.grader_token.get_secret_value() if self.grader_token else None
        return HttpGrader(self.grader_url, token=token, timeout_s=self.grader_timeout_s, user_agent=agent)

    def node_definitions(self) -> dict[str, NodeDefinition]:
        """The shipped node definitions, and those of the file.

        Raises:
            InputError: `SettingInvalid`: the file is missing or wrong.
        """
        if self.node_definitions_file is None:
            return dict(SHIPPED)
        try:
            with open(self.node_definitions_file, encoding="utf-8") as stream:  # noqa: PTH123 (one read)
                table = yaml.safe_load(stream) or {}
            return dict(SHIPPED) | {
                str(name): NodeDefinition(int(row["cpus"]), int(row["ram"]), bool(row.get("licensed", True)))
                for name, row in table.items()
            }
        except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError) as error:
            text = f"VKPROVIDER_NODE_DEFINITIONS {self.node_definitions_file}: {error!r}; expected name: {{cpus, ram}}"
            raise InputError("SettingInvalid", text) from None


def _own_ip() -> str:
    """Guess the address that others reach this host by; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
