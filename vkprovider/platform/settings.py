"""Settings that every program of ours shares, and how a program reads its own from the environment."""

import os
import random
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason


class Group(BaseModel):
    """Settings of one subject; in code they go by the fields' names, in the environment by their aliases."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, frozen=True, hide_input_in_errors=True)


def page_address(url: str, setting: str) -> str:
    """Return the address of a page to which tokens are sent, without a slash at its end.

    Args:
        url: The address; "" for none.
        setting: What names it.

    Raises:
        ValueError: It cannot be asked, or a token would go there in plain text.
    """
    found = urlsplit(url)
    extra = found.username or found.password or found.query or found.fragment
    if url and (found.scheme not in {"http", "https"} or not found.hostname or extra or not url.isprintable()):
        raise ValueError(f"{setting} {url[:80]!r} is not a URL such as https://labs.example.com")
    if is_plain(url):
        raise ValueError(f"{setting} {url[:80]!r} would have tokens sent in plain text; use https")
    return url.rstrip("/")


def is_plain(url: str) -> bool:
    """Return whether what is sent to a URL could be read on the way."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return False  # refused elsewhere
    return parts.scheme.lower() == "http" and not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


PORT_MAX: Final = 65535
_RANGE: Final = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


def bounds(text: str) -> tuple[int, int]:
    """Return the first and the last port of a range, or of one port.

    >>> bounds("10000-20000"), bounds("80")
    ((10000, 20000), (80, 80))

    Raises:
        ValueError: It is neither.
    """
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _checked(text: str) -> str:
    """Check a range of ports."""
    found = _RANGE.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= PORT_MAX:
        raise ValueError(f"{text[:80]!r} is not a range of ports like 10000-20000")
    return text


PortRange = Annotated[str, AfterValidator(_checked)]
"""A range of ports with both ends."""

