"""Settings of the portal: user labs, who may have them, and their times."""

import binascii
from base64 import b64decode
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from vkprovider.platform.settings import (
    Group,
    HttpSettings,
    LogSettings,
    ReplicaProgramSettings,
    page_address,
)
from vkprovider.platform.siteaddress import SiteAddress, addresses_of
from vkprovider.platform.wildcardhosts import WildcardHosts

_KEY_BYTES: Final = 32


class PortalSettings(Group):
    """The portal."""

    namespace_prefix: str = Field(
        "nublado",
        validation_alias="VKPROVIDER_PORTAL_NAMESPACE_PREFIX",
        pattern=r"^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$",
        description="What the names of namespaces of user labs begin with: `PREFIX-USER`.",
    )
    username_prefix: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_USERNAME_PREFIX",
        description="What the Kubernetes usernames of those who may have a lab begin with, such as `oidc:`. Paths, "
        "namespaces and answers have the name without it.",
    )
    dialect: Literal["sqr066", "nublado"] = Field(
        "sqr066",
        validation_alias="VKPROVIDER_PORTAL_DIALECT",
        description="How requests are answered: as SQR-066 says, or as the lab controller of Nublado does.",
    )
    audiences: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_AUDIENCES",
        description="Audiences of tokens that the portal accepts, separated by blanks. Empty: those of the API server, "
        "since a learner uses the same token for consoles.",
    )
    callers: Literal["token", "headers"] = Field(
        "token",
        validation_alias="VKPROVIDER_PORTAL_CALLERS",
        description="How callers are known: by a token of the cluster, or by the headers of an ingress that proves "
        "itself by `VKPROVIDER_PORTAL_INGRESS_SECRET`.",
    )
    ingress_secret: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_INGRESS_SECRET",
        description="Secret by which the ingress proves itself that names callers in headers.",
        min_length=16,
    )
    cookie_key: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_COOKIE_KEY",
        description="Key of the cookies of people who log in with a browser: 32 random bytes in base64, such as "
        "`openssl rand -base64 32` makes, the same for all replicas. Unset: nobody can log in, unless an ingress names "
        "callers.",
    )
    hsts_s: int = Field(
        0,
        validation_alias="VKPROVIDER_PORTAL_HSTS_SECONDS",
        ge=0,
        description="For how long a browser that was here asks for this name by https:// alone "
        "(`Strict-Transport-Security`); 0: nothing is said. It holds for every port of the name, also for those of a "
        "mux there without TLS.",
    )
    urls: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_URLS",
        description="Addresses by which people reach the portal, separated by commas, such as "
        "`https://labs.example.com` or `https://example.com/labs`: for a proxy in front that rewrites `Host`, or that "
        "passes on a part of its paths. Unset: the portal believes `Host`.",
    )
    hub_api_url: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_HUB_API_URL",
        description="API of a JupyterHub behind whose proxy people reach the portal, such as `http://hub:8081/hub/api`.",
    )
    hub_service: str = Field(
        "vkprovider",
        validation_alias="VKPROVIDER_PORTAL_HUB_SERVICE",
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="Name of the portal among the services of that hub.",
    )
    hub_token: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_HUB_TOKEN",
        description="Token of that service, as the hub knows it.",
    )
    oidc_issuer: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_OIDC_ISSUER",
        description="OpenID Connect issuer with which people log in, such as `https://login.example.com/realms/labs`; "
        "the API server trusts it, with the client of the portal as audience. Unset: nobody does.",
    )
    oidc_client_id: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_OIDC_CLIENT_ID",
        description="Name of the portal among the clients of that issuer.",
    )
    oidc_client_secret: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_OIDC_CLIENT_SECRET",
        description="Secret of that client; unset: it is a public one.",
    )
    oidc_scopes: str = Field(
        "openid profile email groups offline_access",
        validation_alias="VKPROVIDER_PORTAL_OIDC_SCOPES",
        description="Scopes that are asked for, separated by blanks, as far as the issuer says that it has them. "
        "`offline_access` lets a login go on after its first hour.",
    )
    oidc_prompt: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_OIDC_PROMPT",
        pattern=r"^[a-z_ ]{0,60}$",
        description="What the issuer asks at each login (`prompt`), such as `consent`, where it gives a refresh token "
        "only then.",
    )
    oidc_name: str = Field(
        "your organisation",
        validation_alias="VKPROVIDER_PORTAL_OIDC_NAME",
        min_length=1,
        max_length=60,
        description="What people call the issuer: the button says `Log in with NAME`.",
    )
    oidc_ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_OIDC_CA_FILE",
        description="File with the certificate authorities of the issuer. Unset: those of the system.",
    )
    provider_url: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_PROVIDER_URL",
        description="Address of the provider's page, such as `https://vkprovider.vkprovider-system:8082`, of which the "
        "portal asks, with the visitor's own token, what learners of a class have left, and what a user has saved. "
        "Unset: it shows nothing of lablets that are gone, and no lab begins from saved work.",
    )
    provider_ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_PROVIDER_CA_FILE",
        description="File with the certificate authorities of that page, read again when it changes. Unset, or while "
        "it does not exist: those of the system.",
    )
    config: str | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_CONFIG",
        description="YAML file with the menu, sizes, quotas, warm labs and environment. Unset: every definition with a "
        "family, no quota, no warm lab.",
    )
    workbench_hosts: str = Field(
        "",
        validation_alias="VKPROVIDER_PORTAL_WORKBENCH_HOSTS",
        description="Wildcard host at which workbenches are opened, each at an origin of its own, such as "
        "`*.wb.example.com`; of another registered domain than portal and hub. It leads to the portal, with `Host` as "
        "it was asked for. Unset: no page leads to a workbench.",
    )
    ssh_port: int = Field(
        0,
        validation_alias="VKPROVIDER_PORTAL_SSH_PORT",
        ge=0,
        le=65535,
        description="Port of consoles by ssh, `ssh LEARNER+DEVICE@…` with a link as password; 0: there is none. It "
        "listens at the address of the page.",
    )
    ssh_host_key: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_PORTAL_SSH_HOST_KEY",
        description="Private key by which ssh knows the portal, as `ssh-keygen -t ed25519 -N ''` writes it, the same "
        "for all replicas.",
    )
    require_use: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_PORTAL_REQUIRE_USE",
        description="Whether a user is offered only those definitions on which the user has the verb `use`, asked in "
        "the portal's namespace.",
    )
    starts_max: int = Field(
        50,
        validation_alias="VKPROVIDER_PORTAL_STARTS_MAX",
        ge=1,
        description="Labs that start at once, at most; the others wait in a queue.",
    )
    start_timeout_s: float = Field(
        2400.0,
        validation_alias="VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS",
        gt=0,
        description="Time after which a lab that has not started counts as failed; the wait in the queue is not part "
        "of it. At least ten minutes more than `status.bootTimeoutSeconds` of every definition on the menu.",
    )
    delete_timeout_s: float = Field(
        300.0,
        validation_alias="VKPROVIDER_PORTAL_DELETE_TIMEOUT_SECONDS",
        gt=0,
        description="Time after which a deletion that has not ended counts as failed; it is tried on.",
    )
    duration_s: int = Field(
        4 * 3600,
        validation_alias="VKPROVIDER_PORTAL_DURATION_SECONDS",
        ge=60,
        description="Time from the request for a lab to its end, unless the request names another.",
    )
    duration_max_s: int = Field(
        12 * 3600,
        validation_alias="VKPROVIDER_PORTAL_DURATION_MAX_SECONDS",
        ge=60,
        description="The longest time from the request for a lab to its end, extensions included.",
    )
    extend_s: int = Field(
        3600,
        validation_alias="VKPROVIDER_PORTAL_EXTEND_SECONDS",
        ge=60,
        description="The most by which one request extends a lab.",
    )
    idle_s: float = Field(
        0.0,
        validation_alias="VKPROVIDER_PORTAL_IDLE_SECONDS",
        ge=0,
        description="Time after which a lab that is ready and was never opened is deleted; 0: never. An exposed lablet "
        "is never deleted for this.",
    )
    failed_s: float = Field(
        3600.0,
        validation_alias="VKPROVIDER_PORTAL_FAILED_SECONDS",
        ge=0,
        description="Time for which the record of a lab that could not be made is kept, unless a new request replaces "
        "it before.",
    )
    look_s: float = 10.0
    """How often labs are looked at that no event announces a change of."""
    page_s: float = 15.0
    """How long an answer of the provider's page may take."""
    patience_s: float = 5.0
    """How long a replica that does not lead leaves work that nobody has in hand to the one that leads."""

    @property
    def token_audiences(self) -> tuple[str, ...]:
        """Audiences of which a token must have one."""
        return tuple(self.audiences.split())

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every answer."""
        return {"Strict-Transport-Security": f"max-age={self.hsts_s}"} if self.hsts_s else {}

    @property
    def cookie_secret(self) -> bytes | None:
        """The bytes of the key of cookies; None if there is none."""
        return _key_bytes(self.cookie_key.get_secret_value()) if self.cookie_key is not None else None

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: str) -> str:
        try:
            addresses_of(urls)
        except ValueError as error:
            raise ValueError(f"VKPROVIDER_PORTAL_URLS: {error}") from None
        return urls

    @property
    def addresses(self) -> tuple[SiteAddress, ...]:
        """Addresses by which people reach the portal; none if requests are believed."""
        return addresses_of(self.urls)

    @field_validator("provider_url")
    @classmethod
    def _check_provider(cls, url: str) -> str:
        return page_address(url, "VKPROVIDER_PORTAL_PROVIDER_URL")

    @field_validator("workbench_hosts")
    @classmethod
    def _check_hosts(cls, hosts: str) -> str:
        try:
            _ = WildcardHosts.of(hosts) if hosts else None
        except ValueError as error:
            raise ValueError(f"VKPROVIDER_PORTAL_WORKBENCH_HOSTS: {error}") from None
        return hosts

    @property
    def bench_hosts(self) -> WildcardHosts | None:
        """The hosts of workbenches; None if no page leads to them."""
        return WildcardHosts.of(self.workbench_hosts) if self.workbench_hosts else None

    @field_validator("hub_api_url")
    @classmethod
    def _check_hub(cls, url: str) -> str:
        found = urlsplit(url)
        is_api = found.path.removesuffix("/").endswith("/hub/api") and not found.query and not found.fragment
        if url and not (found.scheme in {"http", "https"} and found.hostname and is_api):
            raise ValueError(f"VKPROVIDER_PORTAL_HUB_API_URL {url[:80]!r} is not a URL like http://hub:8081/hub/api")
        return url

    @field_validator("oidc_issuer")
    @classmethod
    def _check_issuer(cls, url: str) -> str:
        found = urlsplit(url)
        if url and (found.scheme != "https" or not found.hostname or found.query or found.fragment):
            raise ValueError(f"VKPROVIDER_PORTAL_OIDC_ISSUER {url[:80]!r} is not a URL like https://login.example.com")
        return url

    @field_validator("cookie_key")
    @classmethod
    def _check_key(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value().strip() if key is not None else ""
        if text and len(_key_bytes(text)) != _KEY_BYTES:
            raise ValueError("is not 32 bytes in base64; make one: openssl rand -base64 32")
        return SecretStr(text) if text else None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.callers == "headers" and self.ingress_secret is None:
            raise ValueError(
                "VKPROVIDER_PORTAL_CALLERS is headers: set VKPROVIDER_PORTAL_INGRESS_SECRET, by which the ingress "
                "proves itself, or anybody could name any user"
            )
        if self.hub_api_url and (self.hub_token is None or self.callers == "headers"):
            raise ValueError(
                "VKPROVIDER_PORTAL_HUB_API_URL names a hub: set VKPROVIDER_PORTAL_HUB_TOKEN, by which the portal "
                "proves itself there, and leave VKPROVIDER_PORTAL_CALLERS at token"
            )
        if self.oidc_issuer and (not self.oidc_client_id or self.cookie_key is None or self.callers == "headers"):
            raise ValueError(
                "VKPROVIDER_PORTAL_OIDC_ISSUER names an issuer: set VKPROVIDER_PORTAL_OIDC_CLIENT_ID, by which it "
                "knows the portal, and VKPROVIDER_PORTAL_COOKIE_KEY, and leave VKPROVIDER_PORTAL_CALLERS at token"
            )
        if self.ssh_port and (self.ssh_host_key is None or self.callers == "headers"):
            raise ValueError(
                "VKPROVIDER_PORTAL_SSH_PORT is set: set VKPROVIDER_PORTAL_SSH_HOST_KEY, by which ssh knows the portal, "
                "and leave VKPROVIDER_PORTAL_CALLERS at token, since people log in there by links"
            )
        hosts = self.bench_hosts
        if hosts is not None and self.cookie_key is None:
            raise ValueError("VKPROVIDER_PORTAL_WORKBENCH_HOSTS is set: set VKPROVIDER_PORTAL_COOKIE_KEY as well")
        if hosts is not None and hosts.has_one_of(self.urls.split(",")):
            raise ValueError(
                "VKPROVIDER_PORTAL_URLS names a host of VKPROVIDER_PORTAL_WORKBENCH_HOSTS: give workbenches others"
            )
        if self.duration_s > self.duration_max_s:
            raise ValueError(
                f"VKPROVIDER_PORTAL_DURATION_SECONDS {self.duration_s} is more than "
                f"VKPROVIDER_PORTAL_DURATION_MAX_SECONDS {self.duration_max_s}"
            )
        return self


def _key_bytes(text: str) -> bytes:
    """Return the bytes of a key in base64, also in that for URLs; none if it is not."""
    try:
        return b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        return b""


class PortalProcessSettings(ReplicaProgramSettings):
    """The settings of one replica of the portal, by subject."""

    portal: PortalSettings = PortalSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
