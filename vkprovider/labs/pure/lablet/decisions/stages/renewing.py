"""A warm lablet takes up new content: its lab goes, and one of the new content takes its place. The Pod stays.

    Ready → shown not Ready, claim saved → stop → wipe → delete → new content and ports in the claim → import

The lab is touched only when the Pod is seen not Ready and without a learner: `kubectl lablet assign` gives nobody a
lablet that is not Ready, so that one which is assigned at the same moment is seen, and kept as it is.
"""

from typing import Final

from vkprovider.labs.pure.lablet.decisions import living
from vkprovider.labs.pure.lablet.decisions.living import Living
from vkprovider.labs.pure.lablet.decisions.takedown import take_down
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.intent import is_ready
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Renew

_SEEN_S: Final = 1.0
"""How soon to look whether the watch shows the Pod not Ready; the echo of an own write wakes no lablet."""


def decide(lablet: Living) -> Decision:
    """Take the lab of the old content down, then take up the new content."""
    facts, claim, report = lablet.facts, lablet.claim, living.renewing(lablet.facts)
    if facts.presence is Presence.ABSENT:
        return Decision(Renew(lablet.pod, claim), report)
    if claim.bound_to:  # assigned at the same moment
        return Decision(SAVE, None, claim.keeping_content())
    if is_ready(lablet.pod) or not facts.claim_saved:
        return Decision(WAIT, report, after_s=_SEEN_S)
    return take_down(facts, claim, report, lablet.now)
