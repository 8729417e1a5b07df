"""Somebody who looks at the site."""

from typing import NamedTuple

from vkprovider.portal.api.callers import KnownCaller


class Visitor(NamedTuple):
    """Somebody who looks at the site.

    Attributes:
        known: Who it is.
        csrf: What each of their forms sends along.
        token: Theirs, of the cluster; "" if an ingress names them and sends none.
        base: The path before those of the site.
        leaves: Whether they can log out here.
        session: Tells their session from others.
        ends_at: When it is over, in Unix seconds; None if an ingress names them with each request.
    """

    known: KnownCaller
    csrf: str
    token: str
    base: str = ""
    leaves: bool = True
    session: str = ""
    ends_at: float | None = None

    @property
    def user(self) -> str:
        """Their name in paths; "" if they can have no lab."""
        return self.known.caller.user
