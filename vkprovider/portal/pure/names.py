"""Names of a user lab's objects: valid for any user, and never those of another user.

A user whose name can stand in names of objects keeps it there. Any other gets a key that ends with a hash; no user has
the key of another, because a name that looks like such a key is hashed as well.
"""

import hashlib
import re
from typing import Final

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
    """Return the name of the Secret with the token and the values of the environment."""
    return f"nb-{key}"


def binding_name(key: str) -> str:
    """Return the name of the RoleBinding that gives the user the rights of a learner."""
    return f"nb-{key}"


def env_name(key: str) -> str:
    """Return the name of the ConfigMap with the options and the environment that is not secret."""
    return f"nb-{key}-env"


def lease_name(key: str) -> str:
    """Return the name of the Lease that locks a user, or a warm lab, while an operation writes."""
    return f"vkprovider-userlab-{key}"
