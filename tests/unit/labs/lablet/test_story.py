"""The story of a lablet: Events and conditions in the order of their times, each said once."""

from typing import Any

import msgspec
import pytest

from vkprovider.lablet.story import tell
from vkprovider.platform.objects import Event, Metadata, Pod

POD = msgspec.convert(
    {
        "metadata": {"name": "p", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": []},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "StartingNodes",
                    "message": "2 of 3\ndevices",
                    "lastTransitionTime": "2026-01-01T00:00:05Z",
                },
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": None},
            ]
        },
    },
    Pod,
)


def event(uid: str, **fields: object) -> Event:
    return msgspec.convert({"metadata": {"name": uid, "uid": uid}, **fields}, Event)


def test_it_is_told_in_order() -> None:
    events = [
        event("e2", reason="Created", message="lab x", count=3, lastTimestamp="2026-01-01T00:00:09Z"),
        event("e1", reason="Scheduled", message="on vnode.w", eventTime="2026-01-01T00:00:01.250000Z"),
        event(
            "e3",
            type="Warning",
            reason="BackOff",
            message="m",
            series={"count": 7, "lastObservedTime": "2026-01-01T00:00:20.000000Z"},
        ),
    ]
    assert [line.text for line in tell(POD, events)] == [
        "2026-01-01T00:00:00Z Pod created",
        "2026-01-01T00:00:01Z Normal Scheduled: on vnode.w",
        "2026-01-01T00:00:05Z condition Ready is False (StartingNodes: 2 of 3 devices)",
        "2026-01-01T00:00:09Z Normal Created: lab x (3 times)",
        "2026-01-01T00:00:20Z Warning BackOff: m (7 times)",
    ]


def test_a_repetition_is_another_line_and_the_same_is_not() -> None:
    once = tell(POD, [event("e1", count=1, lastTimestamp="2026-01-01T00:00:09Z")])
    twice = tell(POD, [event("e1", count=2, lastTimestamp="2026-01-01T00:00:19Z")])
    both = {line.key for line in once} & {line.key for line in twice}
    assert both == {line.key for line in once if "e1" not in line.key}
    assert len({line.key for line in once}) == len(once)


def test_the_end_is_told() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 45}
    meta = msgspec.convert({**msgspec.to_builtins(POD.metadata), **deleted}, Metadata)
    pod = msgspec.structs.replace(POD, metadata=meta)
    last = event("e1", reason="Killing", message="m", lastTimestamp="2026-01-01T00:00:16Z")
    assert [line.text for line in tell(pod, [last])][-2:] == [
        "2026-01-01T00:00:15Z Pod to be deleted, with a grace period of 45 s",
        "2026-01-01T00:00:16Z Normal Killing: m",
    ]


def test_nothing_of_an_earlier_learner_is_told_after_the_return_to_the_pool() -> None:
    """Whoever may read the log of the Pod now may be the next learner."""
    at = "2026-01-01T00:00:{:02d}Z".format
    events = [
        event("e1", reason="SessionReady", message="alice can log in", lastTimestamp=at(1)),
        event("e2", reason="BackToPool", message="for the next learner", lastTimestamp=at(2)),
        event("e3", reason="SessionReady", message="bob can log in", lastTimestamp=at(3)),
        event("e4", reason="Graded", message="passed, score 9 of 10", lastTimestamp=at(5)),
        event("e5", reason="BackToPool", message="for the next learner", lastTimestamp=at(5), count=2),
        event("e6", reason="SessionReady", message="carol can log in", lastTimestamp=at(7)),
    ]
    said = [line.text.partition(" Normal ")[2] for line in tell(POD, events) if line.key[0] == "event"]
    assert said == ["BackToPool: for the next learner (2 times)", "SessionReady: carol can log in"]
    assert "Pod created" in tell(POD, events)[0].text


AT = "2026-01-01T00:00:{:02d}Z".format
POOL: dict[str, Any] = {"labels": {"vkprovider.io/pool": "evening"}}
LENT: dict[str, Any] = {"annotations": {"vkprovider.io/lent-by": "evening"}}
SINCE_7: dict[str, Any] = {"running": {"startedAt": AT(7)}}
LEARNERS = [
    event("e1", reason="Created", message="lab x", lastTimestamp=AT(1)),
    event("e2", reason="SessionReady", message="alice can log in", lastTimestamp=AT(3)),
    event("e3", reason="LdsRefused", message="alice is unknown", lastTimestamp=AT(4), type="Warning"),
    event("e4", reason="Graded", message="passed", lastTimestamp=AT(5)),
    event("e5", reason="Started", message="lab x", lastTimestamp=AT(6)),
    event("e6", reason="SessionReady", message="bob can log in", lastTimestamp=AT(8)),
]


def of_pool(*states: dict[str, Any], **meta: Any) -> Pod:
    fields: dict[str, Any] = msgspec.to_builtins(POD)
    fields["metadata"] |= meta
    fields["status"]["containerStatuses"] = [{"name": f"c{i}", "state": state} for i, state in enumerate(states)]
    return msgspec.convert(fields, Pod)


def said(pod: Pod, *more: Event) -> set[str]:
    return {line.key[1] for line in tell(pod, [*LEARNERS, *more]) if line.key[0] == "event"}


@pytest.mark.parametrize("meta", [POOL, LENT], ids=["pool", "lent"])
@pytest.mark.parametrize(
    ("states", "learners"),
    [
        ([SINCE_7], {"e6"}),
        ([SINCE_7, {"running": {"startedAt": AT(2)}}], {"e6"}),
        ([{"terminated": {"startedAt": AT(7), "finishedAt": AT(9)}}], {"e6"}),
        ([{"waiting": {"reason": "StartingNodes"}}], set()),
        ([{"running": {}}], set()),
        ([], set()),
    ],
    ids=["running", "several", "ended", "waiting", "unknown", "nothing"],
)
def test_nothing_of_an_earlier_learner_is_told_although_the_return_was_not_recorded(
    meta: dict[str, Any], states: list[dict[str, Any]], learners: set[str]
) -> None:
    """The API server keeps Events for an hour, and takes not every one."""
    assert said(of_pool(*states, **meta)) == {"e1", "e5", *learners}


def test_an_older_return_to_the_pool_is_not_taken_for_the_last_one() -> None:
    older = event("e0", reason="BackToPool", message="for the next learner", lastTimestamp=AT(2))
    assert said(of_pool(SINCE_7, **LENT), older) == {"e0", "e5", "e6"}


def test_a_lablet_of_no_pool_has_one_learner_and_all_is_told() -> None:
    assert said(of_pool(SINCE_7)) == {"e1", "e2", "e3", "e4", "e5", "e6"}
