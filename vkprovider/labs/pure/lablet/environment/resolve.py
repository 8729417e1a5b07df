"""The variables of each container of a lablet, from its Pod and from the ConfigMaps and Secrets that were read for it.

As in a kubelet, `envFrom` comes first and `env` goes before it, an earlier source gives way to a later one, and
`$(NAME)` in `value` refers to what stands before. The variables of the container `lab` are those of every device; a
device's container may set others, and refer to those of `lab`. There are no variables of Services.
"""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet.names import LAB_CONTAINER
from vkprovider.lablet.reasons import EnvironmentReason, Trouble
from vkprovider.labs.pure.lablet.environment import sources
from vkprovider.labs.pure.lablet.environment.sources import (
    CHARS_MAX,
    Placement,
    Read,
    Unread,
    VariableSource,
    expand,
    key_of,
    source_of,
)
from vkprovider.platform.environment import EnvContainer, EnvPod, EnvVar
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Notice, sentences
from vkprovider.platform.reasons import Reason

_NAME: Final = re.compile(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")
"""k8s.io/apimachinery/pkg/util/validation: IsEnvVarName."""
_MESSAGES_MAX: Final = 5
"""The most messages of one kind; a Pod may have thousands of variables, and an Event has room for 1024 characters."""


class _Reasons(NamedTuple):
    missing: Reason
    key_missing: Reason
    unread: Reason


_REASONS: Final = {
    ("configmap", False): _Reasons(
        EnvironmentReason.MANDATORY_CONFIG_MAP_NOT_FOUND,
        EnvironmentReason.MANDATORY_CONFIG_MAP_KEY_NOT_FOUND,
        EnvironmentReason.FAILED_TO_READ_MANDATORY_CONFIG_MAP,
    ),
    ("configmap", True): _Reasons(
        EnvironmentReason.OPTIONAL_CONFIG_MAP_NOT_FOUND,
        EnvironmentReason.OPTIONAL_CONFIG_MAP_KEY_NOT_FOUND,
        EnvironmentReason.FAILED_TO_READ_OPTIONAL_CONFIG_MAP,
    ),
    ("secret", False): _Reasons(
        EnvironmentReason.MANDATORY_SECRET_NOT_FOUND,
        EnvironmentReason.MANDATORY_SECRET_KEY_NOT_FOUND,
        EnvironmentReason.FAILED_TO_READ_MANDATORY_SECRET,
    ),
    ("secret", True): _Reasons(
        EnvironmentReason.OPTIONAL_SECRET_NOT_FOUND,
        EnvironmentReason.OPTIONAL_SECRET_KEY_NOT_FOUND,
        EnvironmentReason.FAILED_TO_READ_OPTIONAL_SECRET,
    ),
}
"""The reason by the kind of object and whether the reference is optional."""


class Environment(msgspec.Struct, frozen=True, gc=False):
    """The variables of a lablet.

    Attributes:
        containers: The variables by container; always of `lab`.
        notices: Events about what was left out.
        secret: Whether a Secret was read: then a value must not be quoted.
    """

    containers: Mapping[str, Mapping[str, str]]
    notices: tuple[Notice, ...] = ()
    secret: bool = False

    def __repr__(self) -> str:
        """Return the names alone."""
        return f"Environment({ ({container: sorted(values) for container, values in self.containers.items()}) })"


NO_ENVIRONMENT: Final = Environment({LAB_CONTAINER: {}})


class _Findings(NamedTuple):
    """What is missing: by reason of the Event, the texts, each of them once.

    Attributes:
        faults: That keep the lab from being imported.
        skipped: That leave variables out.
    """

    faults: dict[Reason, dict[str, None]]
    skipped: dict[Reason, dict[str, None]]

    def note(self, reason: Reason, text: str, *, optional: bool) -> None:
        (self.skipped if optional else self.faults).setdefault(reason, {})[text] = None


def resolve(pod: EnvPod, read: Mapping[VariableSource, Read], place: Placement) -> Environment:
    """Return the variables of a Pod's containers.

    Args:
        pod: The Pod.
        read: All objects that it refers to; see `sources_of`.
        place: Where it runs.

    Raises:
        InputError: `CreateContainerConfigError`: a mandatory reference is missing or cannot be used, a field is not one
            that a variable can have, or the values are too long. Its Event has virtual-kubelet's reason.
    """
    findings = _Findings({}, {})
    shared: dict[str, str] = {}
    containers: dict[str, Mapping[str, str]] = {LAB_CONTAINER: shared}
    room = CHARS_MAX
    for container in sorted(pod.spec.containers, key=lambda each: each.name != LAB_CONTAINER):
        own = shared if container.name == LAB_CONTAINER else dict[str, str]()
        known = ChainMap(own, shared)
        for name, value in _variables(pod, container, read, place, known, findings):
            room -= len(value)
            if room < 0:
                raise _too_long()
            own[name] = value
        containers[container.name] = known if own is not shared else own
    if findings.faults:
        texts = [text for found in findings.faults.values() for text in found]
        event = next(iter(findings.faults))
        raise InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, _some(texts), event=event)
    notices = tuple(Notice("Warning", reason, _some(list(texts))) for reason, texts in findings.skipped.items())
    return Environment(containers, notices, any(source.kind == "secret" for source in read))


