"""When a source is read, and in whose name (R000-072, R000-075, R000-076)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec, parse_definition_spec
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.refresh import RefreshRequest
from vkprovider.platform.objects import CustomResource

AT = "2026-01-01T00:00:00Z"
SPEC = {"source": {"objectStore": {"key": "netlab.zip"}}}
MARK = refresh.fingerprint(parse_definition_spec(SPEC))


def spec(**fields: Any) -> LabletDefinitionSpec:
    return parse_definition_spec({**SPEC, **fields})


def definition(request: str = "", *, generation: int = 1, **status: Any) -> CustomResource:
    notes = {names.ANNOTATION_REFRESH: request} if request else {}
    meta = {"name": "netlab", "uid": "u", "generation": generation, "annotations": notes}
    return msgspec.convert({"metadata": meta, "spec": SPEC, "status": status}, CustomResource)


def served(request: str = "", **status: Any) -> dict[str, Any]:
    return {"refresh": request, "source": MARK, "observedGeneration": 1, **status}


@given(by=st.text(max_size=50), force=st.booleans())
def test_request_says_who_asked_and_how(by: str, force: bool) -> None:  # noqa: FBT001 (drawn)
    raw = refresh.write(by, AT, force=force)
    assert refresh.read(raw) == RefreshRequest(raw, by, force)
    assert raw.startswith('{"requestedAt":"2026-01-01T00:00:00Z","force":')


@given(st.text(max_size=60) | st.sampled_from(["now", "[]", "1", '{"requestedBy": 5}', "[" * 10_000, "null", "{}"]))
def test_any_text_is_a_request_in_nobodys_name(raw: str) -> None:
    assert refresh.read(raw) == RefreshRequest(raw)


@pytest.mark.parametrize(
    "raw", ['{"requestedBy": "jane", "force": "yes"}', '{"requestedBy": "jane", "force": 1}', '{"requestedBy": "jane"}']
)
def test_force_is_a_boolean(raw: str) -> None:
    assert refresh.read(raw) == RefreshRequest(raw, "jane")


def test_source_is_read_first_when_the_definition_is_made() -> None:
    assert refresh.is_due(definition(), spec())
    assert refresh.is_due(definition(observedGeneration=1, refresh="", source=""), spec()), "still on its way"
    assert not refresh.is_due(definition(**served()), spec())


def test_request_is_answered_once() -> None:
    assert refresh.is_due(definition("now", **served()), spec())
    assert not refresh.is_due(definition("now", **served("now")), spec())
    assert refresh.is_due(definition("again", **served("now")), spec())
    assert not refresh.is_due(definition("", **served("now")), spec()), "its removal asks for nothing"
    assert refresh.waiting(definition("now", **served())).raw == "now"
    assert refresh.waiting(definition("", **served("now"))) == RefreshRequest()
    assert refresh.waiting(definition("now", **served("now"))) == RefreshRequest()


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1"},
        {"source": {"objectStore": {"key": "other.zip"}}},
        {"source": {"objectStore": {"key": "netlab.zip", "bucket": "other"}}},
        {"source": {"inline": "lab: {}"}, "version": "1"},
    ],
)
def test_change_of_the_source_is_a_request(change: dict[str, Any]) -> None:
    assert refresh.is_due(definition(generation=2, **served()), spec(**change))


@pytest.mark.parametrize(
    "change", [{"keepVersions": 5}, {"resources": {"cpu": "4"}}, {"lds": {"enabled": False}}, {"environment": "prod"}]
)
def test_change_of_anything_else_is_none(change: dict[str, Any]) -> None:
    assert not refresh.is_due(definition(generation=2, **served()), spec(**change))


def test_form_is_part_of_the_source_where_it_names_the_package() -> None:
    named: dict[str, Any] = {"source": {"objectStore": {}}}
    marks = {refresh.fingerprint(spec(**named, formQualifiedName=form)) for form in ("a", "b")}
    assert len(marks) == 2
    assert refresh.fingerprint(spec(formQualifiedName="a")) == refresh.fingerprint(spec(formQualifiedName="b"))


def test_what_was_refused_is_read_again_with_the_next_change_only() -> None:
    said = served(lastRefresh={"result": "Refused"})
    assert not refresh.is_due(definition(**said), spec())
    assert refresh.is_due(definition(generation=2, **said), spec(resources={"cpu": "4"}))
