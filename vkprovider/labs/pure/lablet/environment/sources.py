"""What the variables of a Pod refer to: ConfigMaps, Secrets, the downward API, and each other.

A lablet runs on its worker: the addresses of Pod and host are the worker's.

`$(NAME)` is the value of an earlier variable, and stays as it is if there is none; `$$` is one `$`, so that `$$(NAME)`
yields `$(NAME)`. A name ends at the first closing bracket, whatever stands before it.
"""

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform import quantities
from vkprovider.platform.environment import (
    EnvContainer,
    EnvFrom,
    EnvPod,
    KeyRef,
    ResourceFieldRef,
    SourceRef,
    ValueFrom,
)

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_ADDRESSES: Final = frozenset({"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"})
_MILLI: Final = 1000


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Where a lablet runs.

    Attributes:
        ip: The worker's address; "" while it is unknown.
        total: What the worker holds.
    """

    ip: str
    total: Resources


def field(pod: EnvPod, path: str, place: Placement) -> str:
    """Return a field of a Pod as text; a label or annotation that is not set is empty.

    Raises:
        ValueError: The field is not one that a variable can have, or is not known yet.
    """
    meta, spec = pod.metadata, pod.spec
    if (found := _SUBSCRIPT.fullmatch(path)) is not None:
        return (meta.labels if found[1] == "labels" else meta.annotations).get(found[2], "")
    if path in _ADDRESSES:
        if not place.ip:
            raise ValueError(f"{path}: the worker's address is not known yet")
        return place.ip
    known = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": spec.node_name,
        "spec.serviceAccountName": spec.service_account_name,
    }
    if path not in known:
        raise ValueError(f"{path} is not a field that a variable can have")
    return known[path]


def resource(pod: EnvPod, container: EnvContainer, ref: ResourceFieldRef, place: Placement) -> str:
    """Return a resource of a container in units of the divisor, rounded up.

    Without a limit the limit is what the worker holds, as it is what the node holds elsewhere; without a request the
    request is 0 (k8s.io/kubernetes/pkg/api/v1/resource).

    Raises:
        ValueError: There is no such container, or a quantity is not one.
    """
    named = {each.name: each for each in pod.spec.containers}
    of = named.get(ref.container_name) if ref.container_name else container
    if of is None:
        raise ValueError(f"there is no container {ref.container_name!r}")
    kind, _, name = ref.resource.partition(".")
    given = {"limits": of.resources.limits, "requests": of.resources.requests}.get(kind)
    if given is None or not name:
        raise ValueError(f"{ref.resource} is not a resource that a variable can have")
    amounts = place.total.quantities() | given if kind == "limits" else given
    scale = _MILLI if name == "cpu" else 1
    amount = math.ceil(quantities.parse(amounts.get(name, "0")) * scale)
    divisor = math.ceil(quantities.parse(ref.divisor or "0") * scale) or scale
    return str(-(-amount // divisor))


def expand(text: str, values: Mapping[str, str], *, chars_max: int) -> str:
    """Return a text with the values of the variables that it names; in linear time.

    Raises:
        ValueError: The result has more than `chars_max` characters.
    """
    parts: list[str] = []
    at, room, closes = 0, chars_max, True
    while (found := text.find("$", at)) >= 0 and found + 1 < len(text):
        before, after = text[at:found], text[found + 1]
        end = text.find(")", found) if closes and after == "(" else -1
        if end >= 0:
            name = text[found + 2 : end]
            part, at = values.get(name, f"$({name})"), end + 1
        else:
            closes = closes and after != "("  # no later one is closed either
            part, at = "$" if after == "$" else f"${after}", found + 2
        room -= len(before) + len(part)
        if room < 0:
            break
        parts += (before, part)
    rest = text[at:]
    if room < len(rest):
        raise ValueError(f"more than {chars_max} characters")
    return "".join((*parts, rest))


SOURCES_MAX: Final = 16
"""Objects that one Pod may refer to; each is read for every import."""
CHARS_MAX: Final = 2**20
"""The most characters of all values of a Pod together: one ConfigMap holds as many."""


class VariableSource(NamedTuple):
    """A ConfigMap or Secret of the Pod's namespace."""

    kind: Literal["configmap", "secret"]
    name: str


class Unread(msgspec.Struct, frozen=True, gc=False):
    """An object that was not read.

    Attributes:
        missing: It does not exist.
        why: Why else it was not read.
    """

    missing: bool = False
    why: str = ""


class SourceKeys(msgspec.Struct, frozen=True, gc=False):
    """The keys of an object that a Pod refers to.

    Attributes:
        values: By key.
        not_text: Keys whose values are not UTF-8; a configuration cannot contain them.
    """

    values: Mapping[str, str]
    not_text: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Return the keys alone: a value may be a Secret's."""
        return f"Content({', '.join(self.values)})"


Read = SourceKeys | Unread


def sources_of(pod: EnvPod) -> dict[VariableSource, frozenset[str] | None]:
    """Return the objects that a Pod refers to with the keys that it needs of each; None for all keys."""
    keys: dict[VariableSource, set[str]] = {}
    whole: set[VariableSource] = set()
    for container in pod.spec.containers:
        for each in container.env_from:
            if (named := source_of(each)) is not None:
                keys.setdefault(named[0], set())
                whole.add(named[0])
        for variable in container.env:
            if variable.value_from is not None and (one := key_of(variable.value_from)) is not None:
                keys.setdefault(one[0], set()).add(one[1].key)
    return {source: None if source in whole else frozenset(wanted) for source, wanted in keys.items()}


def source_of(given: EnvFrom) -> tuple[VariableSource, SourceRef] | None:
    """Return the object whose keys become variables; None if none is named."""
    if given.config_map_ref is not None:
        return VariableSource("configmap", given.config_map_ref.name), given.config_map_ref
    if given.secret_ref is not None:
        return VariableSource("secret", given.secret_ref.name), given.secret_ref
    return None


def key_of(given: ValueFrom) -> tuple[VariableSource, KeyRef] | None:
    """Return the object of which one key is a variable's value; None if the value comes from elsewhere."""
    if given.config_map_key_ref is not None:
        return VariableSource("configmap", given.config_map_key_ref.name), given.config_map_key_ref
    if given.secret_key_ref is not None:
        return VariableSource("secret", given.secret_key_ref.name), given.secret_key_ref
    return None


def content_of(data: Mapping[str, str | bytes], wanted: frozenset[str] | None) -> SourceKeys:
    """Return the part of a ConfigMap's or Secret's data that a Pod needs."""
    values, not_text = dict[str, str](), set[str]()
    for key, value in data.items():
        if wanted is not None and key not in wanted:
            continue
        try:
            values[key] = value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            not_text.add(key)
    return SourceKeys(values, frozenset(not_text))
