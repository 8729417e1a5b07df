"""Words of user labs on the wire: labels and annotations, names of objects for any user, and reasons.

A user whose name can stand in names of objects keeps it there. Any other gets a key that ends with a hash; no user has
the key of another, because a name that looks like such a key is hashed as well.
"""

import hashlib
import re
from typing import Final

from vkprovider.lablet import names
from vkprovider.platform.reasons import Reasons
from vkprovider.platform.wellknown import GROUP

COMPONENT_CODE: Final = "portal-code"
COMPONENT_RENEWAL: Final = "portal-renewal"

# User labs: one lablet Pod for one user, made by the portal. The Namespace of a user lab is its record.
PORTAL_PROGRAM: Final = "vkprovider-portal"
"""The program and its ServiceAccount; the value of `app.kubernetes.io/managed-by` of what it makes."""
LABEL_PORTAL: Final = names.LABEL_PORTAL
"""The mark by which the portal knows its own Namespaces and what is in them: the namespace of its installation."""
LABEL_USER: Final = f"{GROUP}/user"
"""The key of the user, from which names are made."""
LABEL_REQUEST: Final = f"{GROUP}/request"
"""A label of the Pod of a user lab: the id of the request that it was made for, or taken for if it was warm."""
LABEL_WARM: Final = f"{GROUP}/warm"
"""A label of a lab that was made before a user asked for it, and of its Pod: its family."""
LABEL_CLASS: Final = f"{GROUP}/class"
"""A label of a user lab: the namespace of the class whose instructors may end it."""
LABEL_SIZE: Final = f"{GROUP}/size"
"""A label of a definition: its size, by which alone those of one family differ."""
LABEL_WORKBENCH: Final = f"{GROUP}/workbench"
"""A label of the Pod of a workbench, `true`; and of a definition: the workbench that its labs have."""
ANNOTATION_PROVISIONED: Final = f"{GROUP}/provisioned"
"""An annotation of a workbench's Pod: that its user is provisioned is noted. With a dash and the name of a kind, of the
Lease where that is noted."""
ANNOTATION_SEALED: Final = f"{GROUP}/sealed"
"""An annotation of the Lease of a one-time code: what it stands for, encrypted."""
ANNOTATION_USER: Final = f"{GROUP}/user"
"""The exact name of the user."""
ANNOTATION_REQUEST: Final = f"{GROUP}/request"
ANNOTATION_ENDING: Final = f"{GROUP}/ending"
ANNOTATION_OPERATION: Final = f"{GROUP}/operation"
"""Annotations of the Namespace of a user lab in JSON, see `portal.pure.record`: what was asked for, that the lab is
to be deleted, and how the last of these ended."""


class UserLabReason(Reasons):
    """Words in the record of a user lab."""

    DELETE_REQUESTED = ("DeleteRequested", "A user, an instructor or a hub asked for the deletion of the lab.")
    TIME_OVER = ("TimeOver", "The time of the user lab is over, and its work is collected.")
    NEVER_OPENED = (
        "NeverOpened",
        "The user lab was ready, and nobody opened it within VKPROVIDER_PORTAL_IDLE_SECONDS.",
        "Ask for a lab again.",
    )
    SECOND_LAB = (
        "SecondLab",
        "The user has another lab, so that this one is deleted: a replica of the portal wrote after it was overtaken.",
    )
    POD_ENDED = ("PodEnded", "The user's lab has ended, such as by the end of its session.")
    START_TIMED_OUT = (
        "StartTimedOut",
        "The lab was not ready within VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS after its Pod was created.",
        "See the last lines of the lab's story; ask for a lab again. Raise the setting if labs boot longer than that.",
    )
    POD_REFUSED = (
        "PodRefused",
        "The API server refuses an object of the lab, such as by a quota or a policy.",
        "Have an admin correct what the message names; ask for a lab again.",
    )
    LAB_FAILED = (
        "UserLabFailed",
        "The Pod of the lab has failed; the message has its reason.",
        "Look that reason up on this page; ask for a lab again.",
    )
    POD_GONE = (
        "PodGone",
        "Somebody else deleted the Pod of the lab.",
        "Ask for a lab again.",
    )
    DELETE_TIMED_OUT = (
        "DeleteTimedOut",
        "The lab was not gone within VKPROVIDER_PORTAL_DELETE_TIMEOUT_SECONDS; it still goes when it can.",
        "Look why the Pod stays, for instance because its worker is silent; a finalizer may keep the namespace.",
    )
    WORKBENCH_REFUSED = (
        "WorkbenchRefused",
        "The workbench of a lab cannot be made; the lab goes on without it.",
        (
            "Have an admin correct what the message names: the workbench in VKPROVIDER_PORTAL_CONFIG or its quota, the "
            "images of the policy vkprovider-confine-portal, or the rights of components/workbench."
        ),
    )
    HELD = (
        "UserLabHeld",
        "The lab of a user was gone for five minutes, and finalizers of others held its Pod; the portal removed them.",
        (
            "The message names them. A program that needs its finalizer for longer must leave user labs alone, whose "
            "namespaces have the label vkprovider.io/portal."
        ),
    )
    TAKEN_OVER = (
        "UserLabTakenOver",
        "A replica of the portal that had the lab of a user in hand is silent; another one goes on with it.",
        "If it happens again and again, look at the log of that replica.",
    )


