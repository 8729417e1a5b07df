"""Who may get which Pod, and for how long: the decisions of `kubectl lablet assign`."""

from datetime import UTC, datetime
from random import Random

import click
import msgspec
import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.deployments import Deployment, LabelSelector
from vkprovider.classroom.pods import Assignment, LabletPod, hindrance, in_order
from vkprovider.classroom.roster import Learner
from vkprovider.cli.lablet.timeslots import none_free, wish_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_wish_becomes_the_learners_annotations() -> None:
    assert wish_of(Learner(" alice "), None, "90m", NOW).annotations() == {
        "vkprovider.io/username": "alice",
        "vkprovider.io/timeslot-end": "2026-01-31T13:30:00Z",
    }
    assert wish_of(Learner("alice"), "+1h", "90m", NOW) == Assignment(
        "alice", "2026-01-31T13:00:00Z", "2026-01-31T14:30:00Z"
    )
    assert wish_of(Learner("alice"), None, None, NOW) == Assignment("alice")


@pytest.mark.parametrize(
    ("user", "since", "until", "says"),
    [
        ("  ", None, None, "USER is empty"),
        ("a" * 300, None, None, "not a name of at most 256"),
        ("a\nb", None, None, "printable"),
        ("alice", None, "2026-01-31T11:00:00Z", "is over already"),
        ("alice", "+3h", "2026-01-31T13:00:00Z", "is not after"),
    ],
)
def test_wish_that_cannot_be_is_refused(user: str, since: str | None, until: str | None, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        wish_of(Learner(user), since, until, NOW)


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (lablet_pod(), ""),
        (lablet_pod(ready=False), "is not Ready"),
        (lablet_pod(notes={"vkprovider.io/username": "bob"}), "is assigned to bob"),
        (lablet_pod(notes={"vkprovider.io/username": "eve", "vkprovider.io/learner": "bob"}), "is assigned to bob"),
        (lablet_pod(notes={"vkprovider.io/learner": "bob"}), "is assigned to bob"),
        (lablet_pod(notes={"vkprovider.io/lds-session-id": "s-1"}), "has a session"),
        (lablet_pod(deletionTimestamp="2026-01-01T00:00:00Z"), "is being deleted"),
        (lablet_pod(status={"phase": "Failed"}), "has ended (Failed)"),
        (lablet_pod(notes={"vkprovider.io/lent-by": "warm"}), "is on its way back to its pool warm"),
        (lablet_pod(notes={"vkprovider.io/desired-state": "STOPPED"}), "is wanted to be STOPPED"),
    ],
)
def test_only_a_free_lablet_is_given(pod: LabletPod, says: str) -> None:
    assert hindrance(pod) == says


@pytest.mark.parametrize(
    ("replicas", "runtime", "failure", "pods", "says"),
    [
        (
            0,
            "netlab",
            "",
            [],
            "has no lablets: its replicas are 0; scale it up: kubectl scale deployment/warm --replicas=1 -n friday",
        ),
        (2, "netlab", "", [], "has no lablets: none was made yet"),
        (2, "", "", [], "has no lablets: its template needs the runtimeClassName of a LabletDefinition"),
        (
            2,
            "netlb",
            'RuntimeClass "netlb" not found',
            [],
            'its ReplicaSet makes no more: RuntimeClass "netlb" not found',
        ),
        (
            1,
            "netlab",
            "",
            [lablet_pod("a", ready=False)],
            "release POD; or scale it up: kubectl scale deployment/warm --replicas=2 -n friday",
        ),
    ],
)
def test_why_a_deployment_has_no_free_lablet(
    replicas: int, runtime: str, failure: str, pods: list[LabletPod], says: str
) -> None:
    item = {
        "metadata": {"name": "warm", "namespace": "friday"},
        "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"runtimeClassName": runtime}}},
        "status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": failure}] if failure else []},
    }
    said = none_free(msgspec.convert(item, Deployment), pods)
    assert said.startswith("deployment/warm ")
    assert said.endswith(says)


def test_newest_template_comes_first_and_askers_are_kept_apart() -> None:
    def of(name: str, template: str, minute: int) -> LabletPod:
        return lablet_pod(
            name, labels={"pod-template-hash": template}, creationTimestamp=f"2026-01-01T00:{minute:02}:00Z"
        )

    pods = [of("old-1", "x", 1), of("new-1", "y", 2), of("old-2", "x", 0), of("new-2", "y", 9), of("new-3", "y", 3)]
    orders = [[pod.metadata.name for pod in in_order(pods, Random(seed))] for seed in range(30)]
    assert all({*order[:3]} == {"new-1", "new-2", "new-3"} for order in orders)
    assert len({order[0] for order in orders}) == 3


def test_selectors_are_written_as_a_query_has_them() -> None:
    selector = msgspec.convert(
        {
            "matchLabels": {"app": "a"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["x", "y"]},
                {"key": "zone", "operator": "NotIn", "values": ["z"]},
                {"key": "pool", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        },
        LabelSelector,
    )
    assert selector.text == "app=a,tier in (x,y),zone notin (z),pool,!old"
