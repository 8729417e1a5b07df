"""Who asks, and whether they may: a user of the cluster, by a token or by the headers of an ingress that proves itself.

What a user may is asked of the API server in both cases, as rights on `userlabs.vkprovider.io`:

* `manage`, in the portal's namespace: list, see and delete all labs, as a hub does. It creates none.
* `use`, in the portal's namespace: create, follow and extend the lab that has one's own name.
* `teach`, in the namespace of a class: see, follow, extend and delete the labs of that class.
* `attend`, there: have the own lab be one of that class.

By a setting a user also needs `use` on a definition, in the portal's namespace, to have a lab of it.

A caller who lacks the right gets the same answer, whether the lab exists or not.
"""

import hmac
from collections.abc import Callable, Collection
from typing import Final, Literal, NamedTuple, Protocol

from aiohttp import web

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import NotAllowed, Starting, TokenInvalid, TokenMissing, TooManyReviews, bearer
from vkprovider.platform.http.origin import may_change
from vkprovider.platform.kube.flow import TokenBuckets
from vkprovider.platform.rights import Right, User
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import BODY, Grounds
from vkprovider.portal.pure.portalnames import user_of, username_of
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.requests import LabCaller, Rejected

PROOF: Final = "X-Portal-Ingress-Secret"
USER: Final = "X-Auth-Request-User"
GROUPS: Final = "X-Auth-Request-Groups"
TOKEN: Final = "X-Auth-Request-Token"  # noqa: S105 (the name of a header)
_NAMES_PER_S: Final = 20.0
_NAMES_BURST: Final = 100.0
"""The limits of one caller who asks for many users or classes: each takes a review, and all callers share those."""
_READS: Final = frozenset({"GET", "HEAD"})
ATTEND_ROLE: Final = "vkprovider-class-learner"
"""The ClusterRole of the learners of a class, in its namespace."""
_SYSTEM: Final = "system:"
_DEFINITIONS: Final = "labletdefinitions"
_AUTHENTICATED: Final = "system:authenticated"


def lab_right(verb: str, namespace: str, name: str = "", resource: str = "userlabs") -> Right:
    """Return a right on user labs, or on definitions; without a name, on all of them.

    Refusals name no ClusterRole: the caller need not learn which right it was.
    """
    return Right(verb, resource, namespace, name, wellknown.GROUP, wellknown.VERSION)


class KnownCaller(NamedTuple):
    """Somebody who is known.

    Attributes:
        of_cluster: The user of the cluster.
        caller: The same for the verbs of the portal; without a user if the name has not the prefix of learners.
    """

    of_cluster: User
    caller: LabCaller


class CallerSource(Protocol):
    """Finds out who asks."""

    async def known(self, request: web.Request) -> tuple[User, str]:
        """Return the user of the cluster and their token.

        Raises:
            Refused: 401: nobody that is known; 503: the API server cannot be asked.
        """


class ByToken:
    """Knows callers by their token of the cluster."""

    def __init__(self, access: AccessControl) -> None:
        """Create it; `access` reviews tokens."""
        self._access = access

    async def known(self, request: web.Request) -> tuple[User, str]:
        """Review the token of a request."""
        return await self._access.user(request), bearer(request)


class ByHeaders:
    """Knows callers by headers, if the ingress that sets them sends its secret along."""

    def __init__(self, secret: str, username_prefix: str) -> None:
        """Create it.

        Args:
            secret: What only the ingress knows.
            username_prefix: What the usernames of the cluster begin with, before the name that the ingress sends.
        """
        self._secret = secret.encode()
        self._prefix = username_prefix

    async def known(self, request: web.Request) -> tuple[User, str]:
        """Read the headers of a request."""
        kind = request.content_type if "Content-Type" in request.headers else ""
        if request.method not in _READS and not may_change(request.headers, request.host, kind):
            raise NotAllowed(
                "a page of another site asks, and the ingress would let it pass with your cookie; a program names "
                "application/json as the type of its body"
            )
        sent = request.headers.getall(PROOF, [])
        if len(sent) != 1 or not hmac.compare_digest(sent[0].encode(errors="surrogateescape"), self._secret):
            raise TokenMissing("this portal knows callers by its ingress alone, and this request did not come through")
        users = request.headers.getall(USER, [])
        user = users[0] if len(users) == 1 else ""
        if not user or user.startswith(_SYSTEM) or not user.isprintable():
            raise TokenInvalid(f"the ingress must send one header {USER} with the name of a user")
        asked = ",".join(request.headers.getall(GROUPS, []))
        groups = [group for each in asked.split(",") if (group := each.strip()) and not group.startswith(_SYSTEM)]
        return User(username_of(user, self._prefix), groups=[*groups, _AUTHENTICATED]), request.headers.get(TOKEN, "")


