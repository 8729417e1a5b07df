"""The ConfigMaps and Secrets that a Pod's variables refer to, and what came of reading one."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from vkprovider.platform.environment import EnvFrom, EnvPod, KeyRef, ObjectRef, ValueFrom

SOURCES_MAX: Final = 16
"""Objects that one Pod may refer to; each is read for every import."""
CHARS_MAX: Final = 2**20
"""The most characters of all values of a Pod together: one ConfigMap holds as many."""


class Source(NamedTuple):
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


class Content(msgspec.Struct, frozen=True, gc=False):
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


Read = Content | Unread


def sources_of(pod: EnvPod) -> dict[Source, frozenset[str] | None]:
    """Return the objects that a Pod refers to with the keys that it needs of each; None for all keys."""
    keys: dict[Source, set[str]] = {}
    whole: set[Source] = set()
    for container in pod.spec.containers:
        for each in container.env_from:
            if (named := source_of(each)) is not None:
                keys.setdefault(named[0], set())
                whole.add(named[0])
        for variable in container.env:
            if variable.value_from is not None and (one := key_of(variable.value_from)) is not None:
                keys.setdefault(one[0], set()).add(one[1].key)
    return {source: None if source in whole else frozenset(wanted) for source, wanted in keys.items()}


def source_of(given: EnvFrom) -> tuple[Source, ObjectRef] | None:
    """Return the object whose keys become variables; None if none is named."""
    if given.config_map_ref is not None:
        return Source("configmap", given.config_map_ref.name), given.config_map_ref
    if given.secret_ref is not None:
        return Source("secret", given.secret_ref.name), given.secret_ref
    return None


def key_of(given: ValueFrom) -> tuple[Source, KeyRef] | None:
    """Return the object of which one key is a variable's value; None if the value comes from elsewhere."""
    if given.config_map_key_ref is not None:
        return Source("configmap", given.config_map_key_ref.name), given.config_map_key_ref
    if given.secret_key_ref is not None:
        return Source("secret", given.secret_key_ref.name), given.secret_key_ref
    return None


def content_of(data: Mapping[str, str | bytes], wanted: frozenset[str] | None) -> Content:
    """Return the part of a ConfigMap's or Secret's data that a Pod needs."""
    values, not_text = dict[str, str](), set[str]()
    for key, value in data.items():
        if wanted is not None and key not in wanted:
            continue
        try:
            values[key] = value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            not_text.add(key)
    return Content(values, frozenset(not_text))
