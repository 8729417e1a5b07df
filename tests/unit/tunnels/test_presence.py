"""What a caller makes of hellos, heartbeats and goodbyes. R004-049."""

from tunnels.protocol.presence import PROVE_S, RETURN_S, AgentPresence, AgentState
from tunnels.wire import Goodbye, Heartbeat, Hello

HELLO = Hello(clock_ms=5000, silence_ms=30_000, facts=b"{}")


def there(boot: str = "a", now_s: float = 0.0) -> AgentPresence:
    presence = AgentPresence()
    presence.hello(boot, HELLO, now_s)
    return presence


def state(presence: AgentPresence) -> AgentState:
    return presence.view.state


def test_silence_and_return() -> None:
    presence = there()
    presence.tick(29.9)
    assert state(presence) is AgentState.THERE
    presence.tick(presence.due_s())
    assert state(presence) is AgentState.SILENT
    assert not presence.heartbeat("a", Heartbeat(40_000), 35.0), "it has to introduce itself again"
    presence.hello("a", HELLO, 36.0)
    assert state(presence) is AgentState.THERE


def test_any_message_is_a_sign_of_life() -> None:
    presence = there()
    presence.heard("a", 25.0)
    presence.heard("b", 50.0)
    presence.tick(54.0)
    assert state(presence) is AgentState.THERE
    presence.tick(55.0)
    assert state(presence) is AgentState.SILENT


def test_a_goodbye_counts_at_once_and_a_last_will_after_a_moment() -> None:
    presence = there()
    presence.goodbye("a", Goodbye("shut down"), 1.0)
    assert (presence.view.state, presence.view.reason) == (AgentState.LEFT, "shut down")
    presence = there()
    presence.goodbye("a", Goodbye("lost", lost=True), 1.0)
    assert state(presence) is AgentState.THERE
    assert presence.due_s() == 1.0 + RETURN_S
    presence.tick(presence.due_s())
    assert (presence.view.state, presence.view.reason) == (AgentState.LEFT, "lost")


def test_a_last_will_is_forgotten_when_the_agent_is_back_or_the_broker_is_gone() -> None:
    for event in ("hello", "heartbeat", "disconnected"):
        presence = there()
        presence.goodbye("a", Goodbye("lost", lost=True), 1.0)
        match event:
            case "hello":
                presence.hello("a", HELLO, 2.0)
            case "heartbeat":
                presence.heartbeat("a", Heartbeat(7000), 2.0)
            case _:
                presence.disconnected()
        presence.tick(1.0 + RETURN_S)
        assert state(presence) is AgentState.THERE, event


def test_a_restarted_agent_replaces_its_dead_predecessor() -> None:
    presence = there()
    assert presence.hello("b", HELLO, 10.0), "the predecessor is asked whether it is there"
    assert presence.view.boot == "a"
    assert presence.tick(10.0 + PROVE_S) == ""
    assert (presence.view.boot, presence.view.rival) == ("b", "")
    presence = there()
    presence.goodbye("a", Goodbye("lost", lost=True), 9.0)
    assert not presence.hello("b", HELLO, 10.0)
    assert presence.view.boot == "b", "at once: the predecessor is known to be lost"


def test_of_two_agents_the_second_is_refused_until_the_first_leaves() -> None:
    presence = there()
    presence.hello("b", HELLO, 10.0)
    presence.hello("a", HELLO, 11.0)
    assert presence.tick(10.0 + PROVE_S) == "b"
    assert (presence.view.boot, presence.view.rival) == ("a", "b")
    assert not presence.hello("b", HELLO, 20.0), "it is not asked about again and again"
    assert presence.view.boot == "a"
    presence.goodbye("a", Goodbye("shut down"), 30.0)
    presence.hello("b", HELLO, 31.0)
    assert (presence.view.boot, presence.view.rival, presence.view.state) == ("b", "", AgentState.THERE)


def test_a_rival_that_gives_up_is_forgotten() -> None:
    presence = rivalled()
    presence.goodbye("b", Goodbye("shut down"), 20.0)
    assert presence.view.rival == ""
    assert state(presence) is AgentState.THERE


def test_a_rival_of_which_nothing_is_heard_is_forgotten() -> None:
    presence = rivalled()
    presence.heartbeat("a", Heartbeat(6000), 30.0)
    assert presence.heartbeat("b", Heartbeat(6000), 30.0), "it is known, and need not introduce itself"
    presence.heartbeat("a", Heartbeat(6000), 59.0)
    presence.tick(59.9)
    assert presence.view.rival == "b"
    assert presence.due_s() == 60.0
    presence.tick(presence.due_s())
    assert (presence.view.boot, presence.view.rival, presence.view.state) == ("a", "", AgentState.THERE)


def test_a_third_agent_is_refused_and_does_not_replace_the_second() -> None:
    presence = rivalled()
    for now_s in (20.0, 30.0):
        assert presence.hello("c", HELLO, now_s)
        presence.heard("a", now_s + 1)
        assert presence.tick(now_s + PROVE_S) == "c"
        assert presence.view.rival == "b"
        presence.heartbeat("b", Heartbeat(6000), now_s + 4)
    presence.goodbye("b", Goodbye("shut down"), 35.0)
    presence.hello("c", HELLO, 40.0)
    presence.heard("a", 41.0)
    presence.tick(40.0 + PROVE_S)
    assert presence.view.rival == "c"


def rivalled() -> AgentPresence:
    """Return what is known when `a` bears the name and `b` was refused."""
    presence = there()
    presence.hello("b", HELLO, 10.0)
    presence.heard("a", 11.0)
    presence.tick(10.0 + PROVE_S)
    return presence


def test_the_agents_clock_is_judged_by_the_fastest_of_the_last_heartbeats() -> None:
    presence = there()
    presence.heartbeat("a", Heartbeat(15_000 - 700), 10.0)  # 700 ms on its way
    assert presence.clock_ms(10.0) == 15_000
    for number in range(8):  # its machine slept for an hour: the clock is behind now
        presence.heartbeat("a", Heartbeat(3_600_000 + number * 1000), 7200.0 + number)
    assert presence.clock_ms(7207.0) == 3_607_000


def test_facts_hold_until_others_come() -> None:
    presence = there()
    presence.heartbeat("a", Heartbeat(6000), 1.0)
    assert presence.view.facts == b"{}"
    presence.heartbeat("a", Heartbeat(7000, facts=b"{1}", epoch=3), 2.0)
    assert (presence.view.facts, presence.view.epoch) == (b"{1}", 3)