class PortalCallers:
    """Finds out who asks, and refuses those who may not."""

    def __init__(
        self,
        access: AccessControl,
        source: CallerSource,
        namespace: str,
        username_prefix: str,
        is_complete: Callable[[], bool],
    ) -> None:
        """Create it.

        Args:
            access: Asks for rights.
            source: Finds out who asks.
            namespace: The portal's own.
            username_prefix: See `ByHeaders`.
            is_complete: Whether all labs are known. Until then every request is refused: a lab that is not known yet
                would look as if it did not exist.
        """
        self._access = access
        self._is_complete = is_complete
        self._source = source
        self._namespace = namespace
        self._prefix = username_prefix
        self._names: TokenBuckets[tuple[str, str]] = TokenBuckets(_NAMES_PER_S, _NAMES_BURST)

    async def known(self, request: web.Request) -> KnownCaller:
        """Return the sender of a request.

        Raises:
            Refused: 401: nobody that is known; 403: the account of a link; 503: the API server cannot be asked, or not
                all labs are known.
        """
        return self._taken_as(*await self._source.known(request))

    async def of_token(self, token: str) -> KnownCaller:
        """Return the user of a token.

        Raises:
            Refused: 401: nobody that is known; 503: the API server cannot be asked, or not all labs are known.
        """
        return self._taken_as(await self._access.user_of(token), token)

    async def of_session(self, token: str) -> KnownCaller:
        """Return the user of a token out of a session that this portal has sealed.

        Raises:
            Refused: 401: nobody that is known any more; 503: the API server cannot be asked, or not all labs are known.
        """
        return self._taken_as(await self._access.user_of(token, of_session=True), token)

    def by_link(self, user: User, learner: str, token: str) -> KnownCaller:
        """Return who came by the link of a learner, with the name that stands on the lablet of the link.

        Args:
            user: The account of the link.
            learner: Whose lablet it is; outside of it nobody has this name by a link.
            token: Of the account.

        Raises:
            Refused: 503: not all labs are known.
        """
        self._check_complete()
        return KnownCaller(user, LabCaller(learner, user.username, tuple(user.groups), token))

    async def check_manager(self, known: KnownCaller) -> None:
        """Check that somebody may manage all labs.

        Raises:
            Refused: 403, 429, or 503.
        """
        if not await self.manages(known, ""):
            raise _refusal(known)

    async def check_owner(self, known: KnownCaller, user: str) -> None:
        """Check that somebody has the name of a lab, and may use the portal.

        Raises:
            Refused: 403, 429, or 503.
        """
        if not await self.owns(known, user):
            raise _refusal(known)

    async def as_manager(self, known: KnownCaller, user: str, class_: str) -> str | None:
        """Check that somebody may manage the lab of a user, or teach its class; return the class that gives the right.

        Args:
            known: Who asks.
            user: Whose lab.
            class_: The namespace of the lab's class; "" if it has none, or there is no lab.

        Returns:
            None if the right is to any lab of the user, whose next one may be of another class.

        Raises:
            Refused: 403, 429, or 503.
        """
        return None if await self.manages(known, user) else await self._as_teacher(known, user, class_)

    async def as_owner(self, known: KnownCaller, user: str, class_: str) -> str | None:
        """As `as_manager`, for somebody whose name the lab has, or who may teach its class."""
        return None if await self.owns(known, user) else await self._as_teacher(known, user, class_)

    async def _as_teacher(self, known: KnownCaller, user: str, class_: str) -> str:
        if not await self.teaches(known, user, class_):
            raise _refusal(known)
        return class_

    async def usable(self, known: KnownCaller, definitions: Collection[str]) -> frozenset[str]:
        """Return those of some definitions that somebody may use.

        Raises:
            Refused: 429, or 503.
        """
        user, namespace = known.of_cluster, self._namespace
        if await self._access.may(user, lab_right("use", namespace, resource=_DEFINITIONS)):
            return frozenset(definitions)
        asked = sorted(definitions)
        allowed = [await self._access.may(user, lab_right("use", namespace, name, _DEFINITIONS)) for name in asked]
        return frozenset(name for name, may in zip(asked, allowed, strict=True) if may)

    async def menu(self, known: KnownCaller, choices: Choices, *, require_use: bool) -> Menu:
        """Return what somebody may choose from: with what the classes share that they attend.

        Args:
            known: Who asks.
            choices: The menu.
            require_use: Whether each definition of the admins takes a right.

        Raises:
            Refused: 429, or 503.
        """
        classes = [each for each in choices.classes_of(known.of_cluster) if await self.attends(known, each)]
        menu = choices.menu(classes)
        return menu.only(await self.usable(known, menu.definitions)) if require_use else menu

    async def check_class(self, known: KnownCaller, class_: str) -> None:
        """Check that somebody may have a lab of a class; a lab of no class takes no right.

        The answer is the same whether there is such a class or not.

        Args:
            known: Who asks for the lab.
            class_: The namespace of the class; "" for none.

        Raises:
            Rejected: The caller does not attend the class.
            Refused: 429, or 503.
        """
        if class_ and not await self.attends(known, class_):
            raise Rejected(
                Grounds.PERMISSION_DENIED,
                f"you are {known.of_cluster.username!r}, and attend no class {class_!r}: ask its instructor, or leave "
                f"out the option class. An administrator admits learners by the ClusterRole {ATTEND_ROLE}, bound in "
                "the namespace of the class",
                (BODY, "options", "class"),
            )

    async def attends(self, known: KnownCaller, class_: str) -> bool:
        """Return whether somebody is a learner of a class.

        Raises:
            Refused: 429, or 503.
        """
        self._count(known.caller, "classes")
        return await self._access.may(known.of_cluster, lab_right("attend", class_))

    async def manages(self, known: KnownCaller, user: str) -> bool:
        """Return whether somebody may manage all labs, which is one question for all polls of a hub, or a user's.

        Raises:
            Refused: 429, or 503.
        """
        if await self._may(known, "manage", ""):
            return True
        if not user:
            return False
        self._count(known.caller, "users")
        return await self._may(known, "manage", user)

    async def owns(self, known: KnownCaller, user: str) -> bool:
        """Return whether a lab has somebody's name, who may use the portal.

        Raises:
            Refused: 429, or 503.
        """
        return bool(user) and known.caller.user == user and await self._may(known, "use", user)

    async def teaches(self, known: KnownCaller, user: str, class_: str) -> bool:
        """Return whether somebody may teach the class of a user's lab; "" is no class, or one that is not known.

        Who asks too often learns that before anything else, so that it does not tell whether there is such a lab.

        Raises:
            Refused: 429, or 503.
        """
        self._count(known.caller, "classes")
        if not class_:
            return False
        return await self._access.may(known.of_cluster, lab_right("teach", class_, user))

    async def teaches_everywhere(self, known: KnownCaller) -> bool:
        """Return whether somebody may teach every class, as some admins may.

        Raises:
            Refused: 429, or 503.
        """
        return await self._access.may(known.of_cluster, lab_right("teach", ""))

    async def may(self, known: KnownCaller, right: Right) -> bool:
        """Return whether somebody has a right.

        Raises:
            Refused: 429, or 503.
        """
        return await self._access.may(known.of_cluster, right)

    def _taken_as(self, user: User, token: str) -> KnownCaller:
        self._check_complete()
        if names.acts_by_link(user.username):
            raise NotAllowed("this token is that of a link, which opens one lablet by its address, and logs nobody in")
        name = user_of(user.username, self._prefix) or ""
        return KnownCaller(user, LabCaller(name, user.username, tuple(user.groups), token, user.extra))

    def _check_complete(self) -> None:
        if not self._is_complete():
            raise Starting("the portal has just started, and does not know all labs yet")

    def _count(self, caller: LabCaller, of: Literal["users", "classes"]) -> None:
        """Count a name that somebody asks for.

        Args:
            caller: Who asks.
            of: What it is the name of: a teacher who asks for the lab of a user asks for two, and each has its limit.

        Raises:
            Refused: 429: one caller asks for too many.
        """
        if not self._names.take((caller.username, of)):
            raise TooManyReviews(f"you ask for the labs of too many {of} at once; try again")

    async def _may(self, known: KnownCaller, verb: str, user: str) -> bool:
        return await self._access.may(known.of_cluster, lab_right(verb, self._namespace, user))


def _refusal(known: KnownCaller) -> NotAllowed:
    """Return the answer to a caller who lacks a right: it depends on the caller, and must not depend on the lab."""
    user = f"user {known.caller.user!r}" if known.caller.user else "no user"
    taken = f"you are {known.of_cluster.username!r}, here {user}"
    return NotAllowed(f"{taken}, and may not do this for this user's lab, whether there is one or not")
