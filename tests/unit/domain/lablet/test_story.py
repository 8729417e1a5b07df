"""The story of a lablet: Events and conditions in the order of their times, each said once."""

import msgspec

from vkprovider.api.objects import Event, Metadata, Pod
from vkprovider.domain.lablet.story import tell

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
