"""Settings of an agent: where it dials, and the worker beside it."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from vkprovider.carriers.settings import MqttSettings, page_url
from vkprovider.platform.settings import Group, LogSettings, PortRange, ProgramSettings, Token, bounds


def _pages(urls: str) -> str:
    """Check the URLs of pages, separated by blanks."""
    return " ".join(map(page_url, urls.split()))


class DialSettings(Group):
    """An agent that dials the HTTP pages of replicas."""

    url: Annotated[str, AfterValidator(_pages)] = Field(
        "",
        validation_alias="VKPROVIDER_TUNNEL_HTTP_URL",
        description="The page of a replica, or what leads to the pages of all, such as `https://vkprovider.example.com`;"
        " several are separated by blanks. No HTTP if unset.",
    )
    token: Token = Field(
        None, validation_alias="VKPROVIDER_TUNNEL_HTTP_TOKEN", description="The agent's token there, without its name."
    )
    token_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_TOKEN_FILE",
        description="File that holds the token instead. It and the next three are read again when they are replaced.",
    )
    ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_CA_FILE",
        description="PEM file of the authorities that may sign the page's certificate; the system's if unset.",
    )
    cert_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_CERT_FILE",
        description="PEM file of the agent's certificate, where replicas accept certificates.",
    )
    key_file: str | None = Field(
        None, validation_alias="VKPROVIDER_TUNNEL_HTTP_KEY_FILE", description="PEM file of its key."
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError(
                "set both VKPROVIDER_TUNNEL_HTTP_CERT_FILE and VKPROVIDER_TUNNEL_HTTP_KEY_FILE, or neither"
            )
        return self

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.token is not None and self.token_file:
            raise ValueError("set VKPROVIDER_TUNNEL_HTTP_TOKEN or VKPROVIDER_TUNNEL_HTTP_TOKEN_FILE, not both")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        """Where to dial."""
        return tuple(self.url.split())


class AgentSettings(Group):
    """The agent, `vkprovider agent`, beside a worker."""

    name: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_NAME",
        description="The worker's name: that of its CMLWorker.",
        max_length=200,
        pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$",
    )
    environment: str = Field(
        "default",
        validation_alias="VKPROVIDER_AGENT_ENVIRONMENT",
        description="`spec.environment` of a CMLWorker that is created for it.",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
    )
    url: str = Field("", validation_alias="VKPROVIDER_AGENT_CML_URL", description="CML: `https://192.0.2.7`.")
    address: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_ADDRESS",
        description="What learners reach: an IP address or a name. The host of the url if unset.",
    )
    credentials_file: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_CREDENTIALS_FILE",
        description="File with CML's user name in its first line and the password in its second; read at every login.",
    )
    ports: PortRange = Field(
        "10000-20000",
        validation_alias="VKPROVIDER_AGENT_PORTS",
        description="TCP ports of CML's host that `kubectl port-forward` reaches through the agent: the port range of "
        "the CMLWorker. Consoles need none of them.",
    )
    ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_AGENT_CA_FILE",
        description="PEM file of the authorities that may sign CML's certificate; the system's if unset. Read again "
        "when it is replaced.",
    )
    insecure_skip_verify: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY",
        description="Trust any certificate of CML. For tests only.",
    )
    observe_s: float = Field(
        1.0,
        validation_alias="VKPROVIDER_AGENT_OBSERVE_SECONDS",
        gt=0,
        description="Seconds between two looks of the agent at CML while labs change; five times as long while nothing "
        "moves.",
    )
    stats: Literal["On", "Off"] = Field(
        "On",
        validation_alias="VKPROVIDER_AGENT_STATS",
        description="Whether the agent asks CML what it has and uses of CPU, memory and licences.",
    )
    state_file: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_STATE_FILE",
        description="File in which the newest epoch outlives a restart; not kept if unset.",
    )

    @property
    def port_range(self) -> tuple[int, int]:
        """The first and the last port that may be dialled."""
        return bounds(self.ports)


class AgentProcessSettings(ProgramSettings):
    """The settings of one agent, by subject."""

    agent: AgentSettings = AgentSettings()
    mqtt: MqttSettings = MqttSettings()
    dial: DialSettings = DialSettings()
    log: LogSettings = LogSettings()
