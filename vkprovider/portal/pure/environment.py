"""The environment of a user lab: which variables its Pod has, and which of them are secret.

Of several sources that name one variable, the later counts, as SQR-066 has it:

1. what the request brought: a hub's own variables,
2. what the definition asks for: a field of the form, else the request's variable of that name, else the default,
3. what the portal says of the lab: its amounts, its image, its options,
4. the configuration of the portal.

    MEM_LIMIT MEM_GUARANTEE          bytes          IMAGE_DESCRIPTION  netlab: Release 1.2.0
    CPU_LIMIT CPU_GUARANTEE          4, 0.5         IMAGE_DIGEST       of the content, where it is known
    LAB_SIZE                         small          DEBUG, RESET_USER_ENV   TRUE, where the option is
"""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from vkprovider.lablet.models.parameters import ParameterSpec, fault_of
from vkprovider.platform.messages import listed
from vkprovider.portal.pure.menu import LabChoice
from vkprovider.portal.pure.options import BODY, PARAMETER, Grounds, LabWish, Rejection

_NAMED_MAX: Final = 5
_NAME_CHARS: Final = 63


class LabEnvironment(NamedTuple):
    """The variables of a lab.

    Attributes:
        plain: Those of its ConfigMap.
        secret: Those of its Secret; none is in both.
    """

    plain: Mapping[str, str]
    secret: Mapping[str, str]


def merged(sources: Iterable[Mapping[str, str]], secret_env: Collection[str]) -> LabEnvironment:
    """Return the variables of some sources, of which a later one counts before an earlier one.

    Args:
        sources: Variables by name.
        secret_env: Names of secret ones, with `*` for any text; in upper or lower case.
    """
    found: dict[str, str] = {}
    for source in sources:
        found.update(source)
    secret = {name for name in found if is_secret(name, secret_env)}
    return LabEnvironment(
        {name: value for name, value in found.items() if name not in secret},
        {name: value for name, value in found.items() if name in secret},
    )


def is_secret(name: str, secret_env: Iterable[str]) -> bool:
    """Return whether a variable is secret.

    >>> is_secret("hub_api_token", ["*TOKEN*"]), is_secret("SEAT", ["*TOKEN*"])
    (True, False)
    """
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in secret_env)


def said_of(choice: LabChoice, wanted: LabWish | None) -> dict[str, str]:
    """Return what the portal says of a lab in variables of its own.

    Args:
        choice: What is made.
        wanted: What was asked for; None for a warm lab, which nobody has asked for.
    """
    lab = choice.lab
    cpus, memory = f"{lab.amounts.cpus:g}", str(lab.amounts.memory_bytes)  # all of it is reserved
    found = {
        "MEM_LIMIT": memory,
        "MEM_GUARANTEE": memory,
        "CPU_LIMIT": cpus,
        "CPU_GUARANTEE": cpus,
        "IMAGE_DESCRIPTION": choice.image.name,
        "LAB_SIZE": choice.size,
    }
    if lab.digest:
        found["IMAGE_DIGEST"] = lab.digest
    switches = {"DEBUG": wanted.enable_debug, "RESET_USER_ENV": wanted.reset_user_env} if wanted is not None else {}
    return found | {name: "TRUE" for name, is_on in switches.items() if is_on}


def asked_for(choice: LabChoice, configured: Mapping[str, str]) -> list[ParameterSpec]:
    """Return the variables that a lab's user is asked for: not those that the configuration says."""
    return [each for each in choice.lab.parameters if each.name not in configured]


def answered(choice: LabChoice, wanted: LabWish, configured: Mapping[str, str]) -> dict[str, str] | Rejection:
    """Return the values of the variables that a definition asks for, or what is wrong with the first that does not fit.

    Args:
        choice: What is to be made.
        wanted: What was asked for.
        configured: The variables of the configuration, which nobody is asked for.
    """
    found: dict[str, str] = {}
    asked = {each.name: each for each in asked_for(choice, configured)}
    for name, spec in asked.items():
        value = wanted.parameters.get(name, wanted.env.get(name, spec.default))
        fault = "a value is missing" if value is None else fault_of(spec, value)
        if fault:
            return _wrong(name, f"{name}: {fault}{f' ({spec.help})' if spec.help else ''}")
        found[name] = value or ""
    strange = wanted.parameters.keys() - {each.name for each in choice.lab.parameters}
    for name in sorted(strange):
        there = listed(list(asked), _NAMED_MAX) or "none"
        return _wrong(name, f"{choice.image.reference} asks for no {name[:_NAME_CHARS]!r}; it asks for {there}")
    return found


def _wrong(name: str, msg: str) -> Rejection:
    return Rejection(Grounds.INVALID_BODY, msg, (BODY, "options", f"{PARAMETER}{name[:_NAME_CHARS]}"))
