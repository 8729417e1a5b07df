"""Who comes in by ssh: connections before anybody is known, so many of one sender, and links as passwords.

A connection costs a key exchange before its sender is known. So it is refused before that, where too many wait for
their login or come too fast, of all senders and of one; a class may come from one address at once.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from vkprovider.classroom.links import read_code
from vkprovider.platform.http.open import Places
from vkprovider.platform.kube.flow import TokenBucket, TokenBuckets
from vkprovider.portal.ssh.logins import TOO_MANY, is_login_of
from vkprovider.portal.web.cookie import SESSION_S_MAX
from vkprovider.portal.web.links import OpenLink, linked_visitor
from vkprovider.portal.web.linksite import LinkSite
from vkprovider.portal.web.visitors import OnlyLablet, Visitor

STRANGERS_MAX: Final = 128
"""The most connections of a replica that wait for their login."""
OF_SOURCE_MAX: Final = 48
"""Of these, the most of one sender: a class behind one address, twice over."""
_EXCHANGES_PER_S: Final = 20.0
_EXCHANGES_BURST: Final = 120.0
"""The limits of key exchanges, of all senders: one takes a few milliseconds of the replica."""
_OF_SOURCE_PER_S: Final = 4.0
_OF_SOURCE_BURST: Final = 60.0


class TooManyStrangersError(Exception):
    """So many connections wait for their login, or come so fast, that this one is refused."""


class SshPerson(NamedTuple):
    """Somebody who came by ssh.

    Attributes:
        login: As they wrote it.
        visitor: Who it is; a link brought them.
        only: Where it leads.
    """

    login: str
    visitor: Visitor
    only: OnlyLablet


class Door:
    """Lets connections and people in.

    Attributes:
        refused_total: Connections that were refused before their key exchange.
    """

    def __init__(self, links: LinkSite, wall: Callable[[], float]) -> None:
        """Begin with nobody.

        Args:
            links: What links open.
            wall: Returns Unix seconds.
        """
        self.refused_total = 0
        self._links = links
        self._wall = wall
        self._waiting = Places(STRANGERS_MAX, OF_SOURCE_MAX, lambda _: self._refusal())
        self._pace = TokenBucket(_EXCHANGES_PER_S, _EXCHANGES_BURST)
        self._paces: TokenBuckets[str] = TokenBuckets(_OF_SOURCE_PER_S, _OF_SOURCE_BURST)

    @contextmanager
    def stranger(self, source: str) -> Iterator[None]:
        """Let a connection wait for its login while the block runs.

        Raises:
            TooManyStrangersError: It is one too many.
        """
        if not self._paces.take(source) or not self._pace.take():
            raise self._refusal()
        with self._waiting.taken(source):
            yield

    def _refusal(self) -> TooManyStrangersError:
        self.refused_total += 1
        return TooManyStrangersError(TOO_MANY)

    async def by_link(self, login: str, password: str, source: str) -> SshPerson | None:
        """Return who logs in with a link as password; None if it opens nothing, or leads to another learner's lab.

        Raises:
            Refused: 429: too many links are tried; 503: the API server cannot be asked.
        """
        code = read_code(password)
        found = await self._links.tries.open(source, code) if code is not None else None
        if code is None or found is None or not is_login_of(login, found.learner):
            return None
        only = OnlyLablet(code.namespace, found.pod, code.account, code.digest)
        session, ends_at = f"ssh-{secrets.token_hex(16)}", self._wall() + SESSION_S_MAX
        return SshPerson(login, self._visitor(only, found, session, ends_at), only)

    async def again(self, person: SshPerson) -> SshPerson | None:
        """Return somebody whose connection goes on, with a token of now; None if their link leads nowhere any more.

        Raises:
            Refused: 503: not all labs are known.
            OutsideError: The API server cannot be asked.
        """
        only, visitor = person.only, person.visitor
        found = await self._links.tries.tokens.of(only.namespace, only.account, only.digest)
        if found is None or visitor.ends_at is None or self._wall() >= visitor.ends_at:
            return None
        only = only._replace(pod=found.pod)
        return SshPerson(person.login, self._visitor(only, found, visitor.session, visitor.ends_at), only)

    def _visitor(self, only: OnlyLablet, found: OpenLink, session: str, ends_at: float) -> Visitor:
        known = linked_visitor(self._links.context.callers, only, found, session, ends_at)
        return Visitor(known.known, "", known.token, session=session, ends_at=ends_at, only=only)
