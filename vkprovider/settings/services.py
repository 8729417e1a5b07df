"""Settings of content packages, the LDS, the grader, the HTTP page and the log."""

import re
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from vkprovider.settings.group import Group
from vkprovider.settings.plaintext import is_plain

_MIB: Final = 2**20
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


Strategy = Literal["round-robin", "priority"]
"""How the deployment of a new session is chosen."""


class ContentSettings(Group):
    """Content packages and node definitions."""

    url: str = Field(
        "s3://content",
        validation_alias="VKPROVIDER_CONTENT_STORE",
        description="Where content packages are: `s3://BUCKET[/PREFIX]` or `file:///FOLDER`.",
    )
    endpoint: str = Field(
        "http://localhost:9000",
        validation_alias="S3_ENDPOINT",
        description="The S3 of content packages; read on request only.",
    )
    access_key: Token = Field(
        None, validation_alias="S3_ACCESS_KEY", description="Its access key; requests are anonymous if unset."
    )
    secret_key: Token = Field(None, validation_alias="S3_SECRET_KEY", description="Its secret key.")
    region: str = Field(
        "us-east-1", validation_alias="VKPROVIDER_S3_REGION", min_length=1, description="Region of the S3."
    )
    timeout_s: float = Field(
        60.0,
        validation_alias="VKPROVIDER_CONTENT_TIMEOUT",
        gt=0,
        description="Seconds in which a content package must arrive.",
    )
    node_definitions_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_NODE_DEFINITIONS",
        description="YAML file of further node definitions: `{name: {cpus: 1, ram: 512, licensed: true}}`, MiB.",
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        """Check that a store can be opened by its URL."""
        found = urlsplit(url)
        known = {"s3": bool(found.hostname), "file": found.path.startswith("/") and not found.netloc, "memory": True}
        if not known.get(found.scheme):
            raise ValueError(
                f"VKPROVIDER_CONTENT_STORE {url[:80]!r} is neither s3://BUCKET[/PREFIX] nor file:///FOLDER"
            )
        return url

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, url: str) -> str:
        found = urlsplit(url)
        if found.scheme not in {"http", "https"} or not found.hostname or found.query or found.fragment:
            raise ValueError(f"S3_ENDPOINT {url[:80]!r} is not a URL like http://minio:9000")
        return url


class PackageSettings(Group):
    """Sizes of content packages."""

    package_bytes_max: int = Field(
        20 * _MIB, validation_alias="VKPROVIDER_PACKAGE_BYTES_MAX", ge=1, description="Size of a content package."
    )
    unpacked_bytes_max: int = Field(
        100 * _MIB,
        validation_alias="VKPROVIDER_PACKAGE_UNPACKED_BYTES_MAX",
        ge=1,
        description="Size of all files in a content package together, unpacked.",
    )
    file_bytes_max: int = Field(
        4 * _MIB,
        validation_alias="VKPROVIDER_PACKAGE_FILE_BYTES_MAX",
        ge=1,
        description="Size of one file of a content package that is read, unpacked.",
    )
    files_max: int = Field(
        1000,
        validation_alias="VKPROVIDER_PACKAGE_FILES_MAX",
        ge=1,
        description="How many files and folders a content package may have.",
    )


class LdsSettings(Group):
    """The Lab Delivery System."""

    url: str = Field(
        "http://localhost:8081",
        validation_alias="LDS_API_URL",
        description="The Lab Delivery System. It takes part only if this is set or there is a deployments file.",
    )
    url_timeout_s: float = Field(
        30.0,
        validation_alias="LDS_API_TIMEOUT",
        gt=0,
        description="Seconds for one call of the Lab Delivery System of `LDS_API_URL`.",
    )
    token: Token = Field(
        None,
        validation_alias="LDS_API_TOKEN",
        description="Bearer token of Lab Delivery Systems that have no `token_file`.",
    )
    path: str = Field(
        "config/lds_deployments.yaml",
        validation_alias="LDS_DEPLOYMENTS_CONFIG",
        description="File with several deployments of it, read again when it changes; goes before `LDS_API_URL`.",
    )
    timeout_s: float = Field(
        30.0,
        validation_alias="LDS_DEFAULT_TIMEOUT",
        gt=0,
        description="Seconds for one call of a deployment of the file.",
    )
    strategy: Strategy = Field(
        "round-robin",
        validation_alias="LDS_SELECTION_STRATEGY",
        description="Which deployment gets a session: one after the other, or the lowest priority number with room.",
    )
    every_access: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_LDS_EVERY_ACCESS",
        description="Whether a session receives every access to a device, not its primary access alone.",
    )
    refresh_content: bool = Field(
        default=True,
        validation_alias="VKPROVIDER_LDS_REFRESH_CONTENT",
        description="Whether new content of a definition makes every deployment fetch its form again.",
    )
    timeslot_s: float = Field(
        86400.0,
        validation_alias="VKPROVIDER_TIMESLOT_SECONDS",
        gt=0,
        description="Seconds of a session's timeslot where the Pod has no `timeslot-end`; at its end the learner's "
        "time is over. Without a session, a lablet's time is open where it has no `timeslot-end`.",
    )

    @property
    def one_url(self) -> str:
        """The URL of the one deployment where there is no file; empty if the setting is unset."""
        return self.url if "url" in self.model_fields_set else ""


class GraderSettings(Group):
    """The grader."""

    url: str = Field(
        "",
        validation_alias="VKPROVIDER_GRADER_URL",
        description="The service that grades what a learner leaves; nothing is graded if unset.",
    )
    token: Token = Field(None, validation_alias="VKPROVIDER_GRADER_TOKEN", description="The grader's bearer token.")
    timeout_s: float = Field(
        60.0, validation_alias="VKPROVIDER_GRADER_TIMEOUT", gt=0, description="Seconds for one answer of the grader."
    )


class HttpSettings(Group):
    """The HTTP page."""

    host: str = Field(
        "0.0.0.0",  # noqa: S104 (probes come from the node)
        validation_alias="VKPROVIDER_HTTP_HOST",
        description="Address of the page with probes, metrics, /events and /admin.",
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
        """Check that it can be asked, and that no token goes there in plain text."""
        found = urlsplit(url)
        extra = found.username or found.password or found.query or found.fragment
        if url and (found.scheme not in {"http", "https"} or not found.hostname or extra or not url.isprintable()):
            raise ValueError(f"VKPROVIDER_PAGE_URL {url[:80]!r} is not a URL such as https://labs.example.com")
        if is_plain(url):
            raise ValueError(f"VKPROVIDER_PAGE_URL {url[:80]!r} would have tokens sent in plain text; use https")
        return url.rstrip("/")

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


class UnusedSettings(Group):
    """Variables of the lablet controller without effect."""

    etcd_host: str = Field("localhost", validation_alias="ETCD_HOST", description="Accepted and not used.")
    etcd_port: int = Field(2379, validation_alias="ETCD_PORT", description="Accepted and not used.")
    control_plane_api_url: str = Field(
        "http://localhost:8080", validation_alias="CONTROL_PLANE_API_URL", description="Accepted and not used."
    )
