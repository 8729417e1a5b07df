"""The text of a topology with a gap for each outside port, and its parameters.

`$$(NAME)` is an escape and yields `$(NAME)`; more dollars before a name are halved, as in Kubernetes. A name without a
value stays as it is, and so does every other `$`: hashed passwords (`$1$$…`) and shell scripts are full of them. A
configuration with parameters is filled in as one quoted scalar, so that no value can change the topology around it.

A day-0 configuration with parameters is one gap as a whole.

Ports are in the tags of nodes, and again in `smart_annotations`: CML makes one for every distinct tag, with the tag as
its name. Where several devices share the text of a tag, the annotation follows the first of them; CML makes new ones
for the others.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.lablet.names import LAB_CONTAINER
from vkprovider.lablet.ports import PortTemplate, span_of
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.topology import yamltext
from vkprovider.platform.errors import InputError

_REFERENCE: Final = re.compile(r"(?<!\$)(\$+\([-._A-Za-z][-._A-Za-z0-9]*\))")
"""The lookbehind keeps a long run of dollars from being tried at each of them."""


@dataclass(frozen=True, slots=True)
class ParameterConfiguration:
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


def configuration_of(text: str, *, gap: str, container: str) -> ParameterConfiguration | None:
    """Return a text as a configuration with parameters; None if it has none."""
    if "$(" not in text:  # most have none, and this is much quicker
        return None
    pieces = _REFERENCE.split(text)
    return ParameterConfiguration(gap, container, tuple(pieces)) if len(pieces) > 1 else None


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


def scalars(
    configurations: tuple[ParameterConfiguration, ...], environment: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
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


_ANNOTATION_FIELDS: Final = ("tag", "label")
_EMPTY: Final = '""'
"""The text in the gap of a configuration, which is not kept a second time without its values."""


@dataclass(frozen=True, slots=True)
class GappedText:
    """A text with gaps.

    Attributes:
        parts: Text and the author's own value of a gap, alternating; text comes first and last.
        slots: The name of what fills each gap: of a slot whose port it is, or of a configuration; a field of the lab.
    """

    parts: tuple[str, ...]
    slots: tuple[str, ...]

    @property
    def own(self) -> dict[str, str]:
        """The author's values, by the name of the gap."""
        return dict(zip(self.slots, self.parts[1::2], strict=True))

    def filled(self, values: Mapping[str, int | str] | None) -> str:
        """Return the text with these values, or with the author's.

        Raises:
            KeyError: A gap has no value.
        """
        if values is None:
            return "".join(self.parts)
        parts = list(self.parts)
        parts[1::2] = [str(values[slot]) for slot in self.slots]
        return "".join(parts)


def form_of(
    document: Mapping[str, Any],
    template: PortTemplate,
    containers: Mapping[str, str],
    *,
    source: str,
    shared: bool,
) -> tuple[GappedText, tuple[ParameterConfiguration, ...]]:
    """Write a topology as text with a gap for every port and for every configuration with parameters.

    Args:
        document: The topology, or the part of it that lablets share.
        template: Its ports.
        containers: Device label → container name.
        source: The text that the document was read from.
        shared: Whether YAML aliases may share parts of it.

    Returns:
        The form, and its configurations with parameters.

    Raises:
        ValueError: YAML cannot carry it.
    """
    gaps = _Gaps(template, source)
    marked = dict(document)
    marked["nodes"] = [gaps.configured(gaps.node(node), containers) for node in document["nodes"]]
    if isinstance(annotations := document.get("smart_annotations"), list):
        marked["smart_annotations"] = [gaps.annotation(item) for item in annotations]
    return gaps.form(yamltext.write(marked, shared=shared)), tuple(gaps.configurations)


def head_of(header: Mapping[str, Any], gaps: Collection[str], *, source: str, flat: bool, shared: bool) -> GappedText:
    """Write the lab's fields as text with gaps.

    Args:
        header: The fields.
        gaps: The fields that differ for each lablet, such as `title`.
        source: The text that they were read from.
        flat: Whether they are at the top level, as up to version 0.0.5.
        shared: Whether YAML aliases may share parts of them.

    Raises:
        ValueError: YAML cannot carry it.
    """
    word = _word_of(source)
    marked = {**header, **{gap: f"{word}{gap}." for gap in gaps}}
    text = yamltext.write(marked if flat else {"lab": marked}, shared=shared)
    parts: list[str] = []
    found: list[str] = []
    at = 0
    for gap in re.finditer(f'"?{word}({"|".join(gaps)})\\."?', text):
        parts += (text[at : gap.start()], '""')
        found.append(gap[1])
        at = gap.end()
    return GappedText((*parts, text[at:]), tuple(found))


def _word_of(source: str) -> str:
    """Return a word that a text does not contain: no text can contain its own digest, not even on purpose."""
    return "w" + hashlib.sha256(source.encode()).hexdigest()[:32]


class _Gaps:
    """Marks ports in tags, and configurations, of a document with a word that occurs nowhere else in it.

    Attributes:
        configurations: Those with parameters, as far as they are marked.
    """

    def __init__(self, template: PortTemplate, source: str) -> None:
        self._by_device: dict[str, dict[str, int]] = {}
        self._by_tag: dict[str, int] = {}
        self._word = _word_of(source)
        self._marked: list[str] = []
        self._found: list[tuple[str, str]] = []
        self.configurations: list[ParameterConfiguration] = []
        for i, slot in enumerate(template.slots):
            text = slot.tag.text
            self._by_device.setdefault(slot.device, {})[text] = i
            self._by_tag.setdefault(text, i)
            start, end = span_of(text)
            self._marked.append(f"{text[:start]}{self._word}{i}.{text[end:]}")
            self._found.append((slot.name, text[start:end]))

    def node(self, node: Any) -> Any:
        """Mark the tags of a node."""
        indexes = self._by_device.get(node["label"])
        if indexes is None:
            return node
        tags = [self._marked[indexes[tag]] if tag in indexes else tag for tag in node["tags"]]
        return {**node, "tags": tags}

    def configured(self, node: Any, containers: Mapping[str, str]) -> Any:
        """Mark the configurations of a node that have parameters."""
        given = marked = node.get("configuration")
        for place, text in texts_of(given):
            name = f"configuration {len(self.configurations)}"  # no port's name has a space
            found = configuration_of(text, gap=name, container=containers[node["label"]])
            if found is not None:
                self.configurations.append(found)
                marked = replaced(marked, place, f"{self._word}{len(self._found)}.")
                self._found.append((name, _EMPTY))
        return node if marked is given else {**node, "configuration": marked}

    def annotation(self, item: Any) -> Any:
        """Mark the fields of a smart annotation that name a port tag."""
        if not isinstance(item, dict):
            return item
        named = {
            field: self._marked[self._by_tag[text]]
            for field in _ANNOTATION_FIELDS
            if isinstance(text := item.get(field), str) and text in self._by_tag
        }
        return {**item, **named} if named else item

    def form(self, text: str) -> GappedText:
        """Cut the written text at the marks; a configuration is cut out with the quotes around it."""
        first, *pieces = text.split(self._word)
        parts, names = [first], []
        for piece in pieces:
            index, _, rest = piece.partition(".")
            name, written = self._found[int(index)]
            if written == _EMPTY and parts[-1].endswith('"') and rest.startswith('"'):
                parts[-1], rest = parts[-1][:-1], rest[1:]
            parts += (written, rest)
            names.append(name)
        return GappedText(tuple(parts), tuple(names))
