"""The page, made of its parts."""

from typing import Final

from vkprovider.platform.http.access import AccessControl, Pace
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.settings import reveal
from vkprovider.portal.api.bodies import Bodies
from vkprovider.portal.api.callers import ByHeaders, ByToken, PortalCallers
from vkprovider.portal.api.dialects import DIALECTS
from vkprovider.portal.api.routes import PortalPage
from vkprovider.portal.api.streams import LabStreams, StreamTimes
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import Index
from vkprovider.portal.service.informers import Informers
from vkprovider.portal.service.requests import Requests
from vkprovider.portal.settings import PortalSettings

_PACE: Final = Pace(at_once=16, per_s=100, burst=500)
"""The limits of reviews: a whole class asks for labs in the same second, each learner with another token."""


def portal_callers(ctx: Context, settings: PortalSettings, objects: Informers) -> PortalCallers:
    """Make what finds out who asks; `objects` is all that is known of labs."""
    access = AccessControl(ctx.kube, audiences=settings.token_audiences, pace=_PACE)
    secret, prefix = reveal(settings.ingress_secret), settings.username_prefix
    by_headers = settings.callers == "headers" and secret is not None
    source = ByHeaders(secret, prefix) if by_headers and secret is not None else ByToken(access)
    return PortalCallers(access, source, ctx.namespace, prefix, objects.are_complete)


def portal_page(
    ctx: Context,
    settings: PortalSettings,
    index: Index,
    requests: Requests,
    choices: Choices,
    callers: PortalCallers,
    times: StreamTimes | None = None,
) -> PortalPage:
    """Make the page of a replica.

    Args:
        ctx: The replica.
        settings: What answers are like.
        index: All user labs.
        requests: Makes, deletes and extends labs.
        choices: The menu and the quotas.
        callers: Finds out who asks.
        times: Those of streams; None for the usual ones.
    """
    dialect = DIALECTS[settings.dialect]
    return PortalPage(
        settings,
        index,
        requests,
        choices,
        callers,
        dialect,
        Bodies(dialect, ctx.wall, choices.amounts_of),
        LabStreams(index, dialect, times or StreamTimes()),
    )
