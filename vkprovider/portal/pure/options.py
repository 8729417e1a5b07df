"""What a user asks for, the body of a request; and why it is refused.

    {"options": {"image_list": ["netlab:1.0"], "size": ["large"], "enable_debug": ["true"]},
     "env": {"JUPYTERHUB_API_URL": "http://hub:8081/hub/api"}}

Values come plain, or as the lists of one text that a form of JupyterHub makes of them.
"""

import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Annotated, Any, Final, NamedTuple

import pydantic
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StringConstraints

from vkprovider.lablet.archives import ARCHIVE_ID
from vkprovider.lablet.models.parameters import PARAMETERS_MAX

BODY: Final = "body"
USERNAME: Final = ("path", "username")


class Grounds(Enum):
    """The grounds of a rejection, each with the word that clients compare and the HTTP status."""

    INVALID_TOKEN = "invalid_token", 401
    PERMISSION_DENIED = "permission_denied", 403
    INSUFFICIENT_QUOTA = "insufficient_quota", 403
    UNKNOWN_USER = "unknown_user", 404
    NOT_SUPPORTED = "not_supported", 404
    LAB_EXISTS = "lab_exists", 409
    OPERATION_IN_PROGRESS = "operation_in_progress", 409
    NAMESPACE_CONFLICT = "namespace_conflict", 409
    CANNOT_EXTEND = "cannot_extend", 409
    CANNOT_RESET = "cannot_reset", 409
    CANNOT_BE_DONE = "cannot_be_done", 409
    UNKNOWN_IMAGE = "unknown_image", 400
    INVALID_JSON = "json_invalid", 422
    INVALID_BODY = "value_error", 422
    INVALID_LAB_SIZE = "invalid_lab_size", 422
    INVALID_REFERENCE = "invalid_docker_reference", 422
    DELETE_FAILED = "delete_failed", 500
    UNAVAILABLE = "unavailable", 503

    @property
    def word(self) -> str:
        """The `type` of the answer."""
        return self.value[0]

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return self.value[1]


class Rejection(NamedTuple):
    """Why a request is refused.

    Attributes:
        grounds: Its kind.
        msg: What is wrong and what to do about it, for people.
        loc: The part of the request that is to blame, such as `("body", "options", "size")`; empty if it is none.
    """

    grounds: Grounds
    msg: str
    loc: tuple[str, ...] = ()


USE_DROPDOWN: Final = "use_image_from_dropdown"
"""The value of `image_list` that means the one of `image_dropdown`."""
PARAMETER: Final = "parameter."
"""How the name of an option begins that is a variable which the definition asks for: `parameter.SEAT`."""
ENV_MAX: Final = 200
ENV_BYTES_MAX: Final = 256 * 1024
"""The most environment variables of a request, and their bytes together: a Secret holds 1 MiB."""
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,252}")
_TOLD: Final[Mapping[str, str]] = {
    "missing": "{name} is missing: a request has options, and env if it needs to",
    "extra_forbidden": "there is no {name} here: a request has options and env, and each option has its own name",
    "model_type": "{name} is no object of JSON",
}
"""Words for faults of the form that a caller meets first, by pydantic's name of them."""
_TRUTH: Final[Mapping[object, bool]] = {"true": True, "false": False}


class ImageBy(StrEnum):
    """How a request names the image of its lab."""

    REFERENCE = "image_list"
    TAG = "image_tag"
    TYPE = "image_type"


class ImageType(StrEnum):
    """The images that a request need not know by name."""

    RECOMMENDED = "recommended"
    LATEST_WEEKLY = "latest-weekly"
    LATEST_DAILY = "latest-daily"
    LATEST_RELEASE = "latest-release"


class LabWish(NamedTuple):
    """The lab that a user asks for.

    Attributes:
        by: How the image is named.
        image: The name: a reference, a tag or an image type.
        size: The size; "" for the usual one.
        duration_s: For how long, in seconds; 0 for the usual time.
        class_: The namespace of the class that the lab is for; "" for none.
        env: The environment variables, with values that only the lab's ConfigMap and Secret may hold.
        parameters: What is given for the variables that the definition asks for, by name; the same goes for them.
        begin_from: The id of the saved work that the devices begin with; "" for none.
    """

    by: ImageBy
    image: str
    size: str = ""
    enable_debug: bool = False
    reset_user_env: bool = False
    duration_s: int = 0
    class_: str = ""
    env: Mapping[str, str] = {}
    parameters: Mapping[str, str] = {}
    begin_from: str = ""

    @property
    def options(self) -> dict[str, str | bool | int]:
        """The options as a record keeps them."""
        found: dict[str, str | bool | int] = {
            "enable_debug": self.enable_debug,
            str(self.by): self.image,
            "reset_user_env": self.reset_user_env,
        }
        further: dict[str, str | int] = {
            "size": self.size,
            "duration": self.duration_s,
            "class": self.class_,
            "begin_from": self.begin_from,
        }
        return found | {key: value for key, value in further.items() if value}


def _truth(value: object) -> object:
    return _TRUTH.get(value, value) if isinstance(value, str) else value