def _variables(
    pod: EnvPod,
    container: EnvContainer,
    read: Mapping[VariableSource, Read],
    place: Placement,
    known: Mapping[str, str],
    findings: _Findings,
) -> Iterator[tuple[str, str]]:
    """Yield the variables of a container one by one; `known` has those that were yielded before."""
    for each in container.env_from:
        if (named := source_of(each)) is not None:
            source, ref = named
            yield from _all_of(source, each.prefix, read[source], findings, optional=ref.optional)
    for variable in container.env:
        value = _value(pod, container, variable, read, place, known, findings)
        if value is not None:
            yield variable.name, value


def _all_of(
    source: VariableSource, prefix: str, read: Read, findings: _Findings, *, optional: bool
) -> Iterator[tuple[str, str]]:
    """Yield the keys of an object as variables; leave out those that cannot be."""
    if isinstance(read, Unread):
        _note_unread(source, read, findings, "", optional=optional)
        return
    left_out = [f"{prefix}{key}" for key in read.not_text]
    for key, value in read.values.items():
        name = f"{prefix}{key}"
        if _NAME.fullmatch(name):
            yield name, value
        else:
            left_out.append(name)
    if left_out:
        which = f"keys [{', '.join(sorted(left_out)[:_MESSAGES_MAX])}{', …' if len(left_out) > _MESSAGES_MAX else ''}]"
        text = f"{which} from {source.kind} {source.name} were skipped since they are invalid as environment variables"
        findings.note(EnvironmentReason.INVALID_ENVIRONMENT_VARIABLE_NAMES, text, optional=True)


def _value(
    pod: EnvPod,
    container: EnvContainer,
    variable: EnvVar,
    read: Mapping[VariableSource, Read],
    place: Placement,
    known: Mapping[str, str],
    findings: _Findings,
) -> str | None:
    """Return the value of a variable; None if it has none."""
    given = variable.value_from
    if given is None:
        try:
            return expand(variable.value, known, chars_max=CHARS_MAX)
        except ValueError:
            raise _too_long() from None
    if (one := key_of(given)) is not None:
        source, ref = one
        return _key(source, ref.key, read[source], findings, variable.name, optional=ref.optional)
    try:
        if given.field_ref is not None:
            return sources.field(pod, given.field_ref.field_path, place)
        if given.resource_field_ref is not None:
            return sources.resource(pod, container, given.resource_field_ref, place)
    except ValueError as error:
        text = f"variable {variable.name!r}: {error}"
    else:
        text = f"variable {variable.name!r}: valueFrom names no source that a lablet has"
    findings.note(Trouble.CREATE_CONTAINER_CONFIG_ERROR, text, optional=False)
    return None


def _key(
    source: VariableSource, key: str, read: Read, findings: _Findings, variable: str, *, optional: bool
) -> str | None:
    skipping = f'skipping optional envvar "{variable}": ' if optional else ""
    if isinstance(read, Unread):
        _note_unread(source, read, findings, skipping, optional=optional)
        return None
    if key in read.values:
        return read.values[key]
    reasons = _REASONS[source.kind, optional]
    if key in read.not_text:
        text = f'{skipping}failed to read {source.kind} "{source.name}": key "{key}" is not text in UTF-8'
        findings.note(reasons.unread, text, optional=optional)
    else:
        text = f'{skipping}key "{key}" does not exist in {source.kind} "{source.name}"'
        findings.note(reasons.key_missing, text, optional=optional)
    return None


def _note_unread(source: VariableSource, unread: Unread, findings: _Findings, skipping: str, *, optional: bool) -> None:
    reasons = _REASONS[source.kind, optional]
    if unread.missing:
        findings.note(reasons.missing, f'{skipping}{source.kind} "{source.name}" not found', optional=optional)
    else:
        text = f'{skipping}failed to read {source.kind} "{source.name}": {unread.why}'
        findings.note(reasons.unread, text, optional=optional)


def _some(texts: Iterable[str]) -> str:
    return sentences(list(texts), _MESSAGES_MAX)


def _too_long() -> InputError:
    text = f"the values of the pod's variables have more than {CHARS_MAX} characters together; shorten them"
    return InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, text)
