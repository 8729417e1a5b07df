"""The parts of a lab's page that are made of what is known: ports, commands, buttons, and the form of a request."""

import pytest

from tests.unit.portal.pure.builders import COMPLETE, NOW, REQUEST, lab, pod
from tests.unit.portal.view.seen import BOOTED, DEFINITION, PORTS, imported
from vkprovider.lablet.devices import Port
from vkprovider.portal.pure.options import Grounds, ImageBy, LabWish, Rejection
from vkprovider.portal.pure.view import LabView, from_userlab
from vkprovider.portal.settings import PortalSettings
from vkprovider.portal.web.lab.pieces import (
    MANAGER,
    OWNER,
    PIECES,
    TEACHER,
    Audience,
    PortCell,
    deeds_of,
    pieces,
    shown_port,
    spans,
    user_place,
    wanted_of,
)
from vkprovider.portal.web.layout import HERE, Assets, Layout

EVIL = "<script>alert(1)</script>"


def ready() -> LabView:
    running = imported(pod(phase="Running", ready=True, username="alice"), BOOTED, port_mappings=PORTS)
    return from_userlab(lab(REQUEST, COMPLETE, the_pod=running), DEFINITION, [], NOW + 60, PortalSettings())


@pytest.mark.parametrize(
    ("port", "shown"),
    [
        ({}, PortCell("serial", "telnet 198.51.100.1 10011")),
        ({"address": "2001:db8::1"}, PortCell("serial", "telnet 2001:db8::1 10011")),
        ({"address": ""}, PortCell("serial", "", "port 10011 of the worker")),
        ({"via": "203.0.113.10:20000"}, PortCell("serial", "telnet 203.0.113.10 20000")),
        ({"via": "[2001:db8::9]:20000"}, PortCell("serial", "telnet 2001:db8::9 20000")),
        ({"via": "pending: no address yet"}, PortCell("serial", "", "pending: no address yet")),
        ({"via": "refused: too many"}, PortCell("serial", "", "refused: too many")),
        ({"opened": False, "access": "http"}, PortCell("http", "", "not opened by CML")),
        (
            {"access": "pat", "internal_port": 53, "transport": "udp"},
            PortCell("pat 53 over UDP", "198.51.100.1:10011"),
        ),
    ],
)
def test_how_a_port_is_reached(port: dict[str, object], shown: PortCell) -> None:
    """The worker's address is told only where no mux has the port: it may lead to nobody."""
    usual = {
        "name": "r1_serial",
        "device": "r1",
        "access": "serial",
        "address": "198.51.100.1",
        "port": 10011,
        "container": "r1",
        "original_port": 1,
        "internal_port": None,
        "transport": "tcp",
        "opened": True,
        "via": "",
    }
    assert shown_port(Port(**{**usual, **port})) == shown  # type: ignore[arg-type]  # (a table of fields)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain", [("plain", False)]),
        ("`a` and `b`", [("a", True), (" and ", False), ("b", True)]),
        ("one ` alone", [("one ` alone", False)]),
        (f"`{EVIL}`", [(EVIL, True)]),
    ],
)
def test_code_in_the_words_of_a_reason(text: str, parts: list[tuple[str, bool]]) -> None:
    assert spans(text) == parts


@pytest.mark.parametrize(
    ("role", "paths"),
    [(OWNER, ["extend", "reset", "stop"]), (TEACHER, ["extend", "reset", "stop"]), (MANAGER, ["stop"])],
)
def test_buttons_are_those_of_ones_role(role: str, paths: list[str]) -> None:
    found = list(deeds_of(ready(), "/labs/alice", role, 3600))
    assert [deed.path for deed in found] == [f"/labs/alice/{path}" for path in paths]
    assert all(deed.question for deed in found if deed.path.endswith(("reset", "stop"))), "what is lost is asked about"


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ({"image": "a:1", "size": "small"}, LabWish(ImageBy.REFERENCE, "a:1", "small")),
        ({"image": "a:1", "size": "", "class": "net101"}, LabWish(ImageBy.REFERENCE, "a:1", class_="net101")),
        ({"image": "a:1", "csrf": "x", "env": "y"}, LabWish(ImageBy.REFERENCE, "a:1")),
    ],
)
def test_form_as_a_request(form: dict[str, object], wanted: LabWish) -> None:
    assert wanted_of(form) == wanted


@pytest.mark.parametrize("form", [{}, {"image": ""}, {"image": "a b"}, {"image": "a:1", "class": "A/B"}])
def test_form_that_asks_for_nothing_is_refused(form: dict[str, object]) -> None:
    refused = wanted_of(form)
    assert isinstance(refused, Rejection)
    assert refused.grounds is Grounds.INVALID_BODY


@pytest.mark.parametrize("view", [None, ready()])
@pytest.mark.parametrize("audience", [Audience(), Audience(consoles=False), Audience(mine=False)])
@pytest.mark.parametrize("base", ["", "/services/vkprovider"])
def test_each_piece_is_one_element_with_its_id_and_nothing_of_a_visitor(
    view: LabView | None, audience: Audience, base: str
) -> None:
    """So that the stream can put it in place of the one before, for whoever looks."""
    layout = Layout(Assets([HERE / "static", *(HERE / view / "static" for view in ("lab", "live", "consoles"))]))
    deeds = deeds_of(view, "/labs/alice", OWNER, 3600) if view is not None else ()
    found = pieces(layout, view, user_place("alice"), deeds, audience, base, NOW + 60)
    assert list(found) == [f"lab-{name}" for name in PIECES]
    for name, html in found.items():
        tag = html[1:].split()[0]
        assert html.startswith(f'<{tag} id="{name}"')
        assert html.endswith(f"</{tag}>")
        assert html.count(f"<{tag}") == 1
        assert "csrf" not in html
        assert 'href="/labs' not in html or not base
    assert ("data-console" in found["lab-devices"]) == (view is not None and audience.consoles)
