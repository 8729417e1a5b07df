"""Users, groups, resource pools and sessions of a controller. Pure, but for the digests of passwords and tokens."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vkpsim.cml.errors import CmlError, E

SESSION_S: Final = 86400
"""Life of a token in seconds, CML's default."""
SHORTEST_PASSWORD: Final = 8
ISSUER: Final = "com.cisco.virl"


class User(msgspec.Struct, kw_only=True):
    """A user of the controller."""

    id: str
    username: str
    digest: str
    """SHA-256 of id and password: the simulator keeps no password."""
    created: float
    modified: float
    admin: bool = False
    fullname: str = ""
    description: str = ""
    email: str = ""
    resource_pool: str | None = None
    opt_in: bool | None = None
    tour_version: str = ""
    directory_dn: str = ""
    pubkey: str = ""


class Group(msgspec.Struct, kw_only=True):
    """A group of users."""

    id: str
    name: str
    created: float
    modified: float
    description: str = ""
    members: list[str] = []
    directory_dn: str = ""


class Pool(msgspec.Struct, kw_only=True):
    """A resource pool; None means no limit. A pool without a template is a template itself."""

    id: str
    label: str
    description: str = ""
    template: str | None = None
    licenses: int | None = None
    ram: int | None = None
    cpus: int | None = None
    disk_space: int | None = None
    external_connectors: list[str] | None = None
    users: list[str] = []


class Accounts(msgspec.Struct, kw_only=True):
    """The users and groups of a controller, and their tokens."""

    secret: str
    users: dict[str, User] = {}
    groups: dict[str, Group] = {}
    pools: dict[str, Pool] = {}
    session_s: int = SESSION_S
    revoked: set[str] = set()
    """Tokens that a logout ended."""
    valid_from: dict[str, int] = {}
    """User id: number of the first session that is still valid."""
    sessions: int = 0

    def by_name(self, username: str) -> User | None:
        """Find a user by name."""
        return next((user for user in self.users.values() if user.username == username), None)

    def user(self, user_id: str) -> User:
        """Find a user by id.

        Raises:
            CmlError: It does not exist.
        """
        user = self.users.get(user_id)
        if user is None:
            raise CmlError(E.USER_NOT_FOUND, id=user_id)
        return user

    def group(self, group_id: str) -> Group:
        """Find a group by id.

        Raises:
            CmlError: It does not exist.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise CmlError(E.GROUP_NOT_FOUND, id=group_id)
        return group

    def pool(self, pool_id: str) -> Pool:
        """Find a resource pool by id.

        Raises:
            CmlError: It does not exist.
        """
        pool = self.pools.get(pool_id)
        if pool is None:
            raise CmlError(E.POOL_NOT_FOUND, id=pool_id)
        return pool

    def add_user(self, now: float, new_id: Callable[[], str], username: str, password: str, **fields: Any) -> User:
        """Add a user.

        Raises:
            CmlError: The name is taken, or the password too short.
        """
        if self.by_name(username):
            raise CmlError(E.USER_EXISTS, id=username)
        self.check_strength(password)
        return self.put_user(now, new_id(), username, password, **fields)

    def check_strength(self, password: str) -> None:
        """Check that a password is long enough.

        Raises:
            CmlError: It is not.
        """
        if len(password) < SHORTEST_PASSWORD:
            raise CmlError(E.WEAK_PASSWORD)

    def put_user(self, now: float, user_id: str, username: str, password: str, **fields: Any) -> User:
        """Add a user without checking the password's strength."""
        digest = _digest(user_id, password)
        user = User(id=user_id, username=username, digest=digest, created=now, modified=now, **fields)
        self.users[user.id] = user
        return user

    def set_password(self, user: User, password: str) -> None:
        """Change a password; sessions of the user end, as they do in CML."""
        user.digest = _digest(user.id, password)
        self.end_sessions(user)

    def has_password(self, user: User, password: str) -> bool:
        """Check a password."""
        return hmac.compare_digest(user.digest, _digest(user.id, password))

    def login(self, now: float, username: str, password: str) -> tuple[User, str]:
        """Check name and password and issue a token.

        Raises:
            CmlError: They are wrong.
        """
        user = self.by_name(username)
        if user is None or not self.has_password(user, password):
            raise CmlError(E.BAD_PASSWORD)
        self.sessions += 1
        claims = {"iss": ISSUER, "iat": int(now), "exp": int(now) + self.session_s, "sub": user.id}
        return user, self._sign(claims | {"sid": self.sessions})

    def user_of(self, now: float, token: str) -> User:
        """Return the user of a token.

        Raises:
            CmlError: It is forged, expired or revoked, or its user gone.
        """
        head, _, _ = token.rpartition(".")
        if not head or token in self.revoked:
            raise CmlError(E.BAD_TOKEN)
        try:
            claims = msgspec.json.decode(_unpack(head.split(".")[1]))
        except (ValueError, IndexError) as error:
            raise CmlError(E.BAD_TOKEN) from error
        user = self.users.get(claims.get("sub"))
        if not hmac.compare_digest(self._sign(claims), token) or user is None or claims["exp"] <= now:
            raise CmlError(E.BAD_TOKEN)
        if claims["sid"] < self.valid_from.get(user.id, 0):
            raise CmlError(E.BAD_TOKEN)
        return user

    def end_sessions(self, user: User) -> None:
        """Invalidate all tokens issued to a user so far."""
        self.valid_from[user.id] = self.sessions + 1

    def _sign(self, claims: dict[str, Any]) -> str:
        head = f"{_HEADER}.{_pack(msgspec.json.encode(claims))}"
        signature = hmac.digest(self.secret.encode(), head.encode(), "sha256")
        return f"{head}.{_pack(signature)}"


def _digest(user_id: str, password: str) -> str:
    return hashlib.sha256(f"{user_id}/{password}".encode()).hexdigest()


def _pack(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_HEADER: Final = _pack(b'{"alg":"HS256","typ":"JWT"}')
