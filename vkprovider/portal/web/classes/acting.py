"""The forms by which an instructor asks many lablets, the requests, and the page that tells how each went."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from vkprovider.classroom.pods import NotChangedError, change_for
from vkprovider.lablet import names
from vkprovider.lablet.inputs import CHARS_MAX
from vkprovider.lablet.standing import learner_in, passed_to
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Forbidden, InputError, NotFound, OutsideError
from vkprovider.platform.kube.api import PODS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import clock, unix
from vkprovider.portal.pure.classes import ACTS, CannotBeDoneError, Row, everybody, notes_for
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.classrooms import Classrooms
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import Visitor

_AT_ONCE: Final = 8
_DONE: Final = {
    "stop": "is being stopped",
    "start": "is being started",
    "reset": "is being wiped and started again",
    "collect": "is being handed in",
    "message": "has the message",
    "end": "is being ended",
}


class BulkAct(NamedTuple):
    """What is asked of many lablets.

    Attributes:
        act: One of `Act`, or `end` for user labs.
        seconds: By how much to extend.
        message: For the learners; an empty one removes what is there.
    """

    act: str
    seconds: int = 0
    message: str = ""


class Outcome(NamedTuple):
    """What became of a request to one lablet.

    Attributes:
        learner: Who has it, or the name of its Pod.
        done: Whether it was taken.
        words: What happens, or why nothing does.
        shown: The name by which people know the learner; "" if there is none.
    """

    learner: str
    done: bool
    words: str
    shown: str = ""


class _NothingDoneError(Exception):
    """A lablet does not do what was asked; the text says why."""


class Acting:
    """Asks lablets in the name of a visitor."""

    def __init__(self, site: SiteContext, classrooms: Classrooms) -> None:
        """Create it.

        Args:
            site: What every view is given.
            classrooms: The classes.
        """
        self._site = site
        self._classrooms = classrooms

    async def ask(self, visitor: Visitor, class_: str, rows: Sequence[Row], wanted: BulkAct) -> list[Outcome]:
        """Ask lablets, a few at a time; return what became of each, in their order.

        The Pods are written with the visitor's own token. What belongs to the record of a user lab the portal does, if
        the lab still is of the class in which the visitor may ask for it.

        Raises:
            InputError: The kubeconfig of the portal has changed, and is wrong.
        """
        async with AsyncExitStack() as stack:
            own = self._site.as_visitor.client(visitor.token)
            kube = await stack.enter_async_context(own) if visitor.token else None

            async def one(row: Row) -> Outcome:
                whose = row.learner or row.pod
                try:
                    words = await self._one(kube, visitor, class_, row, wanted)
                except _NothingDoneError as error:
                    return Outcome(whose, done=False, words=str(error), shown=row.shown)
                return Outcome(whose, done=True, words=words, shown=row.shown)

            return await at_most(_AT_ONCE, one, rows)

    async def _one(self, kube: KubeClient | None, visitor: Visitor, class_: str, row: Row, wanted: BulkAct) -> str:
        """Ask one lablet; return what happens.

        Raises:
            _NothingDoneError: Nothing does.
        """
        now, by = self._site.ctx.wall(), visitor.known.caller.username
        try:
            if row.user and wanted.act == "extend":
                return _until(await self._site.requests.extend(row.user, by, wanted.seconds, class_), now)
            if wanted.act == "end":
                if not row.user:
                    raise _NothingDoneError("is no lab of the portal; hand it in instead")
                await self._site.requests.delete(row.user, by, class_)
                return _DONE["end"]
            if kube is None:
                raise _NothingDoneError("takes your own token, which the ingress does not send")
            return await self._write(kube, row, wanted, now)
        except Rejected as error:
            raise _NothingDoneError(error.rejection.msg) from error
        except CannotBeDoneError as error:
            raise _NothingDoneError(str(error)) from error
        except Forbidden as error:
            raise _NothingDoneError(f"you may not do this: {error.message}") from error
        except NotFound:
            raise _NothingDoneError("is gone") from None
        except (OutsideError, InputError) as error:
            raise _NothingDoneError(f"the API server did not do it: {error}") from error

    async def _write(self, kube: KubeClient, row: Row, wanted: BulkAct, now: float) -> str:
        pod = self._classrooms.pod_of(row)
        act = next((each for each in ACTS if each == wanted.act), None)
        if pod is None or act is None:
            raise _NothingDoneError("has no lab that could do it yet")
        meant = learner_in(pod) if row.user else row.learner
        pods = Resource(kube, PODS, pod.metadata.namespace)

        def request(pod: Pod) -> Mapping[str, str | None]:
            return notes_for(act, pod, now, seconds=wanted.seconds, message=wanted.message)

        try:
            found = await change_for(pods, meant, pod, request)
        except NotChangedError as error:
            raise _NothingDoneError(f"the lab {error}") from None
        if act == "extend":
            return _until(unix(found.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, "")) or now, now)
        return _DONE[act] if act != "message" or wanted.message.strip() else "has no message any more"


def _until(end: float, now: float) -> str:
    return f"has time until {clock(end, now)}"


MINUTES: Final = (5, 10, 15, 30, 45, 60)
"""By how much a form extends."""
USUAL_MINUTES: Final = 15
EVERYBODY: Final = "all"
OF_LABLETS: Final[frozenset[str]] = frozenset(ACTS)
"""What can be asked of any lablet."""
_MINUTE_S: Final = 60


class ActForm(NamedTuple):
    """One form.

    Attributes:
        act: What it asks.
        words: On the button that opens it.
        asks: How the question begins, before the number of `noun`s and the names: `Hand in`.
        noun: What is counted.
        question: What happens.
        yes: On the button that does it.
        harms: Whether work may be lost.
    """

    act: str
    words: str
    asks: str
    noun: str
    question: str
    yes: str
    harms: bool = False


_DISKS: Final = "The devices are switched off; their disks stay, for 24 hours at most."
_WIPED: Final = "All devices are wiped and start again. What was typed on them is lost."
_OVER: Final = "The time of these learners ends now: their work is collected and graded, and their labs end."
_REMOVED: Final = "Labs that learners asked the portal for are removed with all their devices, and nothing is graded."
_TOLD: Final = "It is shown on the page of each lab. An empty one removes what is there."
FORMS: Final = (
    ActForm(
        "extend",
        "Extend",
        "Extend the time of",
        "learner",
        "The time of these learners ends later.",
        "Extend their time",
    ),
    ActForm("message", "Message", "Send it to", "learner", _TOLD, "Send it"),
    ActForm("stop", "Stop", "Stop", "lab", _DISKS, "Stop the labs"),
    ActForm(
        "start",
        "Start",
        "Start",
        "lab",
        "Labs that were stopped start again; their disks are as they were.",
        "Start the labs",
    ),
    ActForm("reset", "Reset labs", "Wipe and start again", "lab", _WIPED, "Reset the labs", harms=True),
    ActForm("collect", "Hand in", "Hand in", "lab", _OVER, "Hand the labs in", harms=True),
    ActForm("end", "End", "End", "lab", _REMOVED, "End the labs", harms=True),
)
_HEADLINES: Final = {
    "extend": "Time extended",
    "message": "Messages sent",
    "stop": "Labs stopped",
    "start": "Labs started",
    "reset": "Labs reset",
    "collect": "Labs handed in",
    "end": "Labs ended",
}


def offered(acts: Iterable[str]) -> list[ActForm]:
    """Return the forms for what somebody may do."""
    may = set(acts)
    return [form for form in FORMS if form.act in may]


def wanted_of(act: str, sent: Mapping[str, object]) -> BulkAct | str:
    """Return what a form asks, or why it asks nothing."""
    if act == "extend":
        minutes = str(sent.get("minutes", ""))
        if minutes not in map(str, MINUTES):
            return f"Say by how many minutes: {', '.join(map(str, MINUTES))}."
        return BulkAct(act, seconds=int(minutes) * _MINUTE_S)
    if act == "message":
        message = str(sent.get("message", ""))
        if len(message) > CHARS_MAX:
            return f"A message has {CHARS_MAX} characters at most, and this one {len(message)}."
        return BulkAct(act, message=message)
    return BulkAct(act)


def rows_of(picked: Sequence[str], scope: str, rows: Sequence[Row]) -> list[Row] | str:
    """Return the rows that a form is about, or why it is about none.

    Args:
        picked: What is ticked, as `Row.tick`; a key alone means whoever has the lab.
        scope: `all`, or anything else for those that are ticked.
        rows: All of the class, in the order of the answer.
    """
    if scope == EVERYBODY:
        return everybody(rows) or "Nobody of this class has a lab at present."
    ticks = set(picked)
    return [row for row in rows if row.tick in ticks or row.key in ticks] or (
        "Nothing was done: tick the rows that are meant, or choose everybody, and send it again."
    )


def passed_on(picked: Sequence[str], scope: str, rows: Sequence[Row]) -> list[Outcome]:
    """Return what becomes of ticked labs that had another learner when the page was sent: nothing; see `rows_of`."""
    if scope == EVERYBODY:
        return []
    now = {row.key: row.learner for row in rows}
    found = []
    for key, blank, learner in (tick.partition(" ") for tick in picked):
        who = now.get(key, learner)
        if blank and (words := passed_to(learner, who)):
            found.append(Outcome(learner or key, done=False, words=f"the lab {words}"))
    return found


def headline(act: str, outcomes: Sequence[Outcome]) -> str:
    """Return how many did what was asked: `Time extended: 22 of 24`."""
    return f"{_HEADLINES[act]}: {sum(each.done for each in outcomes)} of {len(outcomes)}"
