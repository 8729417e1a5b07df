"""A claim without a lab: the lab is searched for, where one may be, and imported."""

from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating, pending, to_import_for
from vkprovider.labs.pure.lablet.decisions.takedown import again, back_off
from vkprovider.labs.pure.lablet.facts import Decision, Facts
from vkprovider.labs.pure.lablet.identity import NOTE_S, shown_lab
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Import, Search
from vkprovider.platform.messages import Notice


def decide(lablet: Living) -> Decision:
    """Import the lab, or forget the one that is gone."""
    facts, claim = lablet.facts, lablet.claim
    if claim.lab_id:
        if claim.resetting:  # a wipe could not give it its devices back
            return Decision(SAVE, None, claim.lost_lab(facts.worker_time))
        text = "the lab was deleted on the worker by another client"
        return again(lablet, claim.lost_lab(facts.worker_time), Trouble.LAB_LOST, text)
    if (wait := back_off(lablet)) is not None:
        return wait
    report = pending(Progress.IMPORTING_LAB, f"lab {claim.title} is being imported")
    if (left_s := facts.memory.search_in_s(lablet.now)) > 0:
        return _await_a_person(lablet, left_s)
    if not facts.memory.searched:
        return Decision(Search(claim, shown_lab(lablet.pod)), report)
    if _needs_note(facts, claim):
        return Decision(SAVE, report, claim.asking(facts.worker_time))
    return Decision(Import(claim, lablet.pod, to_import_for(facts, claim)), report)


def _needs_note(facts: Facts, claim: Claim) -> bool:
    """Return whether the worker's time is to be noted before the import, by which its lab is found again."""
    if not facts.worker_time:
        return False
    return claim.asked_at == facts.memory.spent or abs(facts.worker_time - claim.asked_at) > NOTE_S


def _await_a_person(lablet: Living, left_s: float) -> Decision:
    """Import nothing while labs are there of which one may be the lablet's, and the others copies of it."""
    text = (
        f"the worker has {' and '.join(lablet.facts.memory.matches)}: one may be this lablet's lab, another one may be "
        "a copy that somebody saved. Nothing is imported and all of them stay: remove what is a copy, with the command "
        "in the event UnclaimedLab of the CMLWorker; or delete the pod, its successor gets a new lab"
    )
    event = Notice("Warning", Trouble.NEEDS_ATTENTION, text)
    return Decision(WAIT, instantiating(lablet.facts, Trouble.NEEDS_ATTENTION, text), after_s=left_s, events=(event,))
