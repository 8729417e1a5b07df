"""Events in both dialects, read by the decoder that Nublado's spawner uses (C41, C42)."""

import json
from typing import Any

import pytest
from httpx_sse import ServerSentEvent
from httpx_sse._decoders import SSEDecoder
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from vkprovider.portal.api.bodies import DIALECTS, NUBLADO, SQR066, openapi_document
from vkprovider.portal.api.routes import seconds_of
from vkprovider.portal.pure.options import LabWish, parse
from vkprovider.portal.pure.stream import LineKind, Sent
from vkprovider.portal.service.requests import Rejected

PROGRESS = Sent(LineKind.PROGRESS, "Devices boot: 1 of 4", 35, "a")
INFO = Sent(LineKind.INFO, "The lab is\nimported", 20, "b")
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
        ([PROGRESS, INFO], [("info", {"message": "The lab is\nimported", "progress": 15})]),
        ([PROGRESS], [("info", {"message": "Devices boot: 1 of 4", "progress": 27})]),
        ([PROGRESS, STATE], [("info", {"message": "ImportingLab", "progress": 27})]),
        (
            [PROGRESS, ERROR],
            [("info", {"message": "Devices boot: 1 of 4", "progress": 27}), ("error", {"message": "OutOf: no room"})],
        ),
        ([COMPLETE], [("complete", {"message": "complete"})]),
        ([FAILED], [("failed", {"message": "failed"})]),
        (
            [Sent(LineKind.PROGRESS, "", 100, "x"), COMPLETE],
            [("complete", {"message": "complete"})],
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


IMAGE: dict[str, Any] = {"reference": "netlab:1.0", "tag": "1.0", "name": "netlab 1.0", "digest": None, "aliases": []}


@pytest.mark.parametrize("known", [True, False, None])
def test_what_is_not_known_of_an_image_has_no_third_value_in_nublado(known: bool | None) -> None:  # noqa: FBT001 (a table)
    found = {"recommended": {**IMAGE, "prepulled": known}, "latest-daily": None, "all": [{**IMAGE, "prepulled": known}]}
    assert SQR066.images(found)["all"][0]["prepulled"] is known
    shown = NUBLADO.images(found)
    assert [shown["recommended"]["prepulled"], shown["all"][0]["prepulled"]] == [known is True] * 2
    nodes = [{"name": "a", "eligible": True, "cached": ["netlab:1.0"] if known else None}]
    asked = {"config": {"recommended": "recommended"}, "images": {}, "nodes": nodes}
    assert SQR066.prepulls(asked) == asked
    told = NUBLADO.prepulls(asked)
    assert told["nodes"][0]["cached"] == (["netlab:1.0"] if known else [])
    assert told["config"] == {
        "recommended": "recommended",
        "source": {"type": "docker", "registry": "vkprovider.io", "repository": "labletdefinitions"},
    }


WANTED = {
    name: Draft202012Validator({**openapi_document(name), "$ref": "#/components/schemas/Wanted"}) for name in DIALECTS
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"image_list": "netlab:1.0"},
        {"image_list": ["netlab:1.0"], "size": [""], "enable_debug": ["true"]},
        {"image_list": []},
        {"image_list": "netlab"},
        {"image_list": ":1.0"},
        {"image_list": "netlab:"},
        {"image_list": "a:b:c"},
        {"image_list": "use_image_from_dropdown"},
        {"image_list": ["use_image_from_dropdown"], "image_dropdown": ["netlab:1.0"]},
        {"image_list": "use_image_from_dropdown", "image_tag": "1.0"},
        {"image_list": "netlab:1.0", "image_dropdown": "netlab"},
        {"image_dropdown": "netlab:1.0"},
        {"image_list": "a b"},
        {"image_tag": "1.0", "size": "x" * 64},
        {"image_type": "recommended", "duration": 1800, "class": "friday"},
        {"image_class": "latest-daily", "reset_user_env": False},
        {"image_type": "newest"},
        {"image_tag": "1.0", "colour": "red"},
        {"image_tag": "1.0", "duration": -1},
        {"image_tag": "1.0", "enable_debug": "maybe"},
        {"image_tag": "1.0", "class": "-a"},
        {"image_type": "recommended", "image_class": "recommended"},
        {"image_list": "netlab:1.0", "image_tag": "1.0"},
        {"image_list": ["netlab:1.0"], "image_class": "recommended"},
        {"image_dropdown": "netlab:1.0", "image_type": "recommended"},
        {"image_tag": "1.0", "image_type": "recommended"},
        {"image_list": "use_image_from_dropdown", "image_dropdown": "netlab:1.0", "image_tag": "1.0"},
        {"image_list": "use_image_from_dropdown", "image_type": "recommended"},
        {"image_tag": "1.0", "duration": 1800.0},
    ],
)
@pytest.mark.parametrize("env", [{}, {"A": "b"}, {"1": "b"}, {"token": "b"}])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_description_of_a_request_agrees_with_its_parser(
    options: dict[str, Any], env: dict[str, str], dialect: str
) -> None:
    body = {"options": options, "env": env}
    taken = parse(body, one_image=DIALECTS[dialect].one_image)
    assert WANTED[dialect].is_valid(body) == isinstance(taken, LabWish)


def test_a_request_has_options_and_env_and_nothing_else() -> None:
    body = {"options": {"image_tag": "1.0"}, "image": "netlab"}
    assert (WANTED["sqr066"].is_valid(body), isinstance(parse(body), LabWish)) == (False, False)


LONGER = Draft202012Validator({**openapi_document("sqr066", 3600), "$ref": "#/components/schemas/Extension"})


@pytest.mark.parametrize("seconds", [None, 1, 3600, 1800.0, 0, -1, 3601, 2**61, 1.5, "1", True, [1]])
def test_the_description_of_a_longer_time_agrees_with_what_is_taken(seconds: object) -> None:
    try:
        asked_s = seconds_of({"seconds": seconds})
    except Rejected:
        taken = False
    else:
        taken = asked_s is None or asked_s <= 3600
    assert LONGER.is_valid({"seconds": seconds}) == taken
