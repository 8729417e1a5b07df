"""The forms by which an instructor asks many lablets, and the page that says what became of each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from vkprovider.lablet.message import CHARS_MAX
from vkprovider.portal.pure.classes.asked import ACTS
from vkprovider.portal.pure.classes.rows import Row
from vkprovider.portal.web.classes.acting import Outcome, Wanted

MINUTES: Final = (5, 10, 15, 30, 45, 60)
"""By how much a form extends."""
USUAL_MINUTES: Final = 15
EVERYBODY: Final = "all"
OF_LABLETS: Final[frozenset[str]] = frozenset(ACTS)
"""What can be asked of any lablet."""
_MINUTE_S: Final = 60


class Form(NamedTuple):
    """One form.

    Attributes:
        act: What it asks.
        words: On the button that opens it.
        question: What happens.
        yes: On the button that does it.
        harms: Whether work may be lost.
    """

    act: str
    words: str
    question: str
    yes: str
    harms: bool = False


FORMS: Final = (
    Form("extend", "Extend", "The time of these learners ends later.", "Extend their time"),
    Form("message", "Message", "It is shown on the page of each lab. An empty one removes what is there.", "Send it"),
    Form("stop", "Stop", "The devices are switched off; their disks stay, for 24 hours at most.", "Stop the labs"),
    Form("start", "Start", "Labs that were stopped start again; their disks are as they were.", "Start the labs"),
    Form(
        "reset",
        "Reset labs",
        "All devices are wiped and start again. What was typed on them is lost.",
        "Reset the labs",
        harms=True,
    ),
    Form(
        "collect",
        "Hand in",
        "The time of these learners ends now: their work is collected and graded, and their labs end.",
        "Hand the labs in",
        harms=True,
    ),
    Form(
        "end",
        "End",
        "Labs that learners asked the portal for are removed with all their devices, and nothing is graded.",
        "End the labs",
        harms=True,
    ),
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


def offered(acts: Iterable[str]) -> list[Form]:
    """Return the forms for what somebody may do."""
    may = set(acts)
    return [form for form in FORMS if form.act in may]


def wanted_of(act: str, sent: Mapping[str, object]) -> Wanted | str:
    """Return what a form asks, or why it asks nothing."""
    if act == "extend":
        minutes = str(sent.get("minutes", ""))
        if minutes not in map(str, MINUTES):
            return f"Say by how many minutes: {', '.join(map(str, MINUTES))}."
        return Wanted(act, seconds=int(minutes) * _MINUTE_S)
    if act == "message":
        message = str(sent.get("message", ""))
        if len(message) > CHARS_MAX:
            return f"A message has {CHARS_MAX} characters at most, and this one {len(message)}."
        return Wanted(act, message=message)
    return Wanted(act)


def rows_of(picked: Sequence[str], scope: str, rows: Sequence[Row]) -> list[Row] | str:
    """Return the rows that a form is about, or why it is about none.

    Args:
        picked: The keys of rows that are ticked.
        scope: `all`, or anything else for those that are ticked.
        rows: All of the class, in the order of the answer.
    """
    if scope == EVERYBODY:
        found = [row for row in rows if row.learner and not row.is_over]
        return found or "Nobody of this class has a lab at present."
    keys = set(picked)
    return [row for row in rows if row.key in keys] or (
        "Nothing was done: tick the rows that are meant, or choose everybody, and send it again."
    )


def headline(act: str, outcomes: Sequence[Outcome]) -> str:
    """Return how many did what was asked: `Time extended: 22 of 24`."""
    return f"{_HEADLINES[act]}: {sum(each.done for each in outcomes)} of {len(outcomes)}"
