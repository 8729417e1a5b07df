"""What went wrong, as JupyterHub shows it to a learner."""

from http import HTTPStatus
from typing import Any, Final

from tornado.web import HTTPError

from jupyterhub_vkprovider.refusals import Refusal

NOT_THE_HUBS_FAULT: Final = 424
"""JupyterHub leaves after a number of 5xx in a row; a broken lab, or a portal that is down, is not its fault."""
TOKENLESS: Final = (
    "The hub has no token of yours for the lab service. Log out of the hub, and log in again; if that does not help,"
    " tell the hub's administrator that auth_state has no token."
)
NO_ANSWER: Final = "The lab service does not answer. Try again in a minute."
NAMED: Final = "You can have one lab at a time: start it without a name of its own."
UNPROVEN: Final = "The hub cannot prove itself to the lab service. Tell the hub's administrator."


class LabError(HTTPError):
    """An error whose text JupyterHub shows on its pages, instead of "Internal Server Error".

    Args:
        text: Sentences for a learner, plain text.
    """

    def __init__(self, code: int, text: str, **options: Any) -> None:
        super().__init__(code, text, **options)
        self.jupyterhub_message = text


def refused(refusal: Refusal) -> LabError:
    """Return the error of a refusal. A hub that answered 401 itself would send the learner to its login in a circle."""
    if refusal.code == HTTPStatus.UNAUTHORIZED:
        return LabError(HTTPStatus.FORBIDDEN, refusal.text)
    return LabError(
        refusal.code if refusal.code < HTTPStatus.INTERNAL_SERVER_ERROR else NOT_THE_HUBS_FAULT, refusal.text
    )
