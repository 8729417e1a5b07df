"""Live updates of pages: topics, reviews of rights, open streams, and their path."""

from collections.abc import Iterator
from typing import NamedTuple

from vkprovider.platform.runtime.metrics import Measure, by_name, counter, gauge, value
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.live.reviews import Asking, Reviews
from vkprovider.portal.web.live.streams import Streams
from vkprovider.portal.web.live.topics import Topics


class Live(NamedTuple):
    """All that lets pages change by themselves.

    Attributes:
        topics: Views register theirs here, and get what a page shows first.
        reviews: Asks whether somebody still may; also for what is no stream of these.
        streams: The open streams.
    """

    topics: Topics
    reviews: Reviews
    streams: Streams

    def measures(self) -> Iterator[Measure]:
        """Yield the metrics."""
        topics, reviews, streams = self
        yield gauge("vkprovider_portal_browsers", "Browsers that follow changes.", lambda: value(len(streams)))
        yield gauge("vkprovider_portal_topics", "Topics that browsers look at.", lambda: value(len(topics)))
        yield counter(
            "vkprovider_portal_renderings_total", "Renderings of topics.", lambda: value(topics.renderings_total)
        )
        yield counter(
            "vkprovider_portal_reviews_total",
            "Reviews of who looks at something; unknown: the API server could not be asked.",
            lambda: by_name(reviews.answers_total),
            "answer",
        )

    async def finish(self) -> None:
        """End the streams: browsers come back to another replica."""
        self.streams.close()


def live_parts(site: SiteContext) -> Live:
    """Make it, without any topic."""
    own_tokens = not site.settings.token_audiences
    reviews = Reviews(Asking(site.as_visitor, site.callers, own_tokens=own_tokens).ask, wall=site.ctx.wall)
    topics = Topics()
    return Live(topics, reviews, Streams(site.visitors, topics, reviews, site.ctx.wall, site.index.age_s))


def routes(live: Live) -> tuple[Route, ...]:
    """Return the paths."""
    return (Route("GET", "/live", live.streams.serve),)
