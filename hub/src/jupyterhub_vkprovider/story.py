"""The story of an operation as JupyterHub's progress page wants it: https://sqr-066.lsst.io/#jupyterhub-spawner-class."""

from dataclasses import dataclass, replace
from typing import Any, Final

from jupyterhub_vkprovider.dialects import Kind, Line

EVENTS_MAX: Final = 500
"""The most events that are kept; the first ones go."""
_DEFAULT: Final = {Kind.COMPLETE: "Done.", Kind.FAILED: "Failed."}


@dataclass(frozen=True)
class Event:
    """An event of the progress page.

    Attributes:
        progress: In percent.
    """

    progress: int
    message: str

    def for_hub(self) -> dict[str, int | str]:
        """Return it as `Spawner.progress` yields it."""
        return {"progress": self.progress, "message": self.message}


@dataclass(frozen=True)
class Story:
    """What an operation has told so far.

    Attributes:
        number: Of the operation, among those of this spawner.
        dropped: How many events were dropped, because there were too many.
        progress: The last percentage.
        done: Whether the operation has ended.
    """

    number: int = 0
    events: tuple[Event, ...] = ()
    dropped: int = 0
    progress: int = 0
    done: bool = False

    def cleared(self) -> "Story":
        """Return the empty story of the next operation."""
        return Story(number=self.number + 1)

    def after(self, line: Line) -> "Story":
        """Return the story with a line: a percentage changes the number only; the last line ends it, with 100."""
        progress = self.progress if line.percent is None else line.percent
        if line.kind is Kind.PROGRESS:
            return replace(self, progress=progress)
        text = line.text.strip() or _DEFAULT.get(line.kind, "")
        if line.ends:
            return replace(self._with(Event(100, text)), progress=100, done=True)
        return replace(self._with(Event(progress, text)), progress=progress)

    def ended(self) -> "Story":
        """Return the story of an operation that ends without a last line, such as a refused one."""
        return replace(self, done=True)

    def since(self, read: int) -> tuple[Event, ...]:
        """Return the events after the first `read` ones of the operation."""
        return self.events[max(0, read - self.dropped) :]

    @property
    def told(self) -> int:
        """How many events the operation has had."""
        return self.dropped + len(self.events)

    def saved(self) -> dict[str, Any]:
        """Return it as JSON for the hub's database."""
        events = [event.for_hub() for event in self.events]
        return {"events": events, "progress": self.progress, "done": self.done}

    def restored(self, saved: dict[str, Any]) -> "Story":
        """Return the story that `saved` wrote; what is not of that shape is left out."""
        found = saved.get("events")
        events = tuple(filter(None, map(_event, found if isinstance(found, list) else ())))
        progress = saved.get("progress")
        return replace(
            self.cleared(),
            events=events,
            progress=progress if isinstance(progress, int) else 0,
            done=saved.get("done") is True,
        )

    def _with(self, event: Event) -> "Story":
        events = (*self.events, event)
        return replace(self, events=events[-EVENTS_MAX:], dropped=self.dropped + max(0, len(events) - EVENTS_MAX))


def _event(saved: object) -> Event | None:
    match saved:
        case {"progress": int(progress), "message": str(message)}:
            return Event(progress, message)
        case _:
            return None
