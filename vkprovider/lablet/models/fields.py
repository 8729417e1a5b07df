"""The types and patterns of fields of custom resources, and a spec as its model, or every field that is wrong."""

import ipaddress
import re
from typing import Annotated, Final, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform import quantities
from vkprovider.platform.errors import InputError


class Model(BaseModel):
    """The base class of all models: camelCase on the wire, no unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


def _quantity(value: str | float) -> str:
    if quantities.parse(value) < 0:
        raise ValueError(f"{str(value)[:40]!r} is negative")
    return str(value)


NAMESPACE: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
OBJECT_NAME: Final = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
MUX: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)?$"
KEY: Final = r"^[A-Za-z0-9._-]+$"
_SEGMENT: Final = r"([^/\\\x00-\x1f.][^/\\\x00-\x1f]*|\.[^/\\\x00-\x1f.][^/\\\x00-\x1f]*|\.\.[^/\\\x00-\x1f]+)"
"""One part of a path, neither empty nor `.` nor `..`; for RE2, which has no look-ahead."""
OBJECT_KEY: Final = rf"^{_SEGMENT}(/{_SEGMENT})*$"
OBJECT_KEY_RE: Final = re.compile(OBJECT_KEY)
BUCKET: Final = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
VERSION_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
"""Pattern of a content's version: it must be a valid tag of an image."""
VERSION_CHARS_MAX: Final = 128
LATEST: Final = "latest"
"""The tag of an image that names the current version, whatever its name."""
_LABEL_NAME: Final = re.compile(
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
)
_LABEL_VALUE: Final = re.compile(r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")
_DNS_NAME: Final = re.compile(
    r"^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$"
)


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for name, value in labels.items():
        if not _LABEL_NAME.match(name):
            raise ValueError(f"{name[:80]!r} cannot be the name of a label; example: topology.kubernetes.io/zone")
        if not _LABEL_VALUE.match(value):
            raise ValueError(f"{value[:80]!r} cannot be the value of label {name}; at most 63 letters, digits, -_.")
    return labels


def _address(value: str) -> str:
    """Accept an address that a Node and a Pod may have: an IP address without a zone, or a DNS name."""
    try:
        known = ipaddress.ip_address(value)
    except ValueError:
        if not _DNS_NAME.match(value):
            raise ValueError(f"{value[:80]!r} is neither an IP address nor a DNS name") from None
    else:
        if isinstance(known, ipaddress.IPv6Address) and known.scope_id is not None:
            raise ValueError(f"{value[:80]!r} has a zone, which has no meaning on other hosts")
    return value


Labels = Annotated[dict[str, str], pydantic.AfterValidator(_labels)]
Address = Annotated[str, pydantic.AfterValidator(_address)]
Quantity = Annotated[
    str,
    pydantic.BeforeValidator(_quantity),
    Field(json_schema_extra={"x-kubernetes-int-or-string": True}, description="A Kubernetes quantity."),
]
Port = Annotated[int, Field(ge=1, le=65535)]


M = TypeVar("M", bound=Model)


def parse(model: type[M], spec: object) -> M:
    """Validate a spec.

    Raises:
        InputError: `SpecInvalid`, with every field that is wrong.
    """
    try:
        return model.model_validate(spec)
    except pydantic.ValidationError as error:
        faults = [
            f"{'.'.join(map(str, ('spec', *e['loc'])))}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors(include_input=False)
        ]
        raise InputError(WorkerReason.SPEC_INVALID, "; ".join(faults)) from None
