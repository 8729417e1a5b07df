"""The paths of the view: the classes of an instructor."""

from vkprovider.portal.site.context import SiteContext
from vkprovider.portal.site.live.parts import Live
from vkprovider.runtime.parts import Route


def routes(site: SiteContext, live: Live) -> tuple[Route, ...]:  # noqa: ARG001 (nothing is shown yet)
    """Return the paths."""
    return ()
