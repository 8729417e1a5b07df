"""A lablet that lives, as the modules of its stages and what they share receive it."""

import msgspec

from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.facts import Facts
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.objects import Pod


class Living(msgspec.Struct, frozen=True, gc=False):
    """A lablet with a claim whose Pod stays.

    Attributes:
        claim: Names the learner to whom the lablet is bound, even if `facts.claim` does not yet.
        now: Monotonic seconds, the clock of the times in `facts`.
    """

    facts: Facts
    pod: Pod
    claim: Claim
    now: float
    limits: LabletSettings

    @property
    def recalled(self) -> "Living":
        """The lablet with the time at which it was ready, if its Pod shows that and a crash lost it."""
        claim = self.claim
        if was_shown_ready(self.facts, claim):
            return msgspec.structs.replace(self, claim=claim.shown_ready(self.facts.now_unix))
        return self


def was_shown_ready(facts: Facts, claim: Claim) -> bool:
    """Return whether the Pod shows that the lablet was ready, and the claim does not."""
    afresh = claim.afresh or claim.lent_back
    return not claim.ready_at and not afresh and facts.pod is not None and facts.pod.status.phase == "Running"
