from hypothesis import given
from hypothesis import strategies as st

from vkprovider.mux.relay.wanted import (
    Backend,
    Carried,
    Goal,
    changes,
    connections,
    ended,
    is_open,
    open_gate,
    takes_away,
)

A, B = Backend("192.0.2.7", 10003), Backend("2001:db8::8", 10004)
EVERYBODY = frozenset({"0.0.0.0/0"})

SESSIONS = """\
0x3dfde760: [26/Nov/2026:09:23:36.413483] id=8 proto=tcpv4 source=127.0.0.1:49661
  flags=0x4a, conn_retries=0, conn_exp=<NEVER> conn_et=0x000 srv_conn=0x3df54d40, pend_pos=(nil) waiting=0 epoch=0
  frontend=mux (id=2 mode=tcp), listener=? (id=2) addr=127.0.0.1:25001
  backend=endpoints (id=3 mode=tcp) addr=127.0.0.1:45032
  server=endpoint (id=1) addr=192.0.2.7:10003
  task=0x3e01b160 (state=0x00 nice=0 calls=2 rate=0 exp=4s tid=0(1/0) age=20828d14h)
0x3dfde770: [26/Nov/2026:09:23:36.413483] id=9 proto=tcpv6 source=2001:db8::9:49661
  frontend=mux (id=2 mode=tcp), listener=? (id=2) addr=2001:db8::1:25002
  server=endpoint (id=1) addr=2001:db8::8:10004
0x3dfde780: [26/Nov/2026:09:23:36.413483] id=9 proto=tcpv4 source=127.0.0.1:49662
  frontend=mux (id=2 mode=tcp), listener=? (id=2) addr=127.0.0.1:25003
  server=<NONE> (id=-1)
0x3dfdecf0: [26/Nov/2026:09:23:36.414309] id=10 proto=unix_stream source=unix:1
  flags=0x8, conn_retries=0, conn_exp=<NEVER> conn_et=0x000 srv_conn=(nil), pend_pos=(nil) waiting=0 epoch=0x1
  frontend=GLOBAL (id=0 mode=tcp), listener=? (id=1) addr=unix:1
  backend=<NONE> (id=-1 mode=-)
  server=<NONE> (id=-1)
"""
"""What HAProxy 2.8.25 answers to `show sess all`, shortened."""


def shown(rows: dict[str, str]) -> str:
    return "".join(f"0x3e01b9d0 {key} {value}\n" for key, value in rows.items()) + "\n"


def test_sessions_are_those_of_the_mux_with_port_and_target() -> None:
    assert list(connections(SESSIONS.splitlines())) == [
        Carried("0x3dfde760", 25001, A),
        Carried("0x3dfde770", 25002, B),
        Carried("0x3dfde780", 25003),
    ]


def test_a_session_ends_with_its_port_or_its_target_and_not_while_it_has_none() -> None:
    found = list(connections(SESSIONS.splitlines()))
    everything = {25001: frozenset({A, B}), 25002: frozenset({B}), 25003: frozenset({A})}
    assert ended(found, everything) == []
    assert ended(found, {**everything, 25001: frozenset({B})}) == ["shutdown session 0x3dfde760"]
    assert ended(found, {25001: frozenset({A})}) == ["shutdown session 0x3dfde770", "shutdown session 0x3dfde780"]


def test_only_differences_are_told() -> None:
    wanted = Goal({25001: A, 25002: B, 25003: A}, {}, frozenset({"10.0.0.0/8", "::/0"}))
    ports = shown({"25001": "10003@192.0.2.7", "25002": "1@192.0.2.7", "25009": "10003@192.0.2.7"})
    sources = "0x3e01b930 0.0.0.0/0\n0x3e01b940 ::/0\n\n"
    assert changes(ports, sources, wanted) == [
        "add acl sources.acl 10.0.0.0/8",
        "del acl sources.acl 0.0.0.0/0",
        "del map ports.map 25009",
        "set map ports.map 25002 10004@2001:db8::8",
        "add map ports.map 25003 10003@192.0.2.7",
    ]


def test_sessions_are_looked_at_when_a_port_ends_or_moves() -> None:
    assert takes_away(["add map ports.map 1 1@192.0.2.7", "del map ports.map 2"])
    assert takes_away(["set map ports.map 1 1@192.0.2.7"])
    assert not takes_away(["add map ports.map 1 1@192.0.2.7", "del acl sources.acl ::/0"])


def test_a_gate_is_opened_once() -> None:
    assert open_gate("\n") == ["add map gate.map filled 1"]
    assert not is_open("\n")
    assert open_gate("0x3e01b930 filled 1\n\n") == []


def applied(rows: dict[str, str], commands: list[str], name: str) -> dict[str, str]:
    """Do what HAProxy does with commands about one map or access list."""
    rows = dict(rows)
    for command in commands:
        verb, _, about, key, *value = command.split()
        if about != name:
            continue
        assert (key in rows) != (verb == "add"), f"HAProxy refuses: {command}"
        if verb == "del":
            del rows[key]
        else:
            rows[key] = "".join(value)
    return rows


ports = st.integers(1, 8)
targets = st.builds(Backend, st.sampled_from(["192.0.2.7", "2001:db8::8"]), st.integers(1, 3))
networks = st.frozensets(st.sampled_from(["0.0.0.0/0", "::/0", "10.0.0.0/8"]))


@given(found=st.dictionaries(ports, targets), had=networks, goal=st.dictionaries(ports, targets), sources=networks)
def test_whatever_haproxy_holds_becomes_what_is_wanted(
    found: dict[int, Backend], had: frozenset[str], goal: dict[int, Backend], sources: frozenset[str]
) -> None:
    rows = {str(port): f"{target.port}@{target.address}" for port, target in found.items()}
    admitted = dict.fromkeys(had, "")
    commands = changes(shown(rows), shown(admitted), Goal(goal, {}, sources))
    assert applied(rows, commands, "ports.map") == {str(p): f"{t.port}@{t.address}" for p, t in goal.items()}
    assert applied(admitted, commands, "sources.acl").keys() == sources
    again = changes(
        shown(applied(rows, commands, "ports.map")),
        shown(applied(admitted, commands, "sources.acl")),
        Goal(goal, {}, sources),
    )
    assert again == []
