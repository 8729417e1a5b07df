"""The part of sessions: what the Lab Delivery System reports, and what lablets ask of it."""

from collections import Counter as Tally
from dataclasses import dataclass
from functools import partial

from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.controllers.session.sessions import Sessions
from vkprovider.labs.controllers.session.strays import StraySessions, live_sessions
from vkprovider.labs.http.events import Receiver
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.pure.worker.secrets import secrets_of
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.metrics import sessions_measures
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.platform.runtime.parts import Loops, Part, Route


@dataclass(frozen=True, kw_only=True)
class SessionsPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        inbox: The stored session events.
        strays: Sessions that no claim names; None without an LDS.
        sessions: What lablets ask of the LDS and of the grader.
        has_lds: Whether this replica takes part in an LDS.
    """

    inbox: Inbox
    strays: StraySessions | None
    sessions: Sessions
    has_lds: bool


def sessions(
    base: Base, definitions: DefinitionsPart, deployments: Deployments | None, grader: HttpGrader | None
) -> SessionsPart:
    """Build the part.

    Args:
        base: What all parts share.
        definitions: The definitions of sessions' lablets.
        deployments: The LDS; None: no part in it.
        grader: Grades the work of learners; None: nobody does.
    """
    ctx, settings, index, workers = base.ctx, base.settings, base.index, base.fleet.items
    items, leads = definitions.definitions.items, base.membership.leads
    inbox = Inbox(
        ctx, leads, changed=index.session_changed, claimed=index.has_session, retry_s=settings.http.events_retry_s
    )
    loops: Loops = {"inbox": inbox.run}  # deletes session events that are out of date
    strays = None
    if deployments is not None:
        live = partial(live_sessions, workers)
        strays = StraySessions(ctx, deployments, inbox, items, live=live, leads=leads)
        loops = {**loops, "lds-deployments": deployments.watch, "lds-strays": strays.run}
    controller = Sessions(
        ctx,
        deployments,
        strays,
        grader,
        definitions=items,
        contents=definitions.definitions.contents,
        workers=workers,
        worker_secrets=lambda: secrets_of(base.objects.workers.items.values()),
        inbox=inbox,
        settings=settings.lds,
    )
    counts: Tally[str] = Tally()
    receiver = Receiver(inbox.accept, settings.http.events_secrets, counts=counts)
    return SessionsPart(
        inbox=inbox,
        strays=strays,
        sessions=controller,
        has_lds=deployments is not None,
        informers=(inbox.objects,),
        loops=loops,
        measures=tuple(sessions_measures(inbox, counts)),
        routes=(Route("POST", "/events", receiver.handle),),
        stats=lambda: {"session_events": dict(counts), "sessions_in_inbox": len(inbox.rows)},
    )
