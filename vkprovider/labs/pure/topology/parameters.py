"""Parameters of a topology: `$(NAME)` in day-0 configurations, which takes its value from the Pod's environment.

`$$(NAME)` is an escape and yields `$(NAME)`; more dollars before a name are halved, as in Kubernetes. A name without a
value stays as it is, and so does every other `$`: hashed passwords (`$1$$…`) and shell scripts are full of them. A
configuration with parameters is filled in as one quoted scalar, so that no value can change the topology around it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.lablet.names import LAB_CONTAINER
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.topology import yamltext
from vkprovider.platform.errors import InputError

_REFERENCE: Final = re.compile(r"(?<!\$)(\$+\([-._A-Za-z][-._A-Za-z0-9]*\))")
"""The lookbehind keeps a long run of dollars from being tried at each of them."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A day-0 configuration with parameters.

    Attributes:
        gap: Its name among the gaps of the topology's form.
        container: Of the device.
        pieces: Text and references such as `$(NAME)`, alternating; text comes first and last.
    """

    gap: str
    container: str
    pieces: tuple[str, ...]

    def filled(self, values: Mapping[str, str]) -> Iterator[str]:
        """Yield the configuration piece by piece, with these values in the place of their names."""
        for at, piece in enumerate(self.pieces):
            if not at % 2:
                yield piece
                continue
            dollars, _, rest = piece.partition("(")
            kept, referred = divmod(len(dollars), 2)
            yield "$" * kept
            value = values.get(rest[:-1]) if referred else None
            yield (f"$({rest}" if referred else f"({rest}") if value is None else value


def configuration_of(text: str, *, gap: str, container: str) -> Configuration | None:
    """Return a text as a configuration with parameters; None if it has none."""
    if "$(" not in text:  # most have none, and this is much quicker
        return None
    pieces = _REFERENCE.split(text)
    return Configuration(gap, container, tuple(pieces)) if len(pieces) > 1 else None


def texts_of(configuration: Any) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Yield the texts of a node's `configuration` with their places: one text, or the contents of several files.

    The forms of CML 2.8 to 2.10: a text, `{name, content}`, or a list of the latter.
    """
    files = configuration if isinstance(configuration, list) else [configuration]
    for at, file in enumerate(files):
        where: tuple[int | str, ...] = (at,) if isinstance(configuration, list) else ()
        if isinstance(file, str) and not where:
            yield where, file
        elif isinstance(file, dict) and isinstance(file.get("content"), str):
            yield (*where, "content"), file["content"]


def replaced(value: Any, place: tuple[int | str, ...], text: str) -> Any:
    """Return a copy of a `configuration` with another text at a place; what is not on the way there is shared."""
    if not place:
        return text
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], text)
    return copy


def scalars(configurations: tuple[Configuration, ...], environment: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the YAML scalars for the gaps of the configurations, by the name of the gap.

    Args:
        configurations: Those with parameters.
        environment: Variables by container; those of `lab` are for the devices without a container.

    Raises:
        InputError: `CreateContainerConfigError`: with their values they are larger than a topology may be.
    """
    found, room = {}, yamltext.CHARS_MAX
    for configuration in configurations:
        values = environment.get(configuration.container, environment.get(LAB_CONTAINER, {}))
        parts = []
        for part in configuration.filled(values):
            room -= len(part)
            if room < 0:
                raise InputError(
                    Trouble.CREATE_CONTAINER_CONFIG_ERROR,
                    f"with the values of their parameters the configurations have more than {yamltext.CHARS_MAX} "
                    "characters; shorten the values",
                )
            parts.append(part)
        found[configuration.gap] = yamltext.scalar("".join(parts))
    return found
