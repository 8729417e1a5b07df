"""Which deployments there are: those of the file that LDS_DEPLOYMENTS_CONFIG names, else the one of LDS_API_URL.

The file:

    lds_deployments:
    - id: lds-us-west
      base_url: https://lds-us-west.example.com
      region: us-west-2
      capacity: 500
      priority: 1
      enabled: true
      token_file: /etc/vkprovider/lds/us-west/token
      ca_file: /etc/vkprovider/lds/us-west/ca.pem
"""

from pathlib import Path
from typing import Final

import msgspec
import pydantic
import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator
from yarl import URL

from tunnels.base import CertificateInvalid
from tunnels.direct import ssl_context
from vkprovider.labs.pure.session.deployments import LdsDeployment
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason

DEFAULT: Final = "default"
"""The id of the deployment of LDS_API_URL."""
UNLIMITED: Final = 2**31
"""Its capacity, which no setting limits."""
_BYTES_MAX: Final = 2**20


class Configured(msgspec.Struct, frozen=True):
    """One deployment and how to reach it.

    Attributes:
        token_file: Holds its token; read before every request.
        ca_bundle: PEM text of the authorities to trust instead of the system's.
    """

    deployment: LdsDeployment
    timeout_s: float
    token_file: str | None = None
    ca_bundle: str | None = None


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
    base_url: str
    region: str = ""
    capacity: int = Field(ge=0)
    priority: int = 1
    enabled: bool = True
    token_file: str | None = None
    ca_file: str | None = None

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return check_url(value)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    lds_deployments: tuple[_Entry, ...]

    @field_validator("lds_deployments")
    @classmethod
    def _check_unique(cls, entries: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
        for field in ("id", "base_url"):
            values = [getattr(entry, field) for entry in entries]
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise ValueError(f"two deployments have the {field} {twice[0]}")
        return entries


def check_url(value: str) -> str:
    """Check and normalise a base URL.

    Raises:
        ValueError: It is not `http[s]://host[:port][/path]`. The URL is not quoted, it may hold a password.
    """
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("is not a URL") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("must be http://host or https://host")
    if url.user is not None or url.password is not None or url.query_string or url.fragment:
        raise ValueError("must have no user, query or fragment; a token belongs in token_file or LDS_API_TOKEN")
    return str(url).rstrip("/")


def read(settings: LdsSettings) -> tuple[Configured, ...]:
    """Read the deployments.

    Raises:
        InputError: `SettingInvalid`, with every field that is wrong.
    """
    if not from_file(settings):
        return (_of_url(settings),)
    try:
        with Path(settings.path).open("rb") as stream:
            text = stream.read(_BYTES_MAX + 1)
        if len(text) > _BYTES_MAX:
            raise _invalid(settings, "is longer than 1 MiB")
        entries = _File.model_validate(yaml.safe_load(text)).lds_deployments
    except OSError as error:
        raise _invalid(settings, f"cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(settings, f"is not YAML: {error}") from None
    except pydantic.ValidationError as error:
        faults = (
            f"{'.'.join(map(str, each['loc'])) or 'lds_deployments'}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors(include_input=False)
        )
        raise _invalid(settings, "; ".join(faults)) from None
    return tuple(
        Configured(_deployment(entry), settings.timeout_s, entry.token_file, _ca_bundle(settings, entry))
        for entry in entries
    )


def takes_part(settings: LdsSettings) -> bool:
    """Return whether an LDS is configured: by a setting, or by a file at the default path."""
    return bool(settings.one_url) or "path" in settings.model_fields_set or Path(settings.path).exists()


def from_file(settings: LdsSettings) -> bool:
    """Return whether the file decides, and not LDS_API_URL."""
    return not settings.one_url or Path(settings.path).exists()


def _deployment(entry: _Entry) -> LdsDeployment:
    return LdsDeployment(
        entry.id,
        entry.base_url,
        entry.capacity,
        region=entry.region,
        priority=entry.priority,
        enabled=entry.enabled,
    )


def _of_url(settings: LdsSettings) -> Configured:
    try:
        url = check_url(settings.one_url)
    except ValueError as error:
        raise InputError(StartReason.SETTING_INVALID, f"LDS_API_URL {error}") from None
    return Configured(LdsDeployment(DEFAULT, url, UNLIMITED), settings.url_timeout_s)


def _ca_bundle(settings: LdsSettings, entry: _Entry) -> str | None:
    if entry.ca_file is None:
        return None
    try:
        text = Path(entry.ca_file).read_text("ascii")
        ssl_context(verify=True, ca_bundle=text)
    except OSError as error:
        raise _invalid(settings, f"{entry.id}: ca_file cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, CertificateInvalid):
        raise _invalid(settings, f"{entry.id}: ca_file {entry.ca_file} holds no certificate in PEM form") from None
    return text


def _invalid(settings: LdsSettings, why: str) -> InputError:
    return InputError(StartReason.SETTING_INVALID, f"LDS_DEPLOYMENTS_CONFIG {settings.path}: {why}")
