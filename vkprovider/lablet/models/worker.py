"""`CMLWorker`: a Cisco Modeling Labs controller that becomes a Node."""

from typing import Literal, Self

import pydantic
from pydantic import ConfigDict, Field

from vkprovider.lablet.models.fields import OBJECT_NAME, Address, Labels, Model, Port, Quantity, parse


class TlsSpec(Model):
    """How the worker's certificate is checked."""

    ca_bundle: str | None = Field(None, description="PEM certificates to trust instead of the system's.")
    insecure_skip_verify: bool = Field(default=False, description="Trust any certificate. For tests only.")


class PortRange(Model):
    """The external ports that the worker opens for its labs, both ends included."""

    start: Port = Field(description="First port.")
    end: Port = Field(description="Last port.")

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"end {self.end} is below start {self.start}")
        return self

    @property
    def size(self) -> int:
        """How many ports the range holds."""
        return max(0, self.end - self.start + 1)


class CapacitySpec(Model):
    """What the worker can hold. With `stats: On` CML itself is asked for what is missing here."""

    cpu: Quantity | None = Field(None, description="Cores for labs, for example `64`.")
    memory: Quantity | None = Field(None, description="Memory for labs, for example `256Gi`.")
    labs: int | None = Field(None, ge=0, description="Labs at the same time (the Node's `pods`); 200 if unset.")
    lab_nodes: int | None = Field(None, ge=0, description="Licensed devices running at the same time.")


class CMLWorkerSpec(Model):
    """One Cisco Modeling Labs controller that runs lablets."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.url) || self.tunnel != 'direct'",
                    "message": "url is missing: only with a tunnel does the agent know where CML is",
                }
            ]
        }
    )

    tunnel: Literal["direct", "mqtt", "http"] = Field(
        "direct",
        description="How the provider reaches the API: itself, or through an agent beside the worker, which has the "
        "name of the CMLWorker: by an MQTT broker, or by the replicas' HTTP pages, which the agent dials.",
    )
    url: str | None = Field(
        None,
        validate_default=True,
        description="Where its API is: `https://cml-1.example.com`. With a tunnel it may be left out: the agent has "
        "the address that counts.",
        min_length=1,
    )
    address: Address | None = Field(
        None, description="What learners reach: an IP address or a name. The url's host if unset."
    )
    environment: str = Field(
        "default",
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$",
        description="Lablets run only on workers of their own environment. Cannot be changed.",
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self == oldSelf",
                    "message": "environment cannot be changed: a changed taint would evict every lablet; "
                    "create another CMLWorker",
                }
            ]
        },
    )
    credentials_secret_name: str | None = Field(
        None,
        description="Secret with keys `username` and `password` in the namespace of logins, labelled "
        "`vkprovider.io/used-for: worker`; its annotation `vkprovider.io/host` names the host of `url`, with a tunnel "
        "`agent://NAME`. With a tunnel it may be left out: the agent logs in with credentials of its own.",
        max_length=253,
        pattern=OBJECT_NAME,
    )
    tls: TlsSpec = Field(default_factory=TlsSpec, description="How the worker's certificate is checked.")
    port_range: PortRange | None = Field(
        None,
        description="External ports; the provider's setting if unset.",
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": "self.start <= self.end", "message": "end is below start"}]
        },
    )
    capacity: CapacitySpec = Field(default_factory=CapacitySpec, description="What the worker can hold.")
    stats: Literal["Off", "On"] = Field(
        "Off",
        description="Whether CML is asked for capacity, for what foreign labs use, and for its node definitions.",
    )
    images: Literal["Off", "On"] = Field(
        "Off",
        description="Whether CML is asked every five minutes for its image definitions, which the Node then shows in "
        "`status.images`.",
    )
    node_labels: Labels = Field(
        default_factory=dict, description="Labels of the Node, such as `topology.kubernetes.io/zone`."
    )

    @pydantic.field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None, info: pydantic.ValidationInfo) -> str | None:
        if url is None and info.data.get("tunnel", "direct") == "direct":
            raise ValueError("Field required: only with a tunnel does the agent know where CML is")
        return url

    @property
    def cml_url(self) -> str:
        """The url; empty where only the agent knows it."""
        return self.url or ""


def parse_worker_spec(spec: object) -> CMLWorkerSpec:
    """Validate a CMLWorker's spec.

    Raises:
        InputError: `SpecInvalid`, with every field that is wrong.
    """
    return parse(CMLWorkerSpec, spec)
