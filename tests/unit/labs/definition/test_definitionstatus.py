"""What a LabletDefinition's status says of its content and of the last refresh."""

import dataclasses
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import UNSET

from tests.support.topologies import topology
from vkprovider.lablet import names
from vkprovider.lablet.models.status import definition_status, stored
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition import status as definitionstatus
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.refresh import RefreshOutcome
from vkprovider.labs.pure.definition.status import SourceRead
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.reasons import reason_of

TOPOLOGY = parse(topology({"R1": "iosv", "h0": "alpine"}, tags={"R1": ["serial:5065"]}))
AT = "2026-01-01T00:00:01Z"
ASKED = refresh.write("jane", "2026-01-01T00:00:00Z", force=False)
STORED = RefreshOutcome("Stored", DefinitionReason.CONTENT_STORED, "version 1.1 of 2 devices is ready", "1.1", 2)
REFUSED = RefreshOutcome("Refused", DefinitionReason.PACKAGE_INVALID, "it is no zip")
NOW = 1767225600


def content(version: str, sequence: int, need: Resources, **fields: Any) -> Content:
    return Content("netlab", version, f"digest-{sequence}", sequence, TOPOLOGY, need, "name", **fields)


KEPT = (
    content("1.1", 2, Resources(2000, 2**30, 2, 1), request=ASKED, stored_at=AT, files={"b": "", "a": ""}),
    content("1.0", 1, Resources(3000, 2**29, 1, 0)),
)


def render(*known: Any, **further: Any) -> dict[str, Any]:
    return stored(definitionstatus.render(*known, **further))


def definition(request: str = "", status: dict[str, Any] | None = None) -> CustomResource:
    meta = {"name": "netlab", "uid": "u", "generation": 3, "annotations": {names.ANNOTATION_REFRESH: request}}
    return msgspec.convert({"metadata": meta, "spec": {}, "status": status or {}}, CustomResource)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def test_versions_devices_ports_and_price() -> None:
    """R000-068, R000-069."""
    told = render(definition(), KEPT, None, SourceRead("mark"), NOW)
    kept = "versions kept: 1.1 (digest digest-2), 1.0 (digest digest-1)"
    assert conditions(told) == {"Ready": ("True", "ContentReady", kept)}
    assert told["version"] == "1.1"
    first, second = told["versions"]
    assert first["files"] == ["a", "b"]
    assert (first["refreshedBy"], first["refreshedAt"]) == ("jane", AT)
    assert second.keys() == {"version", "digest", "resources"}
    assert [device["label"] for device in told["devices"]] == ["R1", "h0"]
    assert [(device["nodeDefinition"], device["visible"]) for device in told["devices"]] == [
        (device.definition, device.visible) for device in KEPT[0].topology.devices
    ]
    assert told["portTemplate"] == [
        {
            "name": "R1_serial",
            "device": "R1",
            "container": "r1",
            "protocol": "tcp",
            "tag": KEPT[0].topology.template.slots[0].tag.text,
            "opened": True,
        }
    ]
    assert told["resources"] == Resources(3000, 2**30, 2, 1).quantities()
    assert "lastRefresh" not in told


