"""A lab whose ports are unknown, or another one's, since its claim was lost: a learner may be working in it."""

from vkprovider.api.messages import Notice
from vkprovider.domain.lablet.decisions.living import Living
from vkprovider.domain.lablet.decisions.reports import instantiating
from vkprovider.domain.lablet.facts import Decision
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.steps import WAIT, Release


def decide(lablet: Living) -> Decision:
    """Leave the lab alone, and begin again when it is gone."""
    facts, fault = lablet.facts, lablet.claim.ports_fault
    if facts.presence is Presence.ABSENT:
        return Decision(Release(lablet.claim))
    assert fault is not None  # noqa: S101 (or it would be in another stage)
    event = Notice("Warning", fault.reason, fault.message)
    return Decision(WAIT, instantiating(facts, fault.reason, fault.message), events=(event,))
