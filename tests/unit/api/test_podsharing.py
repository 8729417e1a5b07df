"""What Pods share is what they have in common, and nothing that is written about them changes by it."""

from typing import Any

import msgspec
import pytest

from vkprovider.api.objects import Pod
from vkprovider.api.podsharing import PodSharing

_decoder = msgspec.json.Decoder(Pod)


def pod(name: str, *, node: str = "n1", phase: str = "Running", at: str = "2026-11-22T03:00:00Z") -> Pod:
    state: dict[str, Any] = (
        {"running": {"startedAt": at}} if phase == "Running" else {"waiting": {"reason": "Starting"}}
    )
    document = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"app": "bench"},
            "annotations": {"vkprovider.io/lab-id": f"lab-{name}"},
            "ownerReferences": [{"uid": "u", "kind": "ReplicaSet", "name": "bench", "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "runtimeClassName": "bench",
            "containers": [{"name": "lab", "image": "bench:1"}],
            "overhead": {"cpu": "1"},
        },
        "status": {
            "phase": phase,
            "startTime": at,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at, "message": "as it should be"}],
            "containerStatuses": [{"name": "lab", "ready": True, "state": state}],
        },
    }
    return _decoder.decode(msgspec.json.encode(document))


def test_pods_of_one_template_share_what_they_have_in_common() -> None:
    share = PodSharing()
    one, two = share(pod("a")), share(pod("b", at="2026-11-22T03:00:07Z"))
    assert one.spec is two.spec
    assert one.metadata.labels is two.metadata.labels
    assert one.status.conditions is two.status.conditions
    assert one.status.container_statuses is two.status.container_statuses
    assert (one.metadata.name, two.metadata.name) == ("a", "b")
    assert one.metadata.annotations != two.metadata.annotations
    assert two.status.start_time == "2026-11-22T03:00:07Z"


@pytest.mark.parametrize("other", [pod("b", node="n2"), pod("b", phase="Pending")])
def test_what_differs_is_not_shared(other: Pod) -> None:
    share = PodSharing()
    one, two = share(pod("a")), share(msgspec.convert(msgspec.to_builtins(other), Pod))
    assert two.spec.node_name == other.spec.node_name
    assert two.status.phase == other.status.phase
    assert two.status.conditions == one.status.conditions
    assert (two.status.container_statuses is one.status.container_statuses) == (one.status.phase == other.status.phase)


def test_what_a_status_is_compared_by_stays() -> None:
    kept = PodSharing()(pod("a"))
    [condition], [container] = kept.status.conditions, kept.status.container_statuses
    assert (condition.type, condition.status, condition.message) == ("Ready", "True", "as it should be")
    assert (container.name, container.ready, list(container.state)) == ("lab", True, ["running"])
    waiting = PodSharing()(pod("a", phase="Pending"))
    assert waiting.status.container_statuses[0].state == {"waiting": {"reason": "Starting"}}


def test_it_does_not_grow_with_the_classes_it_has_seen() -> None:
    share = PodSharing()
    for number in range(3000):
        share(pod("a", node=f"n{number}"))
    assert len(share._last) <= 1024
