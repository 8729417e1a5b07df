"""What to do about a refusal of the API server: whom to ask, for which role, with which command."""

import re
from typing import Final

from vkprovider.doctor.rights import INSTRUCTOR, INSTRUCTOR_DEFINITIONS, CheckedRight, grant_command, roles_with
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden, OutsideError, TlsFailed, Unauthorized, Unavailable, VkproviderError
from vkprovider.platform.shipped import manifest

_ADVICE: Final[tuple[tuple[type[OutsideError], str], ...]] = (
    (Unauthorized, "log in to the cluster again; to see who you are: kubectl auth whoami"),
    (TlsFailed, "check the cluster's certificate-authority in the kubeconfig"),
    (Unavailable, "try again; to see whether the cluster answers: kubectl cluster-info"),
)
_ASK: Final = "ask an admin for that right; to see yours: kubectl auth can-i --list"
NO_CLASS: Final = (
    "default is the namespace of a context that names none, and no class: name yours with -n NAMESPACE, or once with "
    "`kubectl config set-context --current --namespace=NAMESPACE`"
)
"""Never that an admin should grant it there."""
_LACKS: Final = re.compile(
    r'(?:"(?P<name>[^"]*)" is forbidden: )?'
    r'User "(?P<user>(?:[^"\\]|\\.)*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group '
    r'"(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
)
"""The API server's words for a missing right; what a policy or a quota refuses has words of its own."""


def advised(error: OutsideError, namespace: str) -> str:
    """Return the message of a refusal, with what to do about it.

    Args:
        error: The refusal.
        namespace: That of the command.
    """
    if isinstance(error, Forbidden):
        advice = _about_right(error.message, namespace)
    else:
        advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
    return f"{error.message.rstrip('.')}; {advice}" if advice else error.message


def _about_right(message: str, namespace: str) -> str:
    found = _LACKS.search(message)
    if found is None:
        return ""
    try:
        roles = manifest("base/roles.yaml")
    except VkproviderError:
        return _ASK
    return lacking(
        roles,
        CheckedRight(found["verb"], found["group"], found["resource"], found["namespace"] or "", found["name"] or ""),
        user=found["user"],
        namespace=namespace,
    )


def lacking(roles: str, right: CheckedRight, *, user: str, namespace: str) -> str:
    """Return whom to ask for which role.

    Args:
        roles: The text of `manifests/base/roles.yaml`.
        right: The missing one.
        user: Whose it is to be.
        namespace: That of the command.
    """
    giving = roles_with(roles, right)
    granted = f"an admin grants it: {grant_command(user, namespace)}"
    if namespace == wellknown.DEFAULT_NAMESPACE:
        granted = NO_CLASS
    if right.namespace:
        if INSTRUCTOR in giving and right.namespace == namespace:
            return f"it takes the ClusterRole {INSTRUCTOR} in namespace {namespace}; {granted}"
        return _ASK
    if INSTRUCTOR_DEFINITIONS in giving:
        return f"it takes the ClusterRole {INSTRUCTOR_DEFINITIONS}; {granted}"
    if INSTRUCTOR in giving:
        return "that is a right in all namespaces; name one of yours with -n"
    return f"it takes the ClusterRole {giving[0]}, which an admin binds" if giving else _ASK
