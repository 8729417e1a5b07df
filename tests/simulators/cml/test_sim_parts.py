"""Small pure parts of the simulator: faults, tags, accounts, boot ranges, permissions."""

import pytest

from tests.simulators.cml.bench import Bench
from vkpsim.cml.consoles.patty import PortTag, asked_ports, parse_tag
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.world.boots import parse_range
from vkpsim.http.faults import Fault, Faults

# faults


def met(faults: Faults, request: str, now: float = 0.0) -> str | None:
    method, _, path = request.partition(" ")
    found = faults.meet(method, path, now)
    return found[0].kind if found else None


def test_a_fault_meets_the_requests_of_its_route_as_often_as_it_says() -> None:
    faults = Faults()
    faults.add(Fault(kind="drop", route="^PUT .*/start$", count=2, skip=1), 0)
    assert [met(faults, "PUT /labs/a/start") for _ in range(5)] == [None, "drop", "drop", None, None]
    assert met(faults, "GET /labs/a/start") is None
    assert faults.list(0) == []


def test_a_fault_ends_by_time() -> None:
    faults = Faults()
    faults.add(Fault(kind="delay", seconds=5.0), 10)
    assert (met(faults, "GET /x", 14.9), met(faults, "GET /x", 15.0)) == ("delay", None)


def test_a_plan_with_a_rate_is_drawn_by_seed() -> None:
    def drawn(seed: int) -> list[str | None]:
        faults = Faults(seed)
        faults.add(Fault(kind="status", rate=0.3), 0)
        return [met(faults, "GET /x") for _ in range(200)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert 30 < sum(kind is not None for kind in drawn(1)) < 90


def test_the_first_fault_that_matches_wins_and_all_can_be_cleared() -> None:
    faults = Faults()
    faults.add(Fault(kind="drop", route="start"), 0)
    faults.add(Fault(kind="delay"), 0)
    assert (met(faults, "PUT /start"), met(faults, "PUT /stop")) == ("drop", "delay")
    faults.clear()
    assert met(faults, "PUT /start") is None


def test_a_route_must_be_a_regular_expression() -> None:
    with pytest.raises(ValueError, match=r"route '\(' is not a regular expression"):
        Fault(kind="drop", route="(")


# tags


@pytest.mark.parametrize(
    ("tag", "meaning"),
    [
        ("serial:5041", PortTag("serial", 5041)),
        ("serial:5041:1", PortTag("serial", 5041, line=1)),
        ("vnc:5044", PortTag("vnc", 5044)),
        ("pat:8080:80", PortTag("tcp", 8080, inside=80)),
        ("pat:tcp:8080:80", PortTag("tcp", 8080, inside=80)),
        ("pat:udp:5353:53", PortTag("udp", 5353, inside=53)),
        ("http:8080", None),
        ("ssh:22", None),
        ("Serial:5041", None),
        ("serial: 5041", None),
        ("serial:", None),
        ("serial:5041:1:2", None),
        ("pat:sctp:1:2", None),
        ("blue", None),
        ("", None),
    ],
)
def test_tags(tag: str, meaning: PortTag | None) -> None:
    assert parse_tag(tag) == meaning


def test_ports_are_asked_for_by_running_nodes_only_and_in_the_range_only() -> None:
    bench = Bench()
    lab = bench.load()
    node = f"/labs/{lab}/nodes/{bench.node(lab, 'h0')}"
    tags = ["serial:4567", "serial:4568:1", "vnc:1999", "pat:8000:80", "pat:7999:80", "http:5000"]
    bench.request("PATCH", node, {"tags": tags})

    def ports() -> list[int]:
        bench.world.advance(bench.now)
        return [tag.port for tag, _ in asked_ports(bench.world, 2000, 7999)]

    assert ports() == []
    bench.request("PUT", f"/labs/{lab}/start")
    assert ports() == [4567], "line 1 does not exist, and the device has no address before it has booted"
    bench.now += 60
    assert ports() == [4567, 7999]
    bench.request("PATCH", node, {"tags": ["vnc:6000"]})
    assert ports() == [6000]
    bench.request("PUT", f"/labs/{lab}/stop")
    assert ports() == []


# accounts


def test_a_token_is_good_until_it_expires_or_is_revoked() -> None:
    bench = Bench()
    accounts = bench.sim.accounts
    user, token = accounts.login(bench.now, "admin", "a-secret")
    assert accounts.user_of(bench.now, token) is user
    assert accounts.user_of(bench.now + 86399, token) is user
    for wrong in ("", "a.b.c", token[:-1], token + "x", token.replace(".", "")):
        with pytest.raises(CmlError):
            accounts.user_of(bench.now, wrong)
    with pytest.raises(CmlError):
        accounts.user_of(bench.now + 86400, token)
    accounts.set_password(user, "another-secret")
    with pytest.raises(CmlError):
        accounts.user_of(bench.now, token)
    accounts.login(bench.now, "admin", "another-secret")


@pytest.mark.parametrize(("name", "password"), [("admin", "wrong"), ("nobody", "a-secret"), ("", "")])
def test_wrong_credentials_are_403(name: str, password: str) -> None:
    with pytest.raises(CmlError) as caught:
        Bench().sim.accounts.login(0, name, password)
    assert caught.value.reason is E.BAD_PASSWORD


def test_a_plain_user_sees_own_and_shared_labs_with_the_granted_rights() -> None:
    bench = Bench()
    _, ada = bench.request("POST", "/users", {"username": "ada", "password": "long-enough"})
    user = bench.sim.accounts.users[ada["id"]]
    lab = bench.load()
    assert bench.request("GET", "/labs", query={"show_all": "true"}, user=user)[1] == []
    assert bench.request("GET", f"/labs/{lab}", user=user) == (404, f"Lab not found: {lab}")
    share = {"users": [{"id": user.id, "permissions": ["lab_view", "lab_exec"]}]}
    bench.request("PATCH", f"/labs/{lab}/associations", share)
    assert bench.request("GET", "/labs", user=user)[1] == [lab]
    assert bench.request("GET", "/nodes", user=user)[1] != []
    assert bench.request("PUT", f"/labs/{lab}/start", user=user)[0] == 204
    assert bench.request("PATCH", f"/labs/{lab}", {"title": "mine"}, user=user)[0] == 403
    assert bench.request("DELETE", f"/labs/{lab}", user=user)[0] == 403
    assert bench.request("POST", "/users", {"username": "b", "password": "long-enough"}, user=user)[0] == 403


def test_a_resource_pool_limits_who_starts() -> None:
    bench = Bench()
    _, pool = bench.request("POST", "/resource_pools", {"label": "small", "licenses": 1})
    _, ada = bench.request(
        "POST", "/users", {"username": "ada", "password": "long-enough", "resource_pool": pool["id"]}
    )
    user = bench.sim.accounts.users[ada["id"]]
    lab = bench.load()
    bench.request("PATCH", f"/labs/{lab}", {"owner": user.id})
    status, text = bench.request("PUT", f"/labs/{lab}/start", user=user)
    assert (status, "small" in text) == (400, True)
    node = bench.node(lab, "h0")
    assert bench.request("PUT", f"/labs/{lab}/nodes/{node}/state/start", user=user)[0] == 204
    usage = bench.request("GET", f"/resource_pool_usage/{pool['id']}")[1]["usage"]
    assert usage == {"licenses": 1, "cpus": 1, "ram": 512, "disk_space": 0, "external_connectors": []}


# the rest


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", (5, 5)), ("5-20", (5, 20)), ("0", (0, 0)), ("0.1-0.3", (0.1, 0.3))]
)
def test_ranges(text: str, seconds: tuple[float, float]) -> None:
    assert parse_range(text) == seconds


