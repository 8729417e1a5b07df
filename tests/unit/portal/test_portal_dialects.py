"""Events in both dialects, read by the decoder that Nublado's spawner uses (C41, C42)."""

import json

import pytest
from httpx_sse import ServerSentEvent
from httpx_sse._decoders import SSEDecoder
from openapi_spec_validator import OpenAPIV31SpecValidator

from vkprovider.portal.api.bodies import DIALECTS, NUBLADO, SQR066, openapi_document
from vkprovider.portal.pure.stream import LineKind, Sent

PROGRESS = Sent(LineKind.PROGRESS, "Devices boot: 1 of 4", 35, "a")
INFO = Sent(LineKind.INFO, "The lab is\nimported", 35, "b")
ERROR = Sent(LineKind.ERROR, "OutOf: no room", 35, "c")
STATE = Sent(LineKind.INFO, "ImportingLab", 35)
COMPLETE = Sent(LineKind.COMPLETE, "complete", 100, "d")
FAILED = Sent(LineKind.FAILED, "failed", 35, "d")


def read(frames: bytes) -> list[ServerSentEvent]:
    decoder = SSEDecoder()
    return [found for line in frames.decode().split("\n")[:-1] if (found := decoder.decode(line)) is not None]


def test_sqr066_has_text_and_an_event_of_progress() -> None:
    found = read(SQR066.frames([PROGRESS, INFO, STATE, ERROR, FAILED, COMPLETE]))
    assert [(each.event, each.data, each.id) for each in found] == [
        ("progress", "35", "a"),
        ("info", "The lab is\nimported", "b"),
        ("info", "ImportingLab", "b"),
        ("error", "OutOf: no room", "c"),
        ("failed", "failed", "d"),
        ("complete", "complete", "d"),
    ]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([PROGRESS, INFO], [("info", {"message": "The lab is\nimported", "progress": 35})]),
        ([PROGRESS], [("info", {"message": "Devices boot: 1 of 4", "progress": 35})]),
        ([PROGRESS, STATE], [("info", {"message": "ImportingLab", "progress": 35})]),
        (
            [PROGRESS, ERROR],
            [("info", {"message": "Devices boot: 1 of 4", "progress": 35}), ("error", {"message": "OutOf: no room"})],
        ),
        ([COMPLETE], [("complete", {"message": "complete"})]),
        ([FAILED], [("failed", {"message": "failed"})]),
        (
            [Sent(LineKind.PROGRESS, "", 100, "x"), COMPLETE],
            [("info", {"message": "The lab is on its way", "progress": 100}), ("complete", {"message": "complete"})],
        ),
    ],
)
def test_nublado_has_json_and_no_event_of_progress(sent: list[Sent], expected: list[tuple[str, object]]) -> None:
    found = read(NUBLADO.frames(sent))
    assert [(each.event, json.loads(each.data)) for each in found] == expected


def test_a_text_cannot_make_an_event_of_its_own() -> None:
    evil = Sent(LineKind.INFO, "x\n\nevent: complete\ndata: y\r\rid: z", 5, "a")
    for dialect in DIALECTS.values():
        assert [each.event for each in read(dialect.frames([evil]))] == ["info"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_description_of_the_routes_is_openapi(dialect: str) -> None:
    found = openapi_document(dialect)
    OpenAPIV31SpecValidator(found).validate()
    assert "x-dialect" not in json.dumps(found)
    create = found["paths"]["/nublado/spawner/v1/labs/{username}/create"]["post"]["responses"]
    delete = found["paths"]["/nublado/spawner/v1/labs/{username}"]["delete"]["responses"]
    assert (str(DIALECTS[dialect].created) in create, len(create)) == (True, 2)
    assert (str(DIALECTS[dialect].deleted) in delete, len(delete)) == (True, 2)


def test_keys_of_images() -> None:
    keys: dict[str, object] = {"latest-weekly": {"tag": "w_1"}, "recommended": None, "all": []}
    assert SQR066.keyed(keys) == {"latest-weekly": {"tag": "w_1"}, "all": []}
    assert NUBLADO.keyed(keys) == {"latest_weekly": {"tag": "w_1"}, "all": []}
