"""One-time codes: who has a token of the cluster gets a code, by which a browser logs in once, at any replica.

What a code stands for waits in a Lease, whose name is made of the code and tells nothing of it: the token, encrypted
with a key that is made of the code and of the key of the portal. To redeem a code is to delete the Lease, which only
one can. A code ends with a mark of the portal's key, so that one that somebody has made up costs no request.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import structlog

from vkprovider.lablet import names
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import Conflict, OutsideError
from vkprovider.platform.http.answers import TooManyReviews
from vkprovider.platform.kube.flow import TokenBucket
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import unix
from vkprovider.portal.pure import portalnames
from vkprovider.portal.web.cookie import is_marked, mark, seal, unseal

CODE_S: Final = 60
"""How long a code is valid."""
_CODE_BYTES: Final = 24
_TEXT_CHARS: Final = 32
"""Of a code before its mark: its bytes in base64."""
_REDEEMED_PER_S: Final = 20.0
_REDEEMED_BURST: Final = 200.0
"""The limits of what asks for a Lease: a class may log in at once."""
_OVER_MAX: Final = 10_000
"""Codes that are known to be over, at most: each was made here for a token that the cluster knows."""
_NAME_CHARS: Final = 40
_ALLOWANCE_S: Final = 30
"""What is left after a code has expired is removed no sooner: clocks differ."""
_log: Final = structlog.get_logger(__name__)


class _Waiting(msgspec.Struct, frozen=True):
    """What a code stands for."""

    token: str
    expires_at: float


_decoder: Final = msgspec.json.Decoder(_Waiting)


class Codes:
    """The codes of a portal."""

    def __init__(self, ctx: Context, key: bytes) -> None:
        """Create them.

        Args:
            ctx: The replica.
            key: Of the portal; all replicas have the same.
        """
        self._ctx = ctx
        self._key = key
        self._leases = ctx.api.member_leases
        self._pace = TokenBucket(_REDEEMED_PER_S, _REDEEMED_BURST)
        self._removals: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._over: OrderedDict[str, None] = OrderedDict()

    async def make(self, token: str) -> str:
        """Return a new code for a token."""
        if not self._removals:
            await self._sweep()
        text = secrets.token_urlsafe(_CODE_BYTES)
        code = text + mark(self._key, text)
        name = name_of(code)
        waiting = _Waiting(token, self._ctx.wall() + CODE_S)
        lease = await self._leases.create(
            {
                "metadata": {
                    "name": name,
                    "labels": {names.LABEL_COMPONENT: portalnames.COMPONENT_CODE},
                    "annotations": {
                        portalnames.ANNOTATION_SEALED: seal(self._key_of(code), msgspec.json.encode(waiting), name)
                    },
                },
                "spec": {"leaseDurationSeconds": CODE_S},
            }
        )
        removal = asyncio.create_task(self._remove(lease))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return code

    async def redeem(self, code: str) -> str | None:
        """Return the token that a code stands for, once; None if it is used, expired, or was never made.

        One that is over is not asked for again, however often and from wherever it is sent.

        Raises:
            Refused: 429: codes that this portal has made are sent again too often, whoever sends them.
            OutsideError: The API server refused or did not answer; the code may be used, or not.
        """
        if not is_marked(self._key, code[:_TEXT_CHARS], code[_TEXT_CHARS:]):
            return None
        name = name_of(code)
        async with self._turns.setdefault(name, asyncio.Lock()):
            if name in self._over:
                return None
            if not self._pace.take():
                raise TooManyReviews("too many people log in by a code at once; try again in a few seconds")
            token = await self._taken(code, name)
            self._over[name] = None
            if len(self._over) > _OVER_MAX:
                self._over.popitem(last=False)
            return token

    async def _taken(self, code: str, name: str) -> str | None:
        """Delete the Lease of a code, and return the token in it; None if it is used, or expired."""
        lease = await self._leases.get(name)
        if lease is None:
            return None
        sealed = lease.metadata.annotations.get(portalnames.ANNOTATION_SEALED, "")
        text = unseal(self._key_of(code), sealed, name)
        try:
            waiting = _decoder.decode(text) if text is not None else None
        except msgspec.MsgspecError:
            return None
        if waiting is None or self._ctx.wall() >= waiting.expires_at:
            return None
        try:
            return waiting.token if await self._leases.delete(name, uid=lease.metadata.uid) else None
        except Conflict:
            return None

    async def _sweep(self) -> None:
        """Remove what replicas have left that ended within a minute after they made a code."""
        for lease in await self._leases.list(labels=f"{names.LABEL_COMPONENT}={portalnames.COMPONENT_CODE}"):
            made_at = unix(lease.metadata.creation_timestamp)
            if made_at is not None and self._ctx.wall() > made_at + CODE_S + _ALLOWANCE_S:
                await self._leases.delete(lease.metadata.name, uid=lease.metadata.uid)

    async def finish(self) -> None:
        """Leave the codes to the other replicas."""
        await end_tasks(self._removals)

    async def _remove(self, lease: Lease) -> None:
        """Remove a code that nobody has used in time."""
        await asyncio.sleep(CODE_S)
        try:
            await self._leases.delete(lease.metadata.name, uid=lease.metadata.uid)
        except OutsideError as error:
            _log.info("an expired code is left for the next sweep", error=str(error))

    def _key_of(self, code: str) -> bytes:
        return hmac.digest(self._key, code.encode(), hashlib.sha256)


def name_of(code: str) -> str:
    """Return the name of the Lease of a code, which does not tell the code."""
    return f"{portalnames.PORTAL_PROGRAM}-code-{hashlib.sha256(code.encode()).hexdigest()[:_NAME_CHARS]}"
