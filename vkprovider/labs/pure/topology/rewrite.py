"""The text of a topology with a gap for each outside port, so that rendering a lablet's text costs one join.

A day-0 configuration with parameters is one gap as a whole.

Ports are in the tags of nodes, and again in `smart_annotations`: CML makes one for every distinct tag, with the tag as
its name. Where several devices share the text of a tag, the annotation follows the first of them; CML makes new ones
for the others.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.lablet.tags import span_of
from vkprovider.lablet.template import PortTemplate
from vkprovider.labs.pure.topology import parameters, yamltext
from vkprovider.labs.pure.topology.parameters import Configuration

_ANNOTATION_FIELDS: Final = ("tag", "label")
_EMPTY: Final = '""'
"""The text in the gap of a configuration, which is not kept a second time without its values."""


@dataclass(frozen=True, slots=True)
class Form:
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
) -> tuple[Form, tuple[Configuration, ...]]:
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


def head_of(header: Mapping[str, Any], gaps: Collection[str], *, source: str, flat: bool, shared: bool) -> Form:
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
    return Form((*parts, text[at:]), tuple(found))


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
        self.configurations: list[Configuration] = []
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
        for place, text in parameters.texts_of(given):
            name = f"configuration {len(self.configurations)}"  # no port's name has a space
            found = parameters.configuration_of(text, gap=name, container=containers[node["label"]])
            if found is not None:
                self.configurations.append(found)
                marked = parameters.replaced(marked, place, f"{self._word}{len(self._found)}.")
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

    def form(self, text: str) -> Form:
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
        return Form(tuple(parts), tuple(names))
