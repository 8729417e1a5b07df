"""A claim without a lab: the lab is searched for, where one may be, and imported."""

from vkprovider.api.reasons import Progress, Trouble
from vkprovider.domain.lablet.decisions.afresh import again, back_off
from vkprovider.domain.lablet.decisions.learner import to_import_for
from vkprovider.domain.lablet.decisions.living import Living
from vkprovider.domain.lablet.decisions.reports import pending
from vkprovider.domain.lablet.facts import Decision
from vkprovider.domain.lablet.steps import SAVE, Import, Search


def decide(lablet: Living) -> Decision:
    """Import the lab, or forget the one that is gone."""
    facts, claim = lablet.facts, lablet.claim
    if claim.lab_id:
        if claim.resetting:  # a wipe could not give it its devices back
            return Decision(SAVE, None, claim.lost_lab())
        text = "the lab was deleted on the worker by another client"
        return again(lablet, claim.lost_lab(), Trouble.LAB_LOST, text)
    if (wait := back_off(lablet)) is not None:
        return wait
    report = pending(Progress.IMPORTING_LAB, f"lab {claim.title} is being imported")
    if not facts.memory.searched:
        return Decision(Search(claim), report)
    return Decision(Import(claim, lablet.pod, to_import_for(facts, claim)), report)
