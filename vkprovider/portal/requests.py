"""The verbs of the page: make, delete and extend the lab of a user."""

from typing import NamedTuple

from vkprovider.domain.userlab.record import LabRequest
from vkprovider.domain.userlab.rejections import Grounds, Rejection


class Rejected(Exception):  # noqa: N818 (reads well where it is raised)
    """A request is refused.

    Attributes:
        rejection: Why.
    """

    def __init__(self, grounds: Grounds, msg: str, loc: tuple[str, ...] = ()) -> None:
        super().__init__(msg)
        self.rejection = Rejection(grounds, msg, loc)


class Caller(NamedTuple):
    """Somebody who asks for a lab of the own.

    Attributes:
        user: The name in paths: the username without the prefix of the setting.
        username: The name that the cluster knows.
        groups: The groups of the user.
        token: The token with which the user came; it goes into the lab's Secret.
    """

    user: str
    username: str
    groups: tuple[str, ...] = ()
    token: str = ""


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

    async def delete(self, user: str, by: str) -> None:
        """Ask for the end of a user's lab; one that is ending already is asked for no second time.

        Raises:
            Rejected: There is no lab, or the API server cannot be asked.
        """
        raise NotImplementedError

    async def extend(self, user: str, by: str, asked_s: int) -> int:
        """Extend the time of a user's lab by so many seconds; return its new end in Unix seconds.

        Raises:
            Rejected: There is no lab that runs, the bounds do not allow it, or the API server cannot be asked.
        """
        raise NotImplementedError
