"""The metrics of sessions: events of the Lab Delivery System, and calls of it."""

from collections.abc import Iterator, Mapping

from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.lds.factory import CALLS as LDS_CALLS
from vkprovider.platform.runtime.metrics.measure import Measure, by_name, counter, gauge, histogram, value


def sessions_measures(inbox: Inbox, outcomes: Mapping[str, int]) -> Iterator[Measure]:
    """Yield the metrics of sessions.

    Args:
        inbox: The stored events.
        outcomes: What became of the events that reached this replica.
    """
    yield counter(
        "vkprovider_session_events_total",
        "Events of the Lab Delivery System that reached this replica, by what became of them.",
        lambda: by_name(outcomes),
        "outcome",
    )
    yield gauge(
        "vkprovider_inbox_sessions",
        "Sessions of which an event is noted that no claim has taken over; every replica reports it for all.",
        lambda: value(len(inbox.rows)),
    )
    yield histogram(
        "vkprovider_lds_call_seconds",
        "Time of a call of the Lab Delivery System, each repetition by itself; the code is as for CML.",
        LDS_CALLS.took_s.items,
        "deployment",
        "operation",
        "code",
    )
