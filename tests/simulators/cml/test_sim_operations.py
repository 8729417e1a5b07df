"""The operation table of CML, over every operation and state (R000-029, R000-030)."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulators.cml.bench import Bench
from vkpsim.cml.errors import E
from vkpsim.cml.world.rules import LAB_RULES, NODE_RULES, LabOp, NodeOp
from vkpsim.cml.world.states import LabState, NodeState

STATES = ("DEFINED_ON_CORE", "QUEUED", "STARTED", "BOOTED", "STOPPED", "DISCONNECTED")
Outcome = tuple[int, str]
"""Status of the answer, and state of the node afterwards; GONE if it is deleted."""


def same(status: int) -> tuple[Outcome, ...]:
    return tuple((status, state) for state in STATES)


D, Q, S, B, O, X = STATES  # noqa: E741 (columns of the table below)
GONE = "GONE"
TABLE: dict[str, tuple[Outcome, ...]] = {
    #                DEFINED     QUEUED    STARTED   BOOTED    STOPPED   DISCONNECTED
    "lab start": ((204, S), (204, Q), (204, S), (204, B), (204, S), (204, X)),
    "lab stop": ((204, D), (204, O), (204, O), (204, O), (204, O), (204, O)),
    "lab wipe": ((204, D), (400, Q), (400, S), (400, B), (204, D), (400, X)),
    "lab delete": ((204, GONE), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "lab rename": same(200),
    "node start": ((204, S), (204, Q), (204, S), (204, B), (204, S), (204, X)),
    "node stop": ((204, D), (204, O), (204, O), (204, O), (204, O), (204, O)),
    "node wipe": ((204, D), (400, Q), (400, S), (400, B), (204, D), (400, X)),
    "node delete": ((204, GONE), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "node configuration": ((200, D), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "node image": ((200, D), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "node ram": ((200, D), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "node cpus": ((200, D), (400, Q), (400, S), (400, B), (400, O), (400, X)),
    "node label": same(200),
    "node position": same(200),
    "node tags": same(200),
    "node hide_links": same(200),
    "add interface": ((200, D), (404, Q), (404, S), (404, B), (404, O), (404, X)),
    "remove interface": ((204, D), (404, Q), (404, S), (404, B), (404, O), (404, X)),
    "create link": same(200),
    "create link to used interface": same(400),
    "delete link": same(204),
    "extract": ((400, D), (400, Q), (400, S), (200, B), (400, O), (400, X)),
    "clone image": ((400, D), (400, Q), (400, S), (400, B), (200, O), (400, X)),
    "console key": ((404, D), (404, Q), (200, S), (200, B), (404, O), (404, X)),
    "vnc key": ((404, D), (404, Q), (200, S), (200, B), (404, O), (404, X)),
    "layer 3": same(200),
}


class Case:
    """Two linked nodes, one of them in the state of the case."""

    def __init__(self, state: str) -> None:
        self.bench = Bench(licence_nodes=0 if state == "QUEUED" else 10)
        self.lab = self.bench.load()
        self.node = self.bench.node(self.lab, "h0")
        _, topology = self.bench.request("GET", f"/labs/{self.lab}/topology")
        self.a, self.a_free = (interface["id"] for interface in topology["nodes"][0]["interfaces"])
        self.b, self.b_free = (interface["id"] for interface in topology["nodes"][1]["interfaces"])
        self.link = topology["links"][0]["id"]
        path = f"/labs/{self.lab}/nodes/{self.node}/state"
        if state != "DEFINED_ON_CORE":
            self.bench.request("PUT", f"{path}/start")
        if state in {"BOOTED", "STOPPED", "DISCONNECTED"}:
            self.bench.now += 60
        if state == "STOPPED":
            self.bench.request("PUT", f"{path}/stop")
        if state == "DISCONNECTED":
            self.bench.world.set_connected(self.bench.now, connected=False)
        assert self.bench.states(self.lab)["h0"] == state

    def lab_call(self, method: str, tail: str = "", body: object = None) -> tuple[int, object]:
        return self.bench.request(method, f"/labs/{self.lab}{tail}", body)

    def node_call(self, method: str, tail: str = "", body: object = None) -> tuple[int, object]:
        return self.bench.request(method, f"/labs/{self.lab}/nodes/{self.node}{tail}", body)


OPERATIONS: dict[str, Callable[[Case], tuple[int, object]]] = {
    "lab start": lambda case: case.lab_call("PUT", "/start"),
    "lab stop": lambda case: case.lab_call("PUT", "/stop"),
    "lab wipe": lambda case: case.lab_call("PUT", "/wipe"),
    "lab delete": lambda case: case.lab_call("DELETE"),
    "lab rename": lambda case: case.lab_call("PATCH", "", {"title": "another"}),
    "node start": lambda case: case.node_call("PUT", "/state/start"),
    "node stop": lambda case: case.node_call("PUT", "/state/stop"),
    "node wipe": lambda case: case.node_call("PUT", "/wipe_disks"),
    "node delete": lambda case: case.node_call("DELETE"),
    "node configuration": lambda case: case.node_call("PATCH", "", {"configuration": "hostname other"}),
    "node image": lambda case: case.node_call("PATCH", "", {"image_definition": "alpine-sim"}),
    "node ram": lambda case: case.node_call("PATCH", "", {"ram": 1024}),
    "node cpus": lambda case: case.node_call("PATCH", "", {"cpus": 2}),
    "node label": lambda case: case.node_call("PATCH", "", {"label": "h7"}),
    "node position": lambda case: case.node_call("PATCH", "", {"x": 5, "y": 6}),
    "node tags": lambda case: case.node_call("PATCH", "", {"tags": ["serial:5000"]}),
    "node hide_links": lambda case: case.node_call("PATCH", "", {"hide_links": True}),
    "add interface": lambda case: case.lab_call("POST", "/interfaces", {"node": case.node}),
    "remove interface": lambda case: case.lab_call("DELETE", f"/interfaces/{case.a_free}"),
    "create link": lambda case: case.lab_call("POST", "/links", {"src_int": case.a_free, "dst_int": case.b_free}),
    "create link to used interface": lambda case: case.lab_call(
        "POST", "/links", {"src_int": case.a, "dst_int": case.b_free}
    ),
    "delete link": lambda case: case.lab_call("DELETE", f"/links/{case.link}"),
    "extract": lambda case: case.node_call("PUT", "/extract_configuration"),
    "clone image": lambda case: case.node_call("PUT", "/clone_image"),
    "console key": lambda case: case.node_call("GET", "/keys/console"),
    "vnc key": lambda case: case.node_call("GET", "/keys/vnc"),
    "layer 3": lambda case: case.node_call("GET", "/layer3_addresses"),
}


@pytest.mark.parametrize(
    ("operation", "before", "outcome"),
    [
        pytest.param(operation, before, outcome, id=f"{operation} of {before}".replace(" ", "-"))
        for operation, row in TABLE.items()
        for before, outcome in zip(STATES, row, strict=True)
    ],
)
def test_operation(operation: str, before: str, outcome: Outcome) -> None:
    case = Case(before)
    status, answer = OPERATIONS[operation](case)
    node = case.bench.world.labs[case.lab].nodes.get(case.node) if case.lab in case.bench.world.labs else None
    after = case.bench.world.state(node) if node else GONE
    assert (status, after) == outcome, answer


def test_every_operation_and_state_has_a_rule() -> None:
    assert set(OPERATIONS) == set(TABLE)
    assert {state.value for state in NodeState} == set(STATES)
    assert set(NODE_RULES) == set(NodeOp)
    assert all(set(row) == set(NodeState) for row in NODE_RULES.values())
    assert set(LAB_RULES) == set(LabOp)
    assert all(set(row) == set(LabState) for row in LAB_RULES.values())


def test_refusals_that_cisco_s_client_recognises_are_worded_as_it_expects() -> None:
    case = Case("BOOTED")
    lab, node = case.lab, case.node
    assert case.bench.request("GET", "/labs/gone") == (404, "Lab not found: gone")
    assert case.bench.request("GET", f"/labs/{lab}/nodes/gone") == (404, "Node not found: gone")
    assert case.bench.request("GET", f"/labs/{lab}/interfaces/gone") == (404, "Interface not found: gone")
    assert case.bench.request("GET", f"/labs/{lab}/links/gone") == (404, "Link not found: gone")
    assert case.bench.request("GET", f"/labs/{lab}/annotations/gone") == (404, "Annotation not found: gone")
    assert case.bench.request("GET", f"/labs/{lab}/smart_annotations/gone")[1] == "SmartAnnotation not found: gone"
    status, text = case.bench.request("POST", f"/labs/{lab}/links", {"src_int": case.a, "dst_int": case.b_free})
    assert (status, text) == (400, f"Interface {case.a} already in use")
    status, text = case.bench.request("GET", f"/labs/{lab}/nodes/{node}/consoles/1/log")
    assert (status, text) == (400, "Serial port does not exist on node")


def test_the_table_of_errors_marks_unverified_rows() -> None:
    assert E.LAB_NOT_FOUND.value.verified
    assert not E.LAB_NOT_WIPED.value.verified
    assert all(400 <= reason.value.status < 600 and reason.value.text for reason in E)


def test_the_docs_list_exactly_the_unverified_refusals() -> None:
    page = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d{3}) \| `(.+)` \|$", page, re.MULTILINE)
    unverified = [(str(row.value.status), row.value.text) for row in E if not row.value.verified]
    assert sorted(listed) == sorted(unverified)


@pytest.mark.parametrize("kind", ["external_connector", "unmanaged_switch"])
def test_a_node_without_device_has_neither_console_nor_configuration_to_extract(kind: str) -> None:
    bench = Bench()
    lab = bench.load()
    _, added = bench.request("POST", f"/labs/{lab}/nodes", {"label": "x", "node_definition": kind, "x": 0, "y": 0})
    bench.request("PUT", f"/labs/{lab}/start")
    bench.now += 60
    path = f"/labs/{lab}/nodes/{added['id']}"
    assert bench.request("GET", f"{path}/state")[1] == {"state": "BOOTED", "progress": "Booted"}
    assert bench.request("GET", f"{path}/keys/console")[0] == 404
    assert bench.request("GET", f"{path}/keys/vnc")[0] == 404
    assert bench.request("PUT", f"{path}/extract_configuration")[0] == 400