_DEPLOYMENT: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""Ids of LDS deployments."""
SECRET_CHARS_MIN: Final = 16
"""The fewest characters of a secret that authenticates senders from outside."""


def _one_line(secret: SecretStr | None) -> SecretStr | None:
    """Remove the line break that a Secret made with `echo` ends with."""
    text = secret.get_secret_value().strip() if secret is not None else ""
    if not text.isprintable():
        raise ValueError("contains a character that a header may not contain, such as a line break")
    return SecretStr(text) if text else None


Token = Annotated[SecretStr | None, AfterValidator(_one_line)]
"""A secret that is sent in a header."""


def reveal(secret: SecretStr | None) -> str | None:
    """Return the value of a secret; None if it is unset."""
    return secret.get_secret_value() if secret is not None else None


def _bound(word: str) -> tuple[str, str]:
    """Return deployment and secret of a word of VKPROVIDER_EVENTS_SECRET."""
    deployment, colon, secret = word.partition(":")
    return (deployment, secret) if colon and _DEPLOYMENT.fullmatch(deployment) else ("", word)


class HttpSettings(Group):
    """The HTTP page."""

    host: str = Field(
        "",
        validation_alias="VKPROVIDER_HTTP_HOST",
        description="Address of the page with probes, metrics, /events and /admin. Unset: every one, of IPv4 and IPv6.",
    )
    port: int = Field(
        8082, validation_alias="VKPROVIDER_HTTP_PORT", ge=0, le=65535, description="Its port; 0 takes a free one."
    )
    page_url: str = Field(
        "",
        validation_alias="VKPROVIDER_PAGE_URL",
        description="Address of the page for people outside of the cluster, such as that of an Ingress: "
        "`https://labs.example.com`. Every CMLWorker shows it (`status.pageURL`), and `kubectl lablet grant` names it "
        "to a class, so that instructors need neither an address nor a right in the provider's namespace.",
    )
    tls_cert: str | None = Field(
        None,
        validation_alias="VKPROVIDER_HTTP_TLS_CERT",
        description="PEM file of its certificate, with the chain; it and the key are read again when replaced.",
    )
    tls_key: str | None = Field(
        None, validation_alias="VKPROVIDER_HTTP_TLS_KEY", description="PEM file of the certificate's key."
    )
    tls_self_signed: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_HTTP_TLS_SELF_SIGNED",
        description="Whether the page serves TLS with a certificate that the replica makes itself while the files do "
        "not exist: traffic is encrypted, but clients cannot verify who answers. Without it and without files the page "
        "is plain HTTP.",
    )
    audiences: str = Field(
        "vkprovider.io",
        validation_alias="VKPROVIDER_HTTP_AUDIENCES",
        description="Audiences of tokens that the page accepts, separated by blanks. With the API server's own among "
        "them, kubeconfig tokens are accepted, which anyone who reads them could use there.",
    )
    events_secret: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_EVENTS_SECRET",
        description="Secret of the senders of session events, at least 16 characters without blanks; several, to "
        "change it, separated by blanks. `DEPLOYMENT:SECRET` is that of one LDS deployment (`default` is that of "
        "`LDS_API_URL`), whose events count for its own sessions alone. No event is accepted without.",
    )
    events_retry_s: float = Field(
        600.0,
        validation_alias="VKPROVIDER_EVENTS_RETRY",
        ge=0,
        description="Seconds for which the sender of an event about an unknown session is asked to send it again.",
    )

    @field_validator("events_secret")
    @classmethod
    def _check_secrets(cls, given: SecretStr | None) -> SecretStr | None:
        secrets = [_bound(word) for word in (reveal(given) or "").split()]
        if any(len(secret) < SECRET_CHARS_MIN for _, secret in secrets):
            which = "the secret" if len(secrets) == 1 else f"one of the {len(secrets)} secrets, separated by blanks,"
            raise ValueError(
                f"{which} has less than {SECRET_CHARS_MIN} characters; use `openssl rand -hex 32`, and no blank in it"
            )
        return given

    @field_validator("page_url")
    @classmethod
    def _check_page_url(cls, url: str) -> str:
        return page_address(url, "VKPROVIDER_PAGE_URL")

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("set both VKPROVIDER_HTTP_TLS_CERT and VKPROVIDER_HTTP_TLS_KEY, or neither")
        return self

    @property
    def tls_files(self) -> tuple[str, str] | None:
        """Files of certificate and key."""
        return (self.tls_cert, self.tls_key) if self.tls_cert and self.tls_key else None

    @property
    def token_audiences(self) -> tuple[str, ...]:
        """Audiences of which a token must have one."""
        return tuple(self.audiences.split())

    @property
    def events_secrets(self) -> list[tuple[str, str]]:
        """Secrets of which a sender of session events must know one, each after its deployment, empty for any."""
        return [_bound(word) for word in (reveal(self.events_secret) or "").split()]


class LogSettings(Group):
    """The log."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", validation_alias="VKPROVIDER_LOG_LEVEL", description="The least important log lines that are written."
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto", validation_alias="VKPROVIDER_LOG_FORMAT", description="`auto` is console on a terminal, else json."
    )


def default_replica() -> str:
    """Return a name of this process: host, process id, and four letters that no earlier process had."""
    return f"{os.uname().nodename.split('.')[0].lower()}-{os.getpid()}-{random.randbytes(2).hex()}"