KEY_CHARS_MAX: Final = 40
PREFIX: Final = r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?"
"""The pattern of the prefix of namespaces: with a key after it the name has 63 characters at most."""
USERNAME_CHARS_MAX: Final = 256
"""The most characters of a learner's name in a Pod."""
_PLAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_HASHED: Final = re.compile(r".*-[0-9a-f]{16}")
_WARM: Final = re.compile(r"warm-[0-9a-f]{10}")
_HASH_CHARS: Final = 16
_READABLE_CHARS_MAX: Final = KEY_CHARS_MAX - _HASH_CHARS - 1
_WARM_CHARS: Final = len("warm-0123456789")


def user_of(username: str, username_prefix: str) -> str | None:
    """Return the user of a Kubernetes username; None if it has not the prefix, or nothing after it.

    >>> user_of("oidc:alice", "oidc:"), user_of("system:admin", "oidc:")
    ('alice', None)
    """
    if not username.startswith(username_prefix):
        return None
    return username[len(username_prefix) :] or None


def username_of(user: str, username_prefix: str) -> str:
    """Return the Kubernetes username of a user."""
    return username_prefix + user


def learner_of(user: str) -> str:
    """Return the learner that the Pod of a user names: the user, or the key of one that a Pod cannot name."""
    fit = len(user) <= USERNAME_CHARS_MAX and user.isprintable() and user == user.strip()
    return user if fit else user_key(user)


def user_key(user: str) -> str:
    """Return the key of a user.

    >>> user_key("alice"), user_key("Alice@example.com")
    ('alice', 'alice-example-com-cdbc73c2371c82a2')
    """
    if _PLAIN.fullmatch(user) and not _HASHED.fullmatch(user) and not _WARM.fullmatch(user):
        return user
    readable = re.sub(r"[^a-z0-9]+", "-", user.lower()).strip("-")[:_READABLE_CHARS_MAX].strip("-") or "user"
    return f"{readable}-{hashlib.sha256(user.encode(errors='surrogatepass')).hexdigest()[:_HASH_CHARS]}"


def warm_key(dice: int) -> str:
    """Return the key of a warm lab; no user has one like it.

    >>> warm_key(255)
    'warm-00000000ff'

    Args:
        dice: 40 random bits.
    """
    return f"warm-{dice:010x}"


def warm_key_in(namespace: str) -> str | None:
    """Return the key of the warm lab that a namespace was made for; None if it was made for a user."""
    key = namespace[-_WARM_CHARS:]
    return key if _WARM.fullmatch(key) and namespace[:-_WARM_CHARS].endswith("-") else None


def namespace_of(prefix: str, user: str) -> str:
    """Return the namespace that is made for a user. One who got a warm lab has that lab's: look for the label."""
    return namespace_name(prefix, user_key(user))


def namespace_name(prefix: str, key: str) -> str:
    """Return the namespace that is made for a key, a user's or a warm lab's."""
    return f"{prefix}-{key}"


def pod_name(key: str) -> str:
    """Return the name of the Pod, the Secret and the RoleBinding."""
    return f"nb-{key}"


def secret_name(key: str) -> str:
    """Return the name of the Secret with the part of the environment that is secret."""
    return f"nb-{key}"


def binding_name(key: str) -> str:
    """Return the name of the RoleBinding that gives the user the rights of a learner."""
    return f"nb-{key}"


def env_name(key: str) -> str:
    """Return the name of the ConfigMap with the environment that is not secret."""
    return f"nb-{key}-env"


def parameters_name(key: str) -> str:
    """Return the name of the RoleBinding by which the provider reads the environment."""
    return f"nb-{key}-parameters"


def bench_name(key: str) -> str:
    """Return the name of the Pod of a workbench, of its ServiceAccount, RoleBinding, NetworkPolicy and Secret."""
    return f"nb-{key}-workbench"


def nss_name(key: str) -> str:
    """Return the name of the ConfigMap with the files passwd and group of a workbench."""
    return f"nb-{key}-nss"


def pull_name(key: str) -> str:
    """Return the name of the Secret by which the images of a workbench are pulled."""
    return f"nb-{key}-pull"


def provisioned_name(key: str) -> str:
    """Return the name of the Lease that says for which workbenches a user is provisioned; it outlives the lab."""
    return f"{PORTAL_PROGRAM}-provisioned-{key}"


def lease_name(key: str) -> str:
    """Return the name of the Lease that locks a user, or a warm lab, while an operation writes."""
    return f"vkprovider-userlab-{key}"
