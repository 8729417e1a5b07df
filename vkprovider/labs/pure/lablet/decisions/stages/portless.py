"""A lab whose ports are unknown, or another one's, since its claim was lost: a learner may be working in it."""

from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import WAIT, Release
from vkprovider.platform.messages import Notice


def decide(lablet: Living) -> Decision:
    """Leave the lab alone, and begin again when it is gone."""
    facts, fault = lablet.facts, lablet.claim.ports_fault
    if facts.presence is Presence.ABSENT:
        return Decision(Release(lablet.claim))
    assert fault is not None  # noqa: S101 (or it would be in another stage)
    event = Notice("Warning", fault.reason, fault.message)
    return Decision(WAIT, instantiating(facts, fault.reason, fault.message), events=(event,))
