"""The path of the view: changes that reach open pages by themselves."""

from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.web.live.parts import Live


def routes(live: Live) -> tuple[Route, ...]:
    """Return the paths."""
    return (Route("GET", "/live", live.streams.serve),)
