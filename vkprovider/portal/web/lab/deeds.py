"""What can be done with a lab, as buttons of its page. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from vkprovider.platform.times import length
from vkprovider.portal.pure.view.lab import LabView

OWNER: Final = "owner"
TEACHER: Final = "teacher"
MANAGER: Final = "manager"
"""The roles of those who see the lab of a user: its own user; who teaches its class; who manages all labs."""


class Deed(NamedTuple):
    """A button.

    Attributes:
        path: Where the form is sent, below the base.
        words: On the button.
        question: What happens, and whether to go on; "" if it needs no question.
        yes: On the button that does it after the question.
        name, value: A field that is sent along; "" for none.
    """

    path: str
    words: str
    question: str = ""
    yes: str = ""
    name: str = ""
    value: str = ""


def deeds_of(view: LabView, path: str, role: str, extend_s: int) -> Iterable[Deed]:
    """Yield what somebody may do with the lab of a user now.

    Args:
        view: The lab.
        path: Of its page.
        role: One of those above.
        extend_s: By how much its time is extended.
    """
    own = role == OWNER
    if own or role == TEACHER:
        if view.extend.possible:
            yield Deed(f"{path}/extend", f"Extend by {length(extend_s)}")
        if view.reset.possible:
            question = "All devices are wiped and start again. What was typed on them is lost."
            yield Deed(f"{path}/reset", "Reset the lab", question, "Reset it now")
    if view.stop.possible:
        question = "The lab is removed with all its devices. What was typed on them is lost, unless you download it."
        yield Deed(f"{path}/stop", "End the lab", question, "End it now")
