"""The check that every answer of the simulator passes in these tests: it knows every route, and it bites."""

import re
from typing import Any

import msgspec
import pytest

from tests.simulators.cml.plain import plain
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.cmlapi.table import UnlikeCmlError, check, shapes_of
from vkpsim.cml.server import ROUTES

ID = "90f84e38-a71c-4d57-8d90-00fa8a197385"
NO_BODY = {"/system/compute_hosts/{compute}"}
"""It only refuses: the controller's own host cannot be removed."""


def path_of(route: str) -> str:
    """Fill the parts of a route: `{lab}`, or `{action:a|b}` with its first word."""
    return re.sub(r"\{\w+(?::(\w+)[^}]*)?\}", lambda part: part[1] or "x", route)


def test_every_route_has_a_shape() -> None:
    answering = {(route.method, route.path) for route in ROUTES}
    answering -= {(method, path) for method, path in answering if path.removeprefix("//api/v0") in NO_BODY}
    answering -= {("GET", "/diagnostics/{category}")}
    answering |= {("GET", "/system/compute_hosts/{compute}"), ("PATCH", "/system/compute_hosts/{compute}")}
    assert [route for route in sorted(answering) if not shapes_of(route[0], path_of(route[1]))] == []


@pytest.mark.parametrize(
    ("request_line", "status", "body", "why"),
    [
        ("GET /labs", 200, ["not-an-id"], "Expected `str` matching regex"),
        ("GET /labs", 201, [ID], "status 201, expected 200"),
        ("POST /users", 200, {}, "status 200, expected 201"),
        ("PUT /labs/x/start", 200, None, "expected an empty 204"),
        ("GET /labs/x/state", 200, "QUEUED", "Invalid enum value"),
        ("GET /labs/x/nodes", 200, [{"id": ID}], "missing required field"),
        ("GET /labs/x/nodes/y/state", 200, {"state": "BOOTED", "progress": "Booted", "x": 1}, "unknown field `x`"),
        ("GET /labs/x/lab_element_state", 200, {"nodes": {"n0": "BOOTED"}, "links": {}, "interfaces": {}}, "matching"),
        ("GET /nonsense", 200, {}, "no such answer"),
        ("GET /labs", 404, {"code": 404}, "missing required field `description`"),
        ("GET /labs", 404, {"code": 400, "description": ""}, "the code is not 404"),
        ("GET /labs/x/download", 200, {}, "expected YAML"),
    ],
)
def test_an_answer_of_another_shape_is_found(request_line: str, status: int, body: Any, why: str) -> None:
    method, path = request_line.split()
    with pytest.raises(UnlikeCmlError, match=re.escape(why)):
        check(method, path, status, "application/json", msgspec.json.encode(body))


def test_a_page_instead_of_json_is_found() -> None:
    with pytest.raises(UnlikeCmlError, match="expected JSON"):
        check("GET", "/labs", 502, "text/html", b"<html>")


async def test_a_simulator_that_answers_so_fails_its_test(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        node = next(iter(simulator.simulation.world.labs[lab].nodes.values()))
        node.ram = 0
        await client.api("GET", f"/labs/{lab}/nodes/{node.id}")
    [found] = simulator.unlike
    assert found.startswith(f"GET /labs/{lab}/nodes/{node.id} 200: Expected `int` >= 1 - at `$.ram`")
    simulator.unlike.clear()