class ReplicaSettings(Group):
    """The replica."""

    instance_id: str = Field(
        default_factory=default_replica,
        validation_alias="LABLET_CONTROLLER_INSTANCE_ID",
        description="Name of this replica. A replica whose name is taken waits until the other has ended. "
        "Generated if unset.",
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?$",
    )
    secrets_dir: str | None = Field(
        None,
        validation_alias="VKPROVIDER_SECRETS_DIR",
        description="Folder of further settings, one file per variable, such as a mounted Secret. The environment "
        "goes before.",
    )
    namespace: str = Field(
        "vkprovider-system",
        validation_alias="VKPROVIDER_NAMESPACE",
        description="Namespace of claims, content and membership Leases.",
    )
    logins: str | None = Field(
        None,
        validation_alias="VKPROVIDER_LOGINS_NAMESPACE",
        description="Namespace of the Secrets with the logins of workers and devices, in which the provider may read "
        "Secrets. Unset: that of `VKPROVIDER_NAMESPACE`, with `-logins` after it.",
    )
    lease_ttl_s: float = Field(
        15.0,
        validation_alias="LEADER_LEASE_TTL",
        ge=3,
        description="Seconds from the death of a replica until its Nodes are taken over.",
    )
    timeline_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TIMELINE_FILE",
        description="File to which the time is appended at which each Pod reaches each stage in this replica, for "
        "finding out where time goes. Unset: none.",
    )
    workload_levels: int = Field(
        10,
        validation_alias="VKPROVIDER_WORKLOAD_LEVELS",
        ge=1,
        description="Levels of load. The least loaded replicas try first for a Node that its planned owner does "
        "not claim. The level is made of the Nodes that a replica owns (`vkprovider_owned_nodes`).",
    )

    @property
    def logins_namespace(self) -> str:
        """The namespace of logins."""
        return self.logins or wellknown.logins_namespace(self.namespace)


class KubeSettings(Group):
    """The API server."""

    kubeconfig: str | None = Field(
        None,
        validation_alias="KUBECONFIG",
        description="Path of a kubeconfig; if unset the Pod's ServiceAccount, outside of a Pod `~/.kube/config`.",
    )
    qps: float = Field(
        1000.0, validation_alias="VKPROVIDER_API_QPS", gt=0, description="Requests a second to the API server."
    )
    burst: int = Field(
        2000, validation_alias="VKPROVIDER_API_BURST", ge=1, description="Requests that may be sent at once."
    )
    in_flight_max: int = Field(
        64,
        validation_alias="VKPROVIDER_API_IN_FLIGHT",
        ge=1,
        description="Requests that may await the API server's answer, at most; fewer after it refused one (429) or did "
        "not answer. Each one takes a connection.",
    )


class ProgramSettings(Group):
    """The settings of one program, by subject; each program has its own class of them."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as unset.

        Raises:
            pydantic.ValidationError: A value is not what its field says.
            InputError: `SettingInvalid`: the folder of `VKPROVIDER_SECRETS_DIR` cannot be read.
        """
        folder = environment.get("VKPROVIDER_SECRETS_DIR")
        of_environment = {name: value for name, value in environment.items() if value and name.isupper()}
        variables = {**(_read_folder(Path(folder)) if folder else {}), **of_environment}
        return cls.model_validate(dict.fromkeys(cls.model_fields, variables))


class ReplicaProgramSettings(ProgramSettings):
    """What every program of several replicas is told: who this process is, and how it reaches the API server."""

    replica: ReplicaSettings = Field(default_factory=ReplicaSettings)
    kube: KubeSettings = KubeSettings()


def _read_folder(folder: Path) -> dict[str, str]:
    """Return the content of the files in a folder that are named like variables, without empty ones."""
    try:
        files = [path for path in folder.iterdir() if path.name.isupper() and path.is_file()]
        found = {path.name: path.read_text("utf-8").rstrip("\r\n") for path in files}
        return {name: value for name, value in found.items() if value}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_SECRETS_DIR {folder}: {error}") from None


def no_effect(name: str, meant: str) -> str:
    """Return the sentence about a name that nobody reads.

    >>> no_effect("VKPROVIDER_HTTP_PROT", "VKPROVIDER_HTTP_PORT")
    'VKPROVIDER_HTTP_PROT has no effect; do you mean VKPROVIDER_HTTP_PORT?'
    """
    return f"{name} has no effect; {f'do you mean {meant}?' if meant else 'no setting has a name like it'}"
