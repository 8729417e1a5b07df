"""Settings of content packages, the LDS, the grader, the HTTP page and the log."""

from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from vkprovider.platform.settings import Group, Token, is_plain

_MIB: Final = 2**20

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


class UnusedSettings(Group):
    """Variables of the lablet controller without effect."""

    etcd_host: str = Field("localhost", validation_alias="ETCD_HOST", description="Accepted and not used.")
    etcd_port: int = Field(2379, validation_alias="ETCD_PORT", description="Accepted and not used.")
    control_plane_api_url: str = Field(
        "http://localhost:8080", validation_alias="CONTROL_PLANE_API_URL", description="Accepted and not used."
    )


_SENT: Final = {
    "LDS_API_URL": "tokens, sessions and the passwords of devices",
    "VKPROVIDER_GRADER_URL": "its token, and what learners leave",
    "S3_ENDPOINT": "content packages",
}
"""What goes to the service of a setting."""


def plain_text(urls: Mapping[str, str]) -> dict[str, str]:
    """Return for each setting whose URL is `http://`, but for loopback addresses, what could be read on the way.

    Args:
        urls: Values of settings by their variables; others than those of services are passed over.
    """
    return {
        name: f"{name} is http: {sent} can be read and changed on the way"
        for name, sent in _SENT.items()
        if is_plain(urls.get(name, ""))
    }
