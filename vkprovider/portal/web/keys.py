"""The keys of the site: one for each purpose, made of the one of the settings."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES: Final = 32
_MARK_BYTES: Final = 16


class Keys(NamedTuple):
    """The keys of a portal; all replicas have the same.

    Attributes:
        session: Encrypts cookies.
        form: Makes the tokens of forms.
        code: Marks one-time codes, and encrypts what waits for them.
    """

    session: bytes
    form: bytes
    code: bytes


def keys_of(secret: bytes) -> Keys:
    """Return the keys that a secret makes; it has 128 random bits at least."""
    return Keys(*(_derived(secret, purpose) for purpose in Keys._fields))


def mark(key: bytes, text: str) -> str:
    """Return the token that only the owner of a key can make of a text."""
    return urlsafe_b64encode(hmac.digest(key, text.encode(), hashlib.sha256)[:_MARK_BYTES]).decode().rstrip("=")


def is_marked(key: bytes, text: str, sent: str) -> bool:
    """Return whether what was sent is the token of a text."""
    return hmac.compare_digest(mark(key, text).encode(), sent.encode(errors="replace"))


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"vkprovider-portal-{purpose}".encode()).derive(secret)
