"""CloudEvents as the specification's own client sends them, and as nobody should (R000-024, R000-025)."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent as Sent
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from vkprovider.labs.http import cloudevents
from vkprovider.labs.http.cloudevents import CloudEvent
from vkprovider.labs.http.refusals import EventInvalid, MediaTypeUnsupported
from vkprovider.labs.pure.session.inbox import SessionEvent

AT = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
NOW = int(AT.timestamp()) + 5
GOOD = {"specversion": "1.0", "id": "e-1", "source": "https://lds", "type": "session.started", "subject": "s-1"}


def sent(data: Any = None, **attributes: Any) -> Sent:
    return Sent({"id": "e-1", "source": "https://lds", "type": "session.started", "time": AT, **attributes}, data)


def read(message: http.HTTPMessage) -> CloudEvent:
    headers = CIMultiDict(message.headers)
    [event] = cloudevents.read(cloudevents.mode_of(headers), headers, message.body)
    assert isinstance(event, CloudEvent)
    return event


def structured(body: object) -> list[CloudEvent | EventInvalid]:
    return cloudevents.read("structured", {}, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize("write", [http.to_structured_event, http.to_binary_event])
@pytest.mark.parametrize(
    ("attributes", "data"),
    [
        ({"datacontenttype": "application/json"}, {"lds_session_id": "s-1"}),
        ({"datacontenttype": "application/vnd.lds+json; charset=utf-8"}, {"lds_session_id": "s-1", "subject": "x"}),
        ({"ldssessionid": "s-1"}, None),
        ({"subject": "s-1"}, None),
        ({"subject": "s-1", "datacontenttype": "text/plain"}, "whatever"),
        ({"subject": "s-1", "dataschema": "https://x", "traceparent": "00-1-2-00"}, b"\x00\x01"),
        ({"source": "/lds/ü %", "subject": "s-1"}, None),
    ],
)
def test_events_of_the_specifications_client(write: Any, attributes: dict[str, Any], data: Any) -> None:
    event = read(write(sent(data, **attributes)))
    said = cloudevents.session_event(event, NOW)
    source = attributes.get("source", "https://lds")
    assert said == SessionEvent("s-1", "started", int(AT.timestamp()), source, "e-1")


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("session.ended", "ended"),
        ("com.cisco.lds.session.started", "started"),
        ("com.cisco.lds.session.ended.v1", "ended"),
        ("session.paused", None),
        ("subsession.started", None),
        ("session.started.now", None),
    ],
)
def test_type(type_: str, kind: str | None) -> None:
    said = cloudevents.session_event(read(http.to_binary_event(sent(subject="s", type=type_))), NOW)
    assert (said.kind if said else None) == kind


def test_data_in_base64_is_read() -> None:
    data = base64.b64encode(b'{"lds_session_id": "s-9"}').decode()
    [event] = structured({**GOOD, "datacontenttype": "application/json", "data_base64": data})
    assert isinstance(event, CloudEvent)
    said = cloudevents.session_event(event, NOW)
    assert said is not None
    assert said.session == "s-9"


@pytest.mark.parametrize(
    ("time", "at"), [("2026-11-21T10:30:00Z", NOW - 5), ("2026-11-21T12:30:00+02:00", NOW - 5), (None, NOW),
                     ("2099-01-01T00:00:00Z", NOW), ("1931-01-01T00:00:00Z", 1)],
)  # fmt: skip
def test_time_is_that_of_the_event_but_not_of_the_future(time: str | None, at: int) -> None:
    [event] = structured({**GOOD, **({"time": time} if time else {})})
    assert isinstance(event, CloudEvent)
    said = cloudevents.session_event(event, NOW)
    assert said is not None
    assert said.at == at


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"id": ""}, "id"),
        ({"id": None}, "id"),
        ({"source": 7}, "source"),
        ({"type": "x" * 1025}, "type"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-11-21T10:30:00"}, "time"),
        ({"data": 1, "data_base64": "AA=="}, "both"),
        ({"data_base64": "?"}, "data_base64"),
        ({"data_base64": base64.b64encode(b"{").decode(), "datacontenttype": "text/json"}, "not the JSON"),
    ],
)
def test_wrong_attribute_is_named(change: dict[str, Any], what: str) -> None:
    with pytest.raises(EventInvalid, match=what) as caught:
        structured({**GOOD, **change})
    assert caught.value.word == "EventInvalid"


@pytest.mark.parametrize("missing", ["specversion", "id", "source", "type"])
def test_missing_attribute_is_named(missing: str) -> None:
    body = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(EventInvalid, match=missing):
        structured(body)
    headers = CIMultiDict({f"ce-{key}": value for key, value in body.items()})
    with pytest.raises(EventInvalid, match=missing):
        cloudevents.read("binary", headers, b"")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"null", b"[" * 100_000, b'{"data":' * 100_000])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(EventInvalid) as caught:
        structured(body)
    assert caught.value.word == "EventInvalid"


@given(st.binary(max_size=200))
def test_nothing_else_than_a_refusal_comes_of_noise(body: bytes) -> None:
    headers = CIMultiDict({f"ce-{key}": value for key, value in GOOD.items()})
    for mode in ("structured", "batch", "binary"):
        try:
            cloudevents.read(mode, headers, body)
        except EventInvalid as error:
            assert error.word == "EventInvalid"  # noqa: PT017 (it need not come)


@pytest.mark.parametrize(
    ("headers", "mode"),
    [
        ({"Content-Type": "application/cloudevents+json; charset=utf-8"}, "structured"),
        ({"content-type": "Application/CloudEvents-Batch+JSON"}, "batch"),
        ({"Content-Type": "application/json", "CE-SpecVersion": "1.0"}, "binary"),
        ({"ce-specversion": "1.0"}, "binary"),
        ({"Content-Type": "application/cloudevents+json", "ce-specversion": "1.0"}, "structured"),
        ({"Content-Type": "application/cloudevents+avro"}, None),
        ({"Content-Type": "application/cloudevents"}, None),
        ({"Content-Type": "application/json"}, None),
        ({}, None),
    ],
)
def test_content_type_tells_the_mode(headers: dict[str, str], mode: str | None) -> None:
    if mode is not None:
        assert cloudevents.mode_of(CIMultiDict(headers)) == mode
        return
    with pytest.raises(MediaTypeUnsupported):
        cloudevents.mode_of(CIMultiDict(headers))


def test_one_wrong_event_does_not_spoil_a_batch() -> None:
    body = json.dumps([GOOD, {"id": "e-2"}, {**GOOD, "id": "e-3"}]).encode()
    first, second, third = cloudevents.read("batch", {}, body)
    assert isinstance(first, CloudEvent)
    assert isinstance(second, EventInvalid)
    assert isinstance(third, CloudEvent)
    with pytest.raises(EventInvalid, match="1001 events"):
        cloudevents.read("batch", {}, json.dumps([GOOD] * 1001).encode())


@pytest.mark.parametrize("session", ["", "a b", "a\n", "x" * 257, 7, None])
def test_event_without_a_session_says_where_to_put_it(session: object) -> None:
    [event] = structured({**GOOD, "subject": None, "data": {"lds_session_id": session}})
    assert isinstance(event, CloudEvent)
    with pytest.raises(EventInvalid, match="lds_session_id"):
        cloudevents.session_event(event, NOW)


def test_binary_data_is_the_body_alone() -> None:
    headers = CIMultiDict({f"ce-{key}": value for key, value in GOOD.items()} | {"ce-data": "{}"})
    with pytest.raises(EventInvalid, match="ce-data"):
        cloudevents.read("binary", headers, b"")
