"""The path of the view: changes that reach open pages by themselves."""

from vkprovider.portal.site.live.parts import Live
from vkprovider.runtime.parts import Route


def routes(live: Live) -> tuple[Route, ...]:
    """Return the paths."""
    return (Route("GET", "/live", live.streams.serve),)
