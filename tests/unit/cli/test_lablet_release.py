"""Which lablets `kubectl lablet release` ends."""

import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.timeslots import _request, is_released, no_release

USER, LEARNER, LENT_BY = "vkprovider.io/username", "vkprovider.io/learner", "vkprovider.io/lent-by"


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (lablet_pod(notes={LEARNER: "alice"}), ""),
        (lablet_pod(notes={USER: "alice"}, status={"phase": "Succeeded"}), ""),
        (lablet_pod(), "has no learner; to delete it: kubectl delete pod a"),
        (
            lablet_pod(notes={LENT_BY: "evening"}),
            "is on its way back to its pool evening; to follow it: kubectl lablet list --watch",
        ),
        (
            lablet_pod(notes={LEARNER: "alice"}, deletionTimestamp="2026-01-01T00:00:00Z"),
            "is being deleted; to follow it: kubectl lablet list --watch",
        ),
    ],
)
def test_only_a_learners_lablet_is_released(pod: LabletPod, says: str) -> None:
    assert no_release(pod) == says


def test_a_lablet_that_kept_its_pools_label_goes_back_to_that_pool() -> None:
    """Its username was written by hand, and not by `assign`."""
    collecting = {"vkprovider.io/desired-state": "COLLECTING"}
    assert _request(lablet_pod(notes={LEARNER: "alice"})) == collecting
    assert _request(lablet_pod(labels={"vkprovider.io/pool": "evening"})) == {**collecting, LENT_BY: "evening"}


@pytest.mark.parametrize(
    ("pod", "over"),
    [
        (None, True),
        (lablet_pod(notes={LEARNER: "alice"}, status={"phase": "Failed"}), True),
        (lablet_pod(labels={"vkprovider.io/pool": "evening"}), True),
        (lablet_pod(notes={LEARNER: "alice"}), False),
        (lablet_pod(notes={USER: "alice"}), False),
        (lablet_pod(notes={LENT_BY: "evening"}), False),
    ],
)
def test_a_lablet_is_released_once_it_is_gone_ended_or_back_in_its_pool(pod: LabletPod | None, *, over: bool) -> None:
    assert is_released(pod) is over