Text = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[\x21-\x7e]+$")]
Truth = Annotated[StrictBool, BeforeValidator(_truth)]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    image_list: Text | None = None
    image_dropdown: Text | None = None
    image_tag: Text | None = None
    image_type: ImageType | None = Field(None, validation_alias=AliasChoices("image_type", "image_class"))
    size: Annotated[str, StringConstraints(max_length=63, to_lower=True)] = ""
    enable_debug: Truth = False
    reset_user_env: Truth = False
    duration: Annotated[int, Field(ge=0, le=2**31)] = 0
    class_: Annotated[str, StringConstraints(max_length=63, pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$")] = Field(
        "", validation_alias="class"
    )
    parameters: dict[str, str] = Field({}, validation_alias=PARAMETER)
    begin_from: Annotated[str, StringConstraints(max_length=63, pattern=rf"^({ARCHIVE_ID.pattern})?$")] = ""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _plain(cls, found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        plain = {key: _only(key, value) for key, value in found.items()}
        given = {key: plain.pop(key) for key in list(plain) if isinstance(key, str) and key.startswith(PARAMETER)}
        if len(given) > PARAMETERS_MAX or not all(isinstance(value, str | int) for value in given.values()):
            raise ValueError(f"an option that begins with {PARAMETER} has text, a whole number, true or false")
        texts = {key.removeprefix(PARAMETER): _text(value) for key, value in given.items()}
        return {**plain, PARAMETER: texts} if texts else plain


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    options: _Options
    env: dict[str, str] = {}

    @pydantic.field_validator("env")
    @classmethod
    def _check(cls, env: dict[str, str]) -> dict[str, str]:
        if len(env) > ENV_MAX:
            raise ValueError(f"{len(env)} environment variables are too many; a lab takes {ENV_MAX}")
        for name, value in env.items():
            if not _ENV_NAME.fullmatch(name):
                raise ValueError(f"{name[:40]!r} cannot be the name of an environment variable")
            if "\0" in value or not _is_text(value):
                raise ValueError(f"the value of {name[:40]} is no text that an environment variable can have")
        size = sum(len(name) + len(value.encode()) for name, value in env.items())
        if size > ENV_BYTES_MAX:
            raise ValueError(f"the environment has {size} bytes; a lab takes {ENV_BYTES_MAX}")
        return env


def parse(body: object, *, one_image: bool = False) -> LabWish | list[Rejection]:
    """Check the body of a request for a lab.

    Args:
        body: The body, decoded from JSON.
        one_image: Whether a request that names its image in two ways is refused; otherwise the most particular counts.
    """
    try:
        found = _Body.model_validate(body)
    except pydantic.ValidationError as error:
        return [_rejection(each) for each in error.errors(include_input=False, include_url=False)]
    options = found.options
    references = {"image_list": options.image_list, "image_dropdown": options.image_dropdown}
    for name, text in references.items():
        if text is not None and not _REFERENCE.match(text) and (name, text) != ("image_list", USE_DROPDOWN):
            told = f"{text[:80]!r} is no reference; write FAMILY:TAG"
            return [Rejection(Grounds.INVALID_REFERENCE, told, (BODY, "options", name))]
    named = _images(options)
    if not named:
        told = "name the image: image_list, image_tag or image_type"
        return [Rejection(Grounds.INVALID_BODY, told, (BODY, "options"))]
    if one_image and len(named) > 1:
        told = f"only one of {' and '.join(named)} may be set"
        return [Rejection(Grounds.INVALID_BODY, told, (BODY, "options"))]
    by, image = next(iter(named.items()))
    return LabWish(
        by,
        image,
        options.size,
        options.enable_debug,
        options.reset_user_env,
        options.duration,
        options.class_,
        found.env,
        {name: value for name, value in options.parameters.items() if value},
        options.begin_from,
    )


_REFERENCE: Final = re.compile("[^:]+:.")


def _images(options: _Options) -> dict[ImageBy, str]:
    """Return how the image is named, the most particular way first."""
    listed = options.image_list if options.image_list != USE_DROPDOWN else None
    named = {
        ImageBy.REFERENCE: listed or options.image_dropdown,
        ImageBy.TAG: options.image_tag,
        ImageBy.TYPE: options.image_type,
    }
    return {by: str(image) for by, image in named.items() if image is not None}


def _only(key: str, value: object) -> object:
    """Return the one value of a list, as a form of JupyterHub sends it; any other value as it is."""
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise ValueError(f"{key[:40]} has {len(value)} values; it takes one")
    return value[0]


def _text(value: object) -> str:
    """Return a value of a variable as text: JSON has numbers and truths of its own."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can write
        return False
    return True


def _rejection(error: Any) -> Rejection:
    loc = (BODY, *(str(part)[:63] for part in error["loc"]))
    told = _TOLD.get(error["type"])
    msg = str(error["msg"]).removeprefix("Value error, ") if told is None else told.format(name=loc[-1])
    return Rejection(Grounds.INVALID_BODY, msg, loc)