def drawn(places: list[tuple[Any, Any]], ends: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the status of a topology of routers r0, r1 … at these places, with these links."""
    nodes = [
        {
            "id": f"n{i}",
            "label": f"r{i}",
            "node_definition": "iosv",
            "x": x,
            "y": y,
            "interfaces": [{"id": f"i{at}", "type": "physical"} for at, pair in enumerate(ends) if i in pair],
        }
        for i, (x, y) in enumerate(places)
    ]
    links = [
        {"id": f"l{i}", "n1": f"n{a}", "i1": f"i{i}", "n2": f"n{b}", "i2": f"i{i}"} for i, (a, b) in enumerate(ends)
    ]
    document = {"lab": {"version": "0.2.0", "title": "t"}, "nodes": nodes, "links": links}
    read = dataclasses.replace(KEPT[0], topology=parse(yaml.safe_dump(document)))
    return render(definition(), [read], None, SourceRead("mark"), NOW)


def test_places_of_devices_and_links_between_them_are_listed() -> None:
    told = drawn([(-200, 0), (150, 40), (0, 0)], [(0, 1), (1, 2), (1, 0)])
    assert [(each["label"], each["x"], each["y"]) for each in told["devices"]] == [
        ("r0", -200, 0),
        ("r1", 150, 40),
        ("r2", 0, 0),
    ]
    assert told["links"] == [{"n1": "r0", "n2": "r1"}, {"n1": "r1", "n2": "r2"}], "each pair once"


@pytest.mark.parametrize("odd", [None, "7", True, [1], 15001, -15001, float("inf"), 10**40])
def test_place_that_is_none_is_left_out(odd: Any) -> None:
    """CML's own bounds; the picture then finds a place for the device."""
    [device] = drawn([(odd, 5)], [])["devices"]
    assert not {"x", "y"} & device.keys()


def test_place_that_is_a_fraction_is_rounded() -> None:
    """Topologies of older versions of CML have such."""
    [device] = drawn([(1.6, -2.4)], [])["devices"]
    assert (device["x"], device["y"]) == (2, -2)


def test_device_that_its_author_hides_is_told_from_one_without_a_port() -> None:
    text = topology(
        {"r1": "iosv", "r2": "iosv", "r3": "iosv"}, tags={"r1": ["hidden", "serial:5065"], "r3": ["serial:1"]}
    )
    read = dataclasses.replace(KEPT[0], topology=parse(text))
    devices = render(definition(), [read], None, SourceRead("mark"), NOW)["devices"]
    assert [(each["visible"], each.get("hidden")) for each in devices] == [(False, True), (False, None), (True, None)]


def test_no_more_links_are_listed_than_devices() -> None:
    count = 40
    pairs = [(a, b) for a in range(count) for b in range(a)]
    told = drawn([(i, i) for i in range(count)], pairs)
    assert len(pairs) > 500
    assert len(told["links"]) == 500


def test_status_of_an_earlier_release_has_no_places_and_no_links() -> None:
    """It is read as it is, and an earlier release reads a status of this one."""
    told = drawn([(1, 2)], [])
    before = {key: value for key, value in told.items() if key != "links"}
    before["devices"] = [{k: v for k, v in each.items() if k not in {"x", "y"}} for each in told["devices"]]
    read = definition_status(definition(status=before))
    assert (read.devices[0].label, read.devices[0].x, read.links) == ("r0", UNSET, [])
    assert stored(read)["devices"] == before["devices"]


def test_impediments_are_a_condition_that_goes_with_them() -> None:
    faults = [
        Fault(DefinitionReason.TOO_LARGE, "cpu 2000 > 64"),
        *(Fault(DefinitionReason.TAG_UNCLEAR, f"tag {n}") for n in range(6)),
    ]
    told = render(definition(), KEPT, None, SourceRead("mark"), NOW, impediments=faults)
    status, reason, message = conditions(told)["Impeded"]
    assert (status, reason) == ("True", "TooLarge")
    assert message == "cpu 2000 > 64; tag 0; tag 1; tag 2; tag 3; and 2 more"
    assert conditions(told)["Ready"][0] == "True"
    after = render(definition(status=told), KEPT, None, SourceRead("mark"), NOW)
    assert "Impeded" not in conditions(after)


def test_refused_content_is_remembered_until_it_changes() -> None:
    fault = Fault(DefinitionReason.TOPOLOGY_INVALID, "nodes is empty")
    told = render(definition(), (), fault, SourceRead("mark", refused="d1"), NOW)
    seen = definition(status=told)
    assert definitionstatus.refused_content(seen, "d1") == fault
    assert definitionstatus.refused_content(seen, "d2") is None, "another content"
    older = told | {"refused": {"digest": "d1", "provider": "0.0.1"}}
    assert definitionstatus.refused_content(definition(status=older), "d1") is None, "another release may accept it"
    healed = render(seen, KEPT, None, SourceRead("mark"), NOW)
    assert healed["refused"] is None
    assert definitionstatus.refused_content(definition(status=healed), "d1") is None


def test_served_request_and_its_outcome() -> None:
    """R000-076."""
    told = render(definition(ASKED), KEPT, None, SourceRead("mark", STORED), NOW)
    assert (told["refresh"], told["source"]) == (ASKED, "mark")
    assert told["lastRefresh"] == {
        "request": ASKED,
        "requestedBy": "jane",
        "time": "2026-01-01T00:00:00Z",
        "result": "Stored",
        "version": "1.1",
        "devices": 2,
    }
    assert conditions(told)["Refreshed"] == ("True", "ContentStored", STORED.message)


def test_refused_refresh_leaves_the_definition_ready() -> None:
    """R000-078."""
    told = render(definition(ASKED), KEPT, None, SourceRead("mark", REFUSED), NOW)
    assert conditions(told)["Refreshed"] == ("False", "PackageInvalid", "it is no zip")
    assert conditions(told)["Ready"][0] == "True"
    assert told["lastRefresh"]["result"] == "Refused"
    later = render(definition(ASKED, told), KEPT, None, SourceRead("mark"), NOW + 60)
    assert later["conditions"] == told["conditions"], "it stays until the next refresh"
    found = definitionstatus.refused(definition(ASKED, told))
    assert found is not None
    assert found.reason == "PackageInvalid"


def test_request_stays_open_while_the_store_does_not_answer() -> None:
    before = {"refresh": "earlier", "source": "mark"}
    fault = Fault(DefinitionReason.CONTENT_STORE_UNAVAILABLE, "it does not answer")
    told = render(definition(ASKED, before), KEPT, None, SourceRead("", fault=fault), NOW)
    assert (told["refresh"], told["source"]) == ("earlier", "")
    assert conditions(told)["Refreshed"] == ("False", "ContentStoreUnavailable", "it does not answer")
    assert conditions(told)["Ready"][0] == "True"
    assert "lastRefresh" not in told


def test_what_was_not_looked_at_stays_as_it_is() -> None:
    before = {"refresh": "earlier", "source": "mark"}
    told = render(definition(ASKED, before), KEPT, Fault(DefinitionReason.IN_USE, "1 lablets"), SourceRead(), NOW)
    assert (told["refresh"], told["source"]) == ("earlier", "mark")


def test_request_that_was_removed_stays_served() -> None:
    """So that whoever writes it again, with an old manifest, asks for nothing."""
    told = render(definition("", {"refresh": ASKED, "source": "mark"}), KEPT, None, SourceRead("mark"), NOW)
    assert told["refresh"] == ASKED


def test_definition_without_content_says_why() -> None:
    told = render(definition(), (), None, SourceRead("mark"), NOW)
    assert conditions(told) == {"Ready": ("False", "NoContent", "no content yet")}
    assert definitionstatus.refused_by(SourceRead("mark", STORED)) is None
    fault = definitionstatus.refused_by(SourceRead("mark", REFUSED))
    assert fault is not None
    told = render(definition(), (), fault, SourceRead("mark", REFUSED), NOW)
    assert conditions(told)["Ready"] == conditions(told)["Refreshed"] == ("False", "PackageInvalid", "it is no zip")


def test_times_tell_when_something_changed() -> None:
    first = render(definition(ASKED), KEPT, None, SourceRead("mark", STORED), NOW)
    again = render(definition(ASKED, {**first, "refresh": ""}), KEPT, None, SourceRead("mark", STORED), NOW + 9)
    assert again == first
    other = render(definition(ASKED, first), (), Fault(reason_of("A"), "b"), SourceRead("mark"), NOW + 9)
    assert [c["lastTransitionTime"] for c in other["conditions"]] == ["2026-01-01T00:00:09Z", "2026-01-01T00:00:00Z"]
