"""What each class of steps says about itself."""

import pytest

from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.steps import Step, System


def step_classes(of: type[Step] = Step) -> set[type[Step]]:
    """Return every class of steps there is."""
    return {each for sub in of.__subclasses__() for each in {sub, *step_classes(sub)}}


TABLE: dict[type[Step], tuple[str, System]] = {
    steps.Wait: ("NONE", System.NOTHING),
    steps.Save: ("SAVE", System.NOTHING),
    steps.Forget: ("FORGET", System.NOTHING),
    steps.MakeClaim: ("CLAIM", System.NOTHING),
    steps.Renew: ("RENEW", System.NOTHING),
    steps.Release: ("RELEASE", System.NOTHING),
    steps.Search: ("SEARCH", System.WORKER),
    steps.Import: ("IMPORT", System.WORKER),
    steps.NoteLearner: ("NOTE", System.WORKER),
    steps.Start: ("START", System.WORKER),
    steps.Stop: ("STOP", System.WORKER),
    steps.Wipe: ("WIPE", System.WORKER),
    steps.ChangeDevice: ("DEVICE", System.WORKER),
    steps.DeleteLab: ("DELETE_LAB", System.WORKER),
    steps.Extract: ("EXTRACT", System.WORKER),
    steps.Collect: ("COLLECT", System.LDS | System.WORKER),
    steps.Grade: ("GRADE", System.GRADER),
    steps.Provision: ("PROVISION", System.LDS),
    steps.Reschedule: ("RESCHEDULE", System.LDS),
    steps.ArchiveSession: ("ARCHIVE", System.LDS),
    steps.ConfirmGone: ("CONFIRM_GONE", System.API_SERVER),
    steps.ConfirmDeletion: ("DELETE_POD", System.API_SERVER),
    steps.RestoreUsername: ("RESTORE_USERNAME", System.API_SERVER),
    steps.ClearLearner: ("CLEAR_LEARNER", System.API_SERVER),
    steps.Expose: ("EXPOSE", System.API_SERVER),
    steps.Withdraw: ("WITHDRAW", System.API_SERVER),
    steps.ReturnToPool: ("RETURN_TO_POOL", System.API_SERVER),
}
"""Class: its label in metrics, and what it calls."""
CHANGE_LABS = {steps.Start, steps.Stop, steps.Wipe, steps.ChangeDevice, steps.DeleteLab}


def test_the_table_has_every_class() -> None:
    assert TABLE.keys() == step_classes()


@pytest.mark.parametrize("step", TABLE, ids=lambda step: step.__name__)
def test_class_says_what_it_calls_and_changes(step: type[Step]) -> None:
    """By itself: a class that inherits from another one may call another system."""
    assert {"label", "calls"} <= vars(step).keys()
    assert (step.label, step.calls) == TABLE[step]
    assert step.changes_lab is (step in CHANGE_LABS)
    assert System.WORKER in step.calls or not step.changes_lab


def test_a_lablet_waits_for_every_step_but_its_username_and_what_it_lends_and_one_device() -> None:
    assert {step for step in TABLE if not step.holds} == {steps.RestoreUsername, steps.Expose, steps.ChangeDevice}


def test_no_label_counts_two_classes() -> None:
    assert len({step.label for step in TABLE}) == len(TABLE)
