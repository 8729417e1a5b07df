"""The fields that a definition declares for the variables of its lablets, and what a value of one has to be.

    parameters:
    - {name: SEAT, type: integer, help: "The number on your desk."}
    - {name: SITE, default: campus-1, pattern: "campus-[0-9]"}

A topology refers to them as `$(SEAT)`. Patterns are those of Rust's `regex`, which takes time in proportion to the
text: an author's pattern keeps nobody waiting.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

import pydantic
import pydantic_core
from pydantic import Field, StringConstraints, TypeAdapter

from vkprovider.lablet.models.fields import Model

VALUE_CHARS_MAX: Final = 1000
PARAMETERS_MAX: Final = 50
PARAMETER_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


class ParameterSpec(Model):
    """A variable that the portal asks for, and that the configurations of the topology refer to."""

    name: str = Field(description="The variable, `$(NAME)` in a configuration.", pattern=PARAMETER_NAME)
    type: Literal["string", "integer", "boolean"] = Field("string", description="What a value is.")
    default: str | None = Field(
        None,
        description="Value where nobody gives one; without it a request has to. Quote numbers.",
        max_length=VALUE_CHARS_MAX,
    )
    pattern: str | None = Field(
        None,
        description="A regular expression that the whole value matches, without look-around and back-references.",
        min_length=1,
        max_length=256,
    )
    help: str = Field("", description="What the form says beside the field.", max_length=500)

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.pattern is not None:
            try:
                _pattern_of(self.pattern)
            except pydantic_core.SchemaError as error:
                reason = str(error).strip().rpartition("\n")[2]
                raise ValueError(f"pattern of {self.name} cannot be used: {reason}") from None
        if self.default is not None and (fault := fault_of(self, self.default)):
            raise ValueError(f"default of {self.name}: {fault}")
        return self


def fault_of(spec: ParameterSpec, value: str) -> str:
    """Return why a value does not fit, for who has given it, without quoting what may be a password; "" if it fits.

    >>> fault_of(ParameterSpec(name="SEAT", type="integer"), "three")
    'it is no whole number; write one such as 3'
    """
    if len(value) > VALUE_CHARS_MAX:
        return f"it has {len(value)} characters, and at most {VALUE_CHARS_MAX} fit"
    if not value.isprintable():
        return "it has line ends or other characters that cannot be seen; write one line of text"
    if spec.type == "integer" and not _INTEGER.fullmatch(value):
        return "it is no whole number; write one such as 3"
    if spec.type == "boolean" and value not in {"true", "false"}:
        return "it is neither true nor false"
    if spec.pattern is not None and not _matches(spec.pattern, value):
        return f"it does not match {spec.pattern}"
    return ""


def parameters_of(spec: Mapping[str, Any]) -> tuple[ParameterSpec, ...] | None:
    """Return what the spec of a definition declares; None if that cannot be read."""
    try:
        return _ALL.validate_python(spec.get("parameters") or ())
    except pydantic.ValidationError:
        return None


_ALL: Final = TypeAdapter(tuple[ParameterSpec, ...])


@lru_cache(maxsize=1024)
def _pattern_of(pattern: str) -> TypeAdapter[str]:
    return TypeAdapter(Annotated[str, StringConstraints(pattern=f"^(?:{pattern})$")])


def _matches(pattern: str, value: str) -> bool:
    try:
        _pattern_of(pattern).validate_python(value)
    except pydantic.ValidationError:
        return False
    return True
