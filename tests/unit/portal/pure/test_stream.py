"""The stream of an operation of a user lab: its lines, the same on every replica, and what a listener still lacks."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkprovider.platform.objects import Event, Pod
from vkprovider.platform.times import iso
from vkprovider.portal.pure import stream
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.record import CREATE as CREATES
from vkprovider.portal.pure.record import Ending, LabOutcome, LabRecord, LabRequest, Saved
from vkprovider.portal.pure.stream import LabLine, LabOperation, LabStory, LineKind, Position, Sent, news, parse
from vkprovider.portal.pure.stream import tell_of as tell

T0 = 1_800_000_000
CREATE = LabOperation("c1", deletes=False, at=T0 + 0.5, title="Lab asked for: ospf:2.0, small")
DELETE = LabOperation("d1", deletes=True, at=T0 + 500.0, since=T0 + 500.0, title="Deletion asked for")
MISSING = "waiting for r1 (since 08:00 UTC), 45 min at most; the last such lab took 25 min"
IMPORTED, CONVERGED = "vkprovider.io/LabImported", "vkprovider.io/LabConverged"


def at(second: float) -> str:
    return iso(T0 + int(second))


def pod(
    *true: tuple[str, int],
    devices: str = "",
    waiting: str = "",
    message: str = "",
    meta: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    notes = {"vkprovider.io/devices": devices} if devices else {}
    body = {
        "metadata": {"name": "nb-alice", "uid": "p1", "creationTimestamp": at(2), "annotations": notes, **(meta or {})},
        "spec": {"containers": []},
        "status": {
            "conditions": [
                {"type": type_, "status": "True", "lastTransitionTime": at(when), "reason": f"r{when}"}
                for type_, when in true
            ],
            "containerStatuses": (
                [{"name": "lab", "state": {"waiting": {"reason": waiting, "message": message}}}] if waiting else []
            ),
            **more,
        },
    }
    return msgspec.convert(body, Pod)


def event(uid: str, second: int, reason: str = "R", message: str = "", count: int = 1, type_: str = "Normal") -> Event:
    body = {"metadata": {"name": uid, "uid": uid}, "reason": reason, "message": message or uid}
    return msgspec.convert({**body, "type": type_, "count": count, "lastTimestamp": at(second)}, Event)


def texts(told: LabStory) -> list[str]:
    return [f"{line.kind}: {line.text}" for line in told.lines]


def lines(kept: tuple[Saved, ...]) -> tuple[LabLine, ...]:
    return tuple(LabLine(each.at, LineKind(each.kind), each.source, each.order, each.text) for each in kept)


def test_a_creation_is_told_by_conditions_and_events() -> None:
    events = [
        event("e1", 3, "Scheduled", "to vnode.w1"),  # its condition says so already
        event("e2", 4, "Started", "lab asked to start"),
        event("e3", 6, "FailedScheduling", "no room", count=3, type_="Warning"),
    ]
    told = tell(CREATE, pod(("PodScheduled", 3), (IMPORTED, 5), ("Initialized", 5)), events)
    assert texts(told) == [
        "info: Lab asked for: ospf:2.0, small",
        "info: The lab's objects are created",
        "info: A worker has room for the lab",
        "info: Started: lab asked to start",
        "info: The lab is imported",
        "error: FailedScheduling: no room (3 times)",
    ]
    assert not told.ended


@pytest.mark.parametrize(
    ("shown", "progress"),
    [
        (None, 1),
        (pod(), 5),
        (pod(meta={"annotations": {"vkprovider.io/content": "1@sha256:a"}}), 10),
        (pod((IMPORTED, 5)), 20),
        (pod((IMPORTED, 5), devices="1/4"), 35),
        (pod((IMPORTED, 5), devices="4/4"), 80),
        (pod((IMPORTED, 5), devices="9/4"), 80),
        (pod((IMPORTED, 5), devices="0/0"), 20),
        (pod((IMPORTED, 5), devices="x"), 20),
        (pod((IMPORTED, 5), (CONVERGED, 9), devices="4/4"), 80),
        (pod((CONVERGED, 9), ("vkprovider.io/SessionReady", 9)), 90),
    ],
)
def test_progress_of_a_creation(shown: Pod | None, progress: int) -> None:
    assert tell(CREATE, shown).progress == progress


def test_progress_of_a_deletion_and_its_end() -> None:
    told = tell(DELETE, pod())
    assert (told.progress, told.ended) == (25, False)
    told = tell(DELETE, None)
    assert (told.progress, told.state) == (62, "The lab is gone, and its namespace is being deleted")
    over = stream.gone(told)
    assert (over.progress, texts(over)[-1], over.ended) == (100, "complete: complete", True)


def test_a_deletion_tells_nothing_of_the_creation_before_it() -> None:
    meta = {"deletionTimestamp": at(530), "deletionGracePeriodSeconds": 30}
    told = tell(DELETE, pod((IMPORTED, 5), meta=meta), [event("e1", 4, "Started"), event("e2", 501, "Killing", "m")])
    assert texts(told) == [
        "info: Deletion asked for",
        "info: The lab is being stopped and removed",
        "info: Killing: m",
    ]


def test_a_lab_that_was_kept_warm_tells_nothing_of_before_it_was_taken() -> None:
    taken = msgspec.structs.replace(CREATE, at=T0 + 300.5, since=T0 + 300.5)
    told = tell(taken, pod(("PodScheduled", 3), (IMPORTED, 5)), [event("e1", 4, "Started"), event("e2", 300, "S", "m")])
    assert texts(told) == ["info: S: m", "info: Lab asked for: ospf:2.0, small"]


@pytest.mark.parametrize(
    ("shown", "ahead", "state"),
    [
        (None, 3, "The lab waits to be started: place 3 in the queue"),
        (None, 0, ""),
        (pod(), 3, ""),
        (pod(waiting="ImportingLab"), 0, "ImportingLab"),
        (pod((IMPORTED, 1), devices="1/4", waiting="StartingNodes"), 0, "Devices boot: 1 of 4"),
        (
            pod((IMPORTED, 1), devices="1/4", waiting="StartingNodes", message=f"1 of 4 devices booted, {MISSING}"),
            0,
            f"Devices boot: 1 of 4, {MISSING}",
        ),
        (
            pod((IMPORTED, 1), devices="0/1", waiting="LabQueued", message="CML has queued r1 (since 08:00 UTC)"),
            0,
            "Devices boot: 0 of 1; CML has queued r1 (since 08:00 UTC)",
        ),
        (pod((IMPORTED, 1), devices="4/4", waiting="ProvisioningSession"), 0, "ProvisioningSession"),
    ],
)
def test_what_only_a_waiting_reason_tells_is_state_without_an_id(shown: Pod | None, ahead: int, state: str) -> None:
    told = tell(CREATE, shown, ahead=ahead)
    assert told.state == state
    position, sent = news(Position(), told)
    assert [(each.text, each.id) for each in sent if each.text == state and each.kind is LineKind.INFO] == (
        [(state, "")] if state else []
    )
    assert news(position, told)[1] == []
    assert [each.text for each in news(parse(str(position)), told)[1]] == ([state] if state else [])


def test_an_unschedulable_pod_says_why() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert tell(CREATE, pod(conditions=[condition])).state == "The lab waits for a worker that can take it: 0/3 nodes"


def test_lines_of_an_operation_that_ended_outlive_the_events() -> None:
    before = tell(CREATE, pod((IMPORTED, 5)), [event("e1", 4, "Started", "m")])
    kept = stream.saved(before)
    over = msgspec.structs.replace(CREATE, phase="failed", ended_at=T0 + 60.0, fault="No worker.", saved=lines(kept))
    late = tell(over, None)
    assert texts(late) == [*texts(before), "error: No worker.", "failed: failed"]
    assert [line.source for line in late.lines[:-2]] == [line.source for line in before.lines]
    again = tell(over, pod((IMPORTED, 5)), [event("e1", 4, "Started", "m"), event("e9", 90, "Graded", "m")])
    assert texts(again) == texts(late)
    position, sent = news(Position(), before)
    assert [each.kind for each in news(parse(sent[-1].id), late)[1]] == [LineKind.ERROR, LineKind.FAILED]
    assert news(news(position, late)[0], late)[1] == []


def test_a_line_has_the_progress_of_its_time_whenever_it_is_told() -> None:
    conditions = [("PodScheduled", 3), (IMPORTED, 5), (CONVERGED, 9)]
    position, heard, late = Position(), list[tuple[str, int]](), list[tuple[str, int]]()
    for number in range(len(conditions) + 1):
        told = tell(CREATE, pod(*conditions[:number]))
        position, sent = news(position, told)
        heard += [(each.text, each.progress) for each in sent if each.kind is LineKind.INFO]
        late = [(each.text, each.progress) for each in news(Position(), told)[1] if each.kind is LineKind.INFO]
    assert late == heard
    assert [progress for _, progress in heard] == [1, 5, 5, 20, 80]


def test_the_end_comes_last_and_completes_the_progress() -> None:
    over = msgspec.structs.replace(CREATE, phase="complete", ended_at=T0 + 9.0)
    sent = news(Position(), tell(over, pod((IMPORTED, 5), (CONVERGED, 9))))[1]
    assert sent[-1].kind is LineKind.COMPLETE
    assert sent[-1].progress == 100


def test_a_creation_that_a_deletion_cuts_short_fails() -> None:
    told = tell(CREATE, pod())
    for over, why in (
        (stream.gone(told), "The lab was deleted."),
        (stream.replaced(told), "Another operation has replaced this one."),
    ):
        assert texts(over)[-2:] == [f"error: {why}", "failed: failed"]
    assert stream.gone(stream.gone(told)) == stream.gone(told)


def test_an_endless_story_is_bounded() -> None:
    events = [event(f"e{i}", 3 + i, "R", "x" * 5000) for i in range(1000)]
    told = tell(CREATE, pod(), events)
    assert len(told.lines) == stream.LINES_MAX
    position = news(Position(), told)[0]
    assert len(str(position)) < 8 * 1024
    assert news(parse(str(position)), told)[1] == []
    kept = stream.saved(told)
    assert len(kept) == stream.SAVED_MAX
    assert len(msgspec.json.encode(kept)) < 16 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "~~",
        "aaaaaaaa~5~x",
        "aaaaaaaa~5~bbbbbbbb",
        "aaaaaaaa~5~bbbbbbbb.9,",
        "\uff41aaaaaaa~5~",
        "a" * 20000,
        "\0",
    ],
)
def test_a_foreign_last_event_id_is_the_beginning(text: str) -> None:
    assert parse(text) == Position()


def test_the_position_of_another_operation_is_the_beginning() -> None:
    position = news(Position(), tell(CREATE, pod()))[0]
    assert texts(tell(DELETE, pod())) == [
        f"{each.kind}: {each.text}"
        for each in news(parse(str(position)), tell(DELETE, pod()))[1]
        if each.kind is not LineKind.PROGRESS
    ]


REQUEST = LabRequest(id="c1", at=T0, definition="ospf:2.0", options={"size": "small"}, env=("TOKEN",), by="alice")
RECORD = LabRecord("nublado-alice", "n1", "7", T0 - 1.0, user="alice", key="alice", request=REQUEST)


def of(record: LabRecord, shown: Pod | None = None, *events: Event, ahead: int = 0) -> LabStory:
    return stream.tell(UserLab(record, shown, ahead=ahead), events)


def test_the_current_operation_is_read_from_the_record() -> None:
    labelled = {"labels": {"vkprovider.io/request": "c1"}}
    assert texts(of(RECORD, pod(meta=labelled))) == [
        "info: Lab asked for: ospf:2.0",
        "info: The lab's objects are created",
    ]
    assert of(RECORD, pod()).progress == 1, "a Pod of another request is in the way"
    assert of(RECORD, ahead=2).state == "The lab waits to be started: place 2 in the queue"
    deleted = of(RECORD._replace(ending=Ending(id="d1", at=T0 + 500)), pod(meta=labelled))
    assert (texts(deleted), deleted.progress) == (["info: The lab is to be deleted"], 25)
    kept = stream.saved(of(RECORD, pod((IMPORTED, 5), meta=labelled)))
    over = LabOutcome(id="c1", kind=CREATES, phase="failed", at=T0 + 60, text="No worker.", lines=kept)
    assert texts(of(RECORD._replace(last_outcome=over)))[-3:] == [
        "info: The lab is imported",
        "error: No worker.",
        "failed: failed",
    ]
    assert not of(RECORD._replace(last_outcome=over, ending=Ending(id="d1", at=T0 + 500))).ended
    assert not of(RECORD._replace(last_outcome=over, request=msgspec.structs.replace(REQUEST, id="c2"))).ended


def test_a_lab_that_was_kept_warm_is_told_from_its_request_on() -> None:
    warm = RECORD._replace(created_at=T0 - 900.0)
    shown = pod(("PodScheduled", -800), meta={"labels": {"vkprovider.io/request": "c1"}, "creationTimestamp": at(-850)})
    assert texts(of(warm, shown)) == ["info: Lab asked for: ospf:2.0"]


def test_a_record_that_cannot_be_read_tells_so_and_ends() -> None:
    told = of(RECORD._replace(request=None, damaged=("vkprovider.io/request",)))
    assert told.ended
    assert "vkprovider.io/request" in texts(told)[1]
    assert texts(told)[-1] == "failed: failed"


# ------------------------------------------------------------------ any history, any replica, any loss of connection


class _Change(msgspec.Struct, frozen=True):
    """An Event, its repetition, a condition, or a count of devices; at any time, even earlier."""

    what: str
    which: int
    second: int


class _World(msgspec.Struct, frozen=True):
    operation: LabOperation = CREATE
    events: dict[str, Event] = {}
    true: dict[str, int] = {}
    devices: str = ""

    def told(self) -> LabStory:
        return tell(self.operation, pod(*self.true.items(), devices=self.devices), self.events.values())

    def after(self, change: _Change) -> "_World":
        if change.what == "event":
            uid = f"e{change.which}"
            count = self.events[uid].count + 1 if uid in self.events else 1
            made = event(uid, change.second, message="m", count=count)
            return msgspec.structs.replace(self, events={**self.events, uid: made})
        if change.what == "condition":
            type_ = ("PodScheduled", IMPORTED, CONVERGED)[change.which % 3]
            return msgspec.structs.replace(self, true={type_: change.second, **self.true})
        return msgspec.structs.replace(self, devices=f"{change.which}/5")

    def over(self, phase: str) -> "_World":
        kept = stream.saved(self.told())
        ended = msgspec.structs.replace(self.operation, phase=phase, ended_at=T0 + 100.0, saved=lines(kept))
        return msgspec.structs.replace(self, operation=ended)


CHANGES = st.builds(
    _Change, st.sampled_from(["event", "event", "condition", "devices"]), st.integers(0, 5), st.integers(3, 90)
)


@settings(max_examples=300, deadline=None)
@given(st.lists(CHANGES, max_size=25), st.sampled_from(["complete", "failed"]), st.data())
def test_nothing_is_lost_or_repeated_by_whichever_replica_and_wherever_the_connection_is_cut(
    changes: list[_Change], phase: str, data: st.DataObject
) -> None:
    history = [_World()]
    for change in changes:
        history.append(history[-1].after(change))
    history.append(history[-1].over(phase))
    history.append(msgspec.structs.replace(history[-1], events={}))  # they expire
    views = [0, 0]
    got = list[Sent]()
    kept = ""
    while True:
        replica = data.draw(st.integers(0, 1), label="replica")
        position = parse(kept)
        while True:
            behind = data.draw(st.integers(0, len(history) - 1 - views[replica]), label="behind")
            views[replica] = len(history) - 1 - behind
            told = history[views[replica]].told()
            assert told == history[views[replica]].told()
            position, sent = news(position, told)
            arrived = sent[: len(sent) - data.draw(st.integers(0, len(sent)), label="lost")]
            got += arrived
            kept = next((each.id for each in reversed(arrived) if each.id), kept)
            if len(arrived) < len(sent) or told.ended or data.draw(st.booleans(), label="cut"):
                break
        if told.ended and len(arrived) == len(sent):
            break
        if len(got) > 500:
            views = [len(history) - 1] * 2
    lines = [each for each in got if each.id and each.kind is not LineKind.PROGRESS]
    assert len({each.id for each in lines}) == len(lines)
    counted = dict[str, int]()
    for each in lines:
        before, after = counted, parse(each.id).seen
        (source,) = [key for key in after if after[key] != before.get(key, 0)]
        assert after[source] > before.get(source, 0), "a line is sent again, or an older one after it"
        counted = after
    last = history[-2].told()
    assert counted == {line.source: line.order for line in last.lines}, "a line is lost"
    assert [each.kind for each in lines[-1:]] == [LineKind(phase)]
    assert [each.kind for each in lines].count(LineKind(phase)) == 1
    for kinds in ({LineKind.PROGRESS}, set(LineKind) - {LineKind.PROGRESS}):
        progress = [each.progress for each in got if each.kind in kinds]
        assert progress == sorted(progress), "progress fell"


@settings(max_examples=100, deadline=None)
@given(st.lists(CHANGES, max_size=15), st.permutations(range(6)))
def test_lines_do_not_depend_on_the_order_in_which_a_replica_learned_of_them(
    changes: list[_Change], order: list[int]
) -> None:
    world = _World()
    for change in changes:
        world = world.after(change)
    shuffled = {f"e{i}": world.events[f"e{i}"] for i in order if f"e{i}" in world.events}
    assert msgspec.structs.replace(world, events=shuffled).told() == world.told()
