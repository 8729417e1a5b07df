"""The cookies of a session, encrypted and authenticated, and the keys for them.

A browser keeps 4096 bytes of a cookie, and a token may be longer, so that a session is split over several. The first
one says how many there are: `3.…`.
"""

import binascii
import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
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
        bench: The same of codes of workbenches, and encrypts their cookies.
    """

    session: bytes
    form: bytes
    code: bytes
    bench: bytes


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


SESSION_S_MAX: Final = 12 * 3600
"""The longest session."""
TOKEN_CHARS_MAX: Final = 11_000
"""The longest token that fits: all cookies go in one header, which may have 20 KiB."""
CHUNK_CHARS: Final = 3_900
CHUNKS_MAX: Final = 4
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 16
_JWT_PARTS: Final = 3
_TICKET: Final = "ticket"


class LoginSession(msgspec.Struct, frozen=True):
    """What a browser that has logged in sends with each request.

    Attributes:
        token: The visitor's, of the cluster.
        expires_at: Until when the session is valid, in Unix seconds.
        id: Tells this session from others; random.
        refresh_token: Of the organisation's issuer, gives the next token; "" if the session ends with its token.
        subject: Who it is, in the words of the issuer.
    """

    token: str
    expires_at: float
    id: str
    refresh_token: str = ""
    subject: str = ""


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


_decoder: Final = msgspec.json.Decoder(LoginSession)
_claims: Final = msgspec.json.Decoder(_Claims)


def session_of(token: str, now: float) -> LoginSession:
    """Return a new session of a token, which ends with the token if that says when."""
    return LoginSession(token, _end_of(token, now), os.urandom(_ID_BYTES).hex())


def renewed(session: LoginSession, token: str, refresh_token: str, now: float) -> LoginSession:
    """Return a session that goes on with another token."""
    return msgspec.structs.replace(session, token=token, expires_at=_end_of(token, now), refresh_token=refresh_token)


def _end_of(token: str, now: float) -> float:
    ends, latest = expiry(token), now + SESSION_S_MAX
    return min(ends, latest) if ends is not None else latest


def ticket(key: bytes, session: LoginSession) -> str:
    """Return a session that was renewed, for what is open of it at any replica; the page passes it on unread."""
    return seal(key, msgspec.json.encode(session), _TICKET)


def read_ticket(key: bytes, sealed: str, now: float) -> LoginSession | None:
    """Return the session of a ticket; None if it is none, or over."""
    return _read(unseal(key, sealed, _TICKET), now)


def expiry(token: str) -> float | None:
    """Return the time at which a JWT expires, in Unix seconds; None if it does not say, or is none.

    The API server judges tokens; this is only for a session that is to end with its token.
    """
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        return _claims.decode(_bytes(parts[1])).exp
    except (msgspec.MsgspecError, ValueError):
        return None


def seal(key: bytes, text: bytes, purpose: str) -> str:
    """Return a text encrypted and authenticated, in base64 for URLs; the purpose must be the same to open it."""
    nonce = os.urandom(_NONCE_BYTES)
    return urlsafe_b64encode(nonce + AESGCM(key).encrypt(nonce, text, purpose.encode())).decode().rstrip("=")


def unseal(key: bytes, sealed: str, purpose: str) -> bytes | None:
    """Return the text that was sealed; None if another key or purpose did, or anything was changed."""
    try:
        raw = _bytes(sealed)
        return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], purpose.encode())
    except (InvalidTag, ValueError):
        return None


def written(key: bytes, name: str, session: LoginSession, base: str = "") -> dict[str, str]:
    """Return the cookies of a session, by name; they hold it below `base` alone, the path of the site."""
    sealed = seal(key, msgspec.json.encode(session), _purpose(name, base))
    chunks = [sealed[at : at + CHUNK_CHARS] for at in range(0, len(sealed), CHUNK_CHARS)]
    chunks[0] = f"{len(chunks)}.{chunks[0]}"
    return {chunk_name(name, at): chunk for at, chunk in enumerate(chunks)}


def read(key: bytes, name: str, cookies: Mapping[str, str], now: float, base: str = "") -> LoginSession | None:
    """Return the session that cookies hold; None if there is none, it is over, or it is not as this portal wrote it.

    Args:
        key: Of the cookies.
        name: What their names begin with.
        cookies: Those of a request.
        now: In Unix seconds.
        base: The path of the site that was asked for; a session of another one is none here.
    """
    count, dot, first = cookies.get(chunk_name(name, 0), "").partition(".")
    if not dot or count not in {str(each) for each in range(1, CHUNKS_MAX + 1)}:
        return None
    rest = [cookies.get(chunk_name(name, at)) for at in range(1, int(count))]
    chunks = [first, *(chunk for chunk in rest if chunk is not None)]
    if len(chunks) != int(count):
        return None
    return _read(unseal(key, "".join(chunks), _purpose(name, base)), now)


def _read(text: bytes | None, now: float) -> LoginSession | None:
    try:
        session = _decoder.decode(text) if text is not None else None
    except msgspec.MsgspecError:
        return None
    return session if session is not None and now < session.expires_at else None


def chunk_name(name: str, at: int) -> str:
    """Return the name of one of the cookies of a session."""
    return f"{name}-{at}"


def _purpose(name: str, base: str) -> str:
    return f"{name} {base}"


def _bytes(text: str) -> bytes:
    """Decode base64 for URLs without its padding.

    Raises:
        ValueError: It is none.
    """
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None