@pytest.mark.parametrize("text", ["", "a", "5-", "20-5", "-1", "1-2-3"])
def test_no_ranges(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_range(text)


def test_unknown_keys_of_a_body_are_refused_with_their_place() -> None:
    bench = Bench()
    lab = bench.load()
    status, text = bench.request("PATCH", f"/labs/{lab}", {"surprise": 1})
    assert status == 400
    assert text.startswith('{"Input validation failed":[{"location":["body","surprise"],"type":"extra_forbidden"')
    status, text = bench.request(
        "POST", f"/labs/{lab}/nodes", {"label": "x", "node_definition": "alpine", "x": "1", "y": 0}
    )
    assert (status, '"location":["body","x"]' in text) == (400, True)


def test_a_new_node_must_have_a_free_label_and_a_known_definition() -> None:
    bench = Bench()
    lab = bench.load()
    assert (
        bench.request("POST", f"/labs/{lab}/nodes", {"label": "h0", "node_definition": "alpine", "x": 0, "y": 0})[0]
        == 400
    )
    assert (
        bench.request("POST", f"/labs/{lab}/nodes", {"label": "h2", "node_definition": "toaster", "x": 0, "y": 0})[0]
        == 400
    )
    node = bench.node(lab, "h0")
    assert bench.request("PATCH", f"/labs/{lab}/nodes/{node}", {"label": "h1"})[0] == 400
    assert bench.states(lab).keys() == {"h0", "h1"}
