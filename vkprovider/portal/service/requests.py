"""The verbs of the page: make, delete, extend and reset the lab of a user.

`create` answers when the Namespace and the Secret of the lab are written, under the lock of the user: from then on any
replica can finish it, and until then nobody has been told that there is one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import structlog

from vkprovider.lablet import names
from vkprovider.platform.errors import Conflict, Fenced, InputError, NotFound, OutsideError
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.flow import TokenBuckets
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.times import iso
from vkprovider.portal.pure import facts, portalnames
from vkprovider.portal.pure.environment import LabEnvironment
from vkprovider.portal.pure.facts import UserLab, may_create, may_reset, unknown
from vkprovider.portal.pure.leading import takeable
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import USERNAME, Grounds, LabWish, Rejection
from vkprovider.portal.pure.portalnames import env_name, namespace_of, secret_name, user_key
from vkprovider.portal.pure.posix import NO_POSIX_USER, PosixUser
from vkprovider.portal.pure.record import (
    Ending,
    LabRecord,
    LabRequest,
    annotation,
    annotations_for,
    belongs_to,
    ending,
    labels_for,
    replaced,
)
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.making import LabObjects
from vkprovider.portal.service.records import new_id, secret_body
from vkprovider.portal.settings import PortalSettings

R = TypeVar("R")
_log: Final = structlog.get_logger(__name__)
_TRIES: Final = 5
"""Attempts: a record may be written between our read and write, and must then be read again."""
_LOCK_S: Final = 2.0
"""How long a request waits for the lock of an operation that has ended, and is about to be released."""
_AGAIN_S: Final = 0.05
_EXTEND_TRIES: Final = 40
"""How often a new end is written to a Pod that others write meanwhile; after each attempt, `_AGAIN_S` passes."""
_LOOKS_PER_S: Final = 0.5
_LOOKS_BURST: Final = 5.0
"""The limits of one user whose lab is missing here: each look takes a list of Namespaces."""


class Rejected(Exception):  # noqa: N818 (reads well where it is raised)
    """A request is refused.

    Attributes:
        rejection: Why.
    """

    def __init__(self, grounds: Grounds, msg: str, loc: tuple[str, ...] = ()) -> None:
        super().__init__(msg)
        self.rejection = Rejection(grounds, msg, loc)


class LabCaller(NamedTuple):
    """The user who asks for a lab.

    Attributes:
        user: The name in paths: the username without the prefix of the setting.
        username: The name that the cluster knows.
        groups: The groups of the user.
        token: The token with which the user came; it is stored nowhere.
        posix: Who the user is on a file system, as far as the token says it.
    """

    user: str
    username: str
    groups: tuple[str, ...] = ()
    token: str = ""
    posix: PosixUser = NO_POSIX_USER


class Accepted(NamedTuple):
    """A request for a lab was accepted.

    Attributes:
        user: Whose lab it is.
        request: What is made.
    """

    user: str
    request: LabRequest


class Requests:
    """Carries out the requests of users, hubs and instructors."""

    def __init__(
        self,
        ctx: Context,
        effects: LabObjects,
        settings: PortalSettings,
        index: UserLabIndex,
        locks: Locks,
        membership: Membership,
        choices: Choices,
        wake: Callable[[str], None],
    ) -> None:
        """Serve no request yet.

        Args:
            ctx: The replica.
            effects: Writes Namespaces and Pods.
            settings: The portal's.
            index: What is known of labs.
            locks: Which replica writes for which user.
            membership: Tells whether this replica may act.
            choices: The menu and the quotas.
            wake: Called with the namespace of a lab that is to be looked at.
        """
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._locks = locks
        self._membership = membership
        self._choices = choices
        self._wake = wake
        self._records = effects.records
        self._contents = effects.contents
        self._pods = effects.pods
        self._tasks: set[asyncio.Task[Any]] = set()
        self._looks: TokenBuckets[str] = TokenBuckets(_LOOKS_PER_S, _LOOKS_BURST)

    async def find(self, caller: LabCaller) -> None:
        """Look for the own lab of a caller where it is made, if it is missing here: the watches may be late.

        Who asks too often for a lab that is not there is answered by what is known here.

        Raises:
            Rejected: The API server cannot be asked.
        """
        if self._index.lab(caller.user) is not None or not self._looks.take(caller.user):
            return
        with _told(f"look for the lab of user {caller.user!r}"):
            if (record := await self._records.of_user(caller.user)) is not None:
                await self._pods.of_lab(record.namespace)

    async def create(self, caller: LabCaller, wanted: LabWish, menu: Menu) -> Accepted:
        """Begin to make the lab of a user.

        Args:
            caller: Whose lab.
            wanted: What is asked for.
            menu: What the caller may choose from.

        Raises:
            Rejected: With the grounds: there is a lab, an operation of it runs, the menu or the quota does not have
                what is wanted, the namespace is somebody else's, or the API server cannot be asked.
        """
        choice = self._choices.choose(caller, wanted, menu)
        if isinstance(choice, Rejection):
            raise Rejected(*choice)
        wanted = wanted._replace(class_=wanted.class_ or choice.lab.class_)  # whose learner the caller is, by the menu
        duration_s = facts.duration_of(wanted.duration_s, self._settings)
        if isinstance(duration_s, Rejection):
            raise Rejected(*duration_s)
        environment = self._choices.environment(wanted, choice)
        if isinstance(environment, Rejection):
            raise Rejected(*environment)
        request = LabRequest(
            id=new_id(),
            at=self._ctx.now_unix,
            definition=choice.lab.pod_image,
            options=wanted.options,
            env=tuple(sorted(wanted.env.keys() | wanted.parameters.keys())),
            secrets=tuple(sorted(environment.secret)),
            by=caller.username,
            duration_s=duration_s,
            posix=caller.posix,
            bench=self._choices.bench(wanted, choice),
        )
        warm = not choice.lab.parameters and not wanted.begin_from
        return await self._to_the_end(self._create(caller, wanted.class_, request, environment, warm=warm))

    async def delete(self, user: str, by: str, of_class: str | None = None) -> None:
        """Ask for the end of a user's lab; one that is ending already is asked for no second time.

        Args:
            user: Whose lab it is.
            by: Who asks.
            of_class: The class that gives the right to; None if the right is to any lab of the user.

        Raises:
            Rejected: There is no lab, or it is of another class now, or the API server cannot be asked.
        """
        await self._to_the_end(self._delete(user, ending(new_id(), self._ctx.wall(), by=by), of_class))

    async def extend(self, user: str, by: str, asked_s: int, of_class: str | None = None) -> int:
        """Extend the time of a user's lab; return its new end in Unix seconds.

        Args:
            user: Whose lab it is.
            by: Who asks.
            asked_s: By how much.
            of_class: As for `delete`.

        Raises:
            Rejected: There is no lab that runs, it is of another class now, the bounds do not allow it, or the API
                server cannot be asked.
        """
        for _ in range(_EXTEND_TRIES):  # two may ask at the same moment, and both count
            lab = self._lab_of(user, of_class)
            if lab is None or lab.own_pod is None:
                raise Rejected(Grounds.UNKNOWN_USER, f"user {user!r} has no lab that could be extended", USERNAME)
            end = facts.extended(lab, asked_s, self._ctx.wall(), self._settings)
            if isinstance(end, Rejection):
                raise Rejected(*end)
            note = {names.ANNOTATION_TIMESLOT_END: iso(int(end))}
            with _told(f"extend the lab of {user!r}"):
                try:
                    await self._pods.change(lab.own_pod, note, self._may_act, unchanged=True)
                except NotFound:
                    raise Rejected(Grounds.UNKNOWN_USER, f"the lab of user {user!r} has just ended", USERNAME) from None
                except Conflict:
                    await asyncio.sleep(_AGAIN_S)
                    continue
            _log.info("lab extended", user=user, by=by, end=iso(int(end)))
            return int(end)
        raise Rejected(Grounds.UNAVAILABLE, f"the lab of user {user!r} changes all the time; try again in a moment")

    async def reset(self, user: str, by: str, of_class: str | None = None) -> None:
        """Have a user's lab wiped and started again: all work in it is lost. One that was stopped starts as well.

        Args:
            user: Whose lab it is.
            by: Who asks.
            of_class: As for `delete`.

        Raises:
            Rejected: There is no lab that could be reset, it is of another class now, or the API server cannot be
                asked.
        """
        lab = self._lab_of(user, of_class)
        if lab is None:
            raise Rejected(*unknown(user))
        if (rejection := may_reset(lab)) is not None or lab.own_pod is None:
            raise Rejected(*(rejection or unknown(user)))
        notes = {names.ANNOTATION_RESET: f"{iso(self._ctx.now_unix)} {new_id()}", names.ANNOTATION_DESIRED_STATE: None}
        with _told(f"reset the lab of {user!r}"):
            try:
                await self._pods.change(lab.own_pod, notes, self._may_act)
            except (Conflict, NotFound):
                raise Rejected(Grounds.UNKNOWN_USER, f"the lab of user {user!r} has just ended", USERNAME) from None
        _log.info("lab reset", user=user, by=by)

    async def finish(self) -> None:
        """Wait for the requests in hand."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------ create

    async def _create(
        self, caller: LabCaller, class_: str, request: LabRequest, environment: LabEnvironment, *, warm: bool
    ) -> Accepted:
        key = user_key(caller.user)
        with _told(f"make a lab for user {caller.user!r}"):
            await self._refuse_if_present(caller.user)
            await self._lock(caller.user, key)
            namespace = ""
            try:
                labels = labels_for(self._ctx.namespace, caller.user, class_=class_)
                namespace = await self._record(caller.user, request, labels, warm=warm)
                guard = self._locks.guard(key)
                await self._contents.config_map(namespace, env_name(key), labels, environment.plain, guard)
                body = secret_body(secret_name(key), labels, environment.secret)
                await self._contents.secret(namespace, body, request.id, guard)
            except Rejected:
                await self._locks.release(key)
                raise
            finally:
                self._locks.end_request(key)
                self._wake(namespace or namespace_of(self._settings.namespace_prefix, caller.user))
        _log.info("lab requested", user=caller.user, namespace=namespace, definition=request.definition, id=request.id)
        return Accepted(caller.user, request)

    async def _lock(self, user: str, key: str) -> None:
        """Take the lock of a user, so that the reconciler leaves the lab alone until `Locks.end_request`.

        Raises:
            Rejected: There is a lab, or another replica has it in hand.
        """
        until = self._ctx.now() + _LOCK_S
        while True:
            if await self._locks.take_for_request(key):
                return
            if self._ctx.now() > until:
                raise Rejected(Grounds.OPERATION_IN_PROGRESS, _busy(user), USERNAME)
            await asyncio.sleep(_AGAIN_S)
            await self._refuse_if_present(user)

    async def _record(self, user: str, request: LabRequest, labels: Mapping[str, str], *, warm: bool) -> str:
        """Write a request into the Namespace of a lab: that of a failed one, a warm one, or a new one.

        Args:
            user: The exact name.
            request: What was asked for.
            labels: Those of the lab.
            warm: Whether a warm lab will do, which has no variables of the user's.

        Returns:
            The Namespace.

        Raises:
            Rejected: The user has a lab, or the namespace is somebody else's.
        """
        guard = self._locks.guard(user_key(user))
        if (record := await self._records.of_user(user)) is not None:
            if (rejection := may_create(UserLab(record))) is not None:
                raise Rejected(*rejection)
            return await self._replace(record, request, labels, guard)
        for lab in takeable(self._index.warm(), request.definition) if warm else ():
            try:
                await self._records.patch(lab.record, annotations_for(user, request), guard, labels)
            except (Conflict, NotFound):  # another user was quicker, or it is being deleted
                continue
            return lab.record.namespace
        name = namespace_of(self._settings.namespace_prefix, user)
        try:
            await self._records.create(name, labels, annotations_for(user, request), guard)
        except Conflict:
            raise await self._taken(name, user) from None
        return name

    async def _replace(self, record: LabRecord, request: LabRequest, labels: Mapping[str, str], guard: Guard) -> str:
        """Have a failed lab made again: what the earlier request left goes first."""
        key = record.key
        await self._contents.clear(record.namespace, secret_name(key), env_name(key), guard)
        try:
            labels_now = {portalnames.LABEL_CLASS: None, **labels}  # another class's instructors have no right any more
            await self._records.patch(record, replaced(record.user, request), guard, labels_now)
        except (Conflict, NotFound):
            raise Rejected(Grounds.OPERATION_IN_PROGRESS, _busy(record.user), USERNAME) from None
        if record.class_ and record.class_ != labels.get(portalnames.LABEL_CLASS):
            # After the label, by which the replica that leads would bind the same people once more.
            await self._contents.release(record.namespace, guard)
        return record.namespace

    async def _taken(self, name: str, user: str) -> Rejected:
        """Return why the name of a user's Namespace is taken."""
        meta = await self._records.read(name)
        if meta is None or belongs_to(meta, self._ctx.namespace, user):
            return Rejected(Grounds.OPERATION_IN_PROGRESS, _busy(user), USERNAME)
        return Rejected(Grounds.NAMESPACE_CONFLICT, _foreign(name, user), USERNAME)

    async def _refuse_if_present(self, user: str) -> None:
        """Refuse a request while there is a lab that has not failed, as the API server says: the watch may be late.

        Raises:
            Rejected: There is one.
        """
        if may_create(self._index.lab(user)) is None:
            return
        record = await self._records.of_user(user)
        if record is not None and (rejection := may_create(UserLab(record))) is not None:
            raise Rejected(*rejection)

    # ------------------------------------------------------------------------------------------ delete

    async def _delete(self, user: str, asked: Ending, of_class: str | None) -> None:
        with _told(f"delete the lab of user {user!r}"):
            for _ in range(_TRIES):
                record = await self._records.of_user(user)
                if record is None or of_class not in {None, record.class_}:
                    raise Rejected(*unknown(user))
                if record.deleted or (record.ending is not None and record.outcome is None):
                    return
                try:
                    await self._records.patch(record, annotation(asked), self._may_act)
                except (Conflict, NotFound):
                    continue
                _log.info("lab is to be deleted", user=user, by=asked.by, namespace=record.namespace)
                key = record.key
                if not self._locks.is_in_request(key):
                    await self._locks.take(key)  # if another replica has it, that one goes on
                self._wake(record.namespace)
                return
        raise Rejected(Grounds.UNAVAILABLE, f"the lab of user {user!r} is written to all the time; try again")

    # ------------------------------------------------------------------------------------------ how

    def _lab_of(self, user: str, of_class: str | None) -> UserLab | None:
        """Return the lab of a user; None if there is none, or none of a class that was named."""
        lab = self._index.lab(user)
        return lab if lab is not None and of_class in {None, lab.record.class_} else None

    def _may_act(self) -> None:
        if self._membership.is_fenced:
            raise Fenced("this replica could not renew its membership")

    async def _to_the_end(self, work: Coroutine[Any, Any, R]) -> R:
        """Carry out a request even if the client goes away in the middle of it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Refuse a request that the API server did not carry out.

    Raises:
        Rejected: With the API server's words.
    """
    try:
        yield
    except (OutsideError, Fenced, InputError) as error:
        _log.warning("a request was not carried out", what=what, error=str(error))
        raise Rejected(Grounds.UNAVAILABLE, f"cannot {what} now: {error}; try again in a moment") from error


def _busy(user: str) -> str:
    return f"an operation of the lab of user {user!r} is under way; wait for its end"


def _foreign(namespace: str, user: str) -> str:
    return (
        f"the namespace {namespace} exists and is not that of user {user!r}, so that nothing is written there; an "
        "admin may delete it, or give the portal another VKPROVIDER_PORTAL_NAMESPACE_PREFIX"
    )
