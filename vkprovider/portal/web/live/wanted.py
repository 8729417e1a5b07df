"""What a page asks a stream for: `?topic=lab:alice&version=aGk…&topic=class:net101&version=`."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

TOPICS_MAX: Final = 20
_CHARS_MAX: Final = 1000


class Wanted(NamedTuple):
    """A topic that a page shows.

    Attributes:
        topic: Its name, with the kind.
        version: What the page shows of it; "" if it does not know that.
    """

    topic: str
    version: str

    @property
    def kind(self) -> str:
        """The kind of thing."""
        return self.topic.partition(":")[0]

    @property
    def name(self) -> str:
        """Which one of them."""
        return self.topic.partition(":")[2]


def wanted(topics: Sequence[str], versions: Sequence[str], form: Callable[[str, str], str]) -> list[Wanted]:
    """Return what a page asks for, each topic once, and not more than a stream may have.

    Args:
        topics: The names of topics, with their kinds.
        versions: What the page shows of each.
        form: Returns the one name of what a name of a kind names.
    """
    given = [*versions, *([""] * len(topics))]
    asked = [Wanted(topic, its) for topic, its in zip(topics, given, strict=False) if len(topic) <= _CHARS_MAX]
    formed = [Wanted(f"{each.kind}:{form(each.kind, each.name)}", each.version) for each in asked]
    found = {each.topic: each for each in formed}
    return list(found.values())[:TOPICS_MAX]
