"""Which deployment of the LDS takes the next session (R000-092 … R000-098)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.session import deployments
from vkprovider.labs.pure.session.deployments import WELL, DeploymentHealth, LdsDeployment, after, choose
from vkprovider.labs.settings.services import Strategy
from vkprovider.platform.errors import (
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InputError,
    Invalid,
    NotFound,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)

A = LdsDeployment("a", "http://a", 10, priority=1)
B = LdsDeployment("b", "http://b", 10, priority=2)
C = LdsDeployment("c", "http://c", 10, priority=3)
OFF = LdsDeployment("off", "http://off", 10, priority=0, enabled=False)


def rotation(*of: LdsDeployment, turns: int, load: dict[str, int] | None = None) -> str:
    last, chosen = "", ""
    for _ in range(turns):
        last = choose(of, load=load or {}, health={}, now_s=0.0, last=last).deployment.id
        chosen += last
    return chosen


def test_round_robin_takes_turns_in_the_order_of_priority() -> None:
    """R000-095, R000-096; C34."""
    assert rotation(C, A, B, turns=7) == "abcabca"


def test_round_robin_skips_the_disabled_and_the_full_and_stays_even() -> None:
    assert rotation(A, OFF, B, C, turns=6, load={"b": 10}) == "acacac"


def test_round_robin_goes_on_where_a_disabled_one_stood() -> None:
    off = LdsDeployment("b", "http://b", 10, priority=2, enabled=False)
    assert choose([A, off, C], load={}, health={}, now_s=0.0, last="b").deployment == C


def test_round_robin_begins_anew_where_the_last_one_is_gone() -> None:
    assert choose([A, B], load={}, health={}, now_s=0.0, last="gone").deployment == A


def test_priority_takes_the_lowest_number_with_room() -> None:
    """R000-097; C34."""

    def chosen(**load: int) -> str:
        return choose([C, B, A], load=load, health={}, now_s=0.0, strategy="priority").deployment.id

    assert [chosen(), chosen(a=9), chosen(a=10), chosen(a=10, b=11)] == ["a", "a", "b", "c"]


def test_priority_shares_evenly_among_equals() -> None:
    small, large = LdsDeployment("a-small", "http://s", 10), LdsDeployment("b-large", "http://l", 100)
    chosen = choose([small, large], load={"a-small": 2, "b-large": 3}, health={}, now_s=0.0, strategy="priority")
    assert chosen.deployment == large


@pytest.mark.parametrize("strategy", ["round-robin", "priority"])
def test_affinity_wins(strategy: Strategy) -> None:
    """R000-094."""
    choice = choose([A, B], load={}, health={}, now_s=0.0, strategy=strategy, last="b", affinity="b")
    assert (choice.deployment, choice.warning) == (B, "")


@pytest.mark.parametrize(
    ("affinity", "load", "health", "warning"),
    [
        ("off", {}, {}, "is disabled"),
        ("b", {"b": 10}, {}, "is full (10 of 10 sessions)"),
        ("b", {}, {"b": DeploymentHealth(1, 5.0, why="503")}, "is avoided because it failed (503)"),
        ("gone", {}, {}, "is not configured"),
    ],
)
def test_affinity_that_cannot_be_followed_is_told(
    affinity: str, load: dict[str, int], health: dict[str, DeploymentHealth], warning: str
) -> None:
    choice = choose([A, B, OFF], load=load, health=health, now_s=1.0, affinity=affinity)
    assert choice.deployment == A
    assert choice.warning == f"LDS deployment {affinity} of lds.affinity {warning}"


def test_failing_one_is_avoided_until_its_time_is_over() -> None:
    health = {"a": DeploymentHealth(1, 5.0)}
    assert choose([A, B], load={}, health=health, now_s=4.9).deployment == B
    assert choose([A, B], load={}, health=health, now_s=5.0).deployment == A


@pytest.mark.parametrize(
    ("of", "load", "told"),
    [
        ([], {}, "none is configured"),
        ([OFF], {}, "off is disabled"),
        ([OFF, A], {"a": 12}, "off is disabled; a is full (12 of 10 sessions)"),
    ],
)
def test_nobody_enabled_or_free(of: list[LdsDeployment], load: dict[str, int], told: str) -> None:
    """R000-098."""
    with pytest.raises(InputError) as caught:
        choose(of, load=load, health={}, now_s=0.0)
    assert caught.value.reason == "NoLDSDeployment"
    assert told in caught.value.message


def test_deployment_that_says_itself_that_it_is_full_counts_as_full_for_a_while() -> None:
    state = after(WELL, Unavailable("no room", status=503), now_s=0.0, full=True)
    with pytest.raises(InputError, match=r"NoLDSDeployment.*a says that it is full"):
        choose([A], load={}, health={"a": state}, now_s=1.0)
    assert choose([A], load={}, health={"a": state}, now_s=state.until_s).deployment == A


def test_answer_to_another_call_does_not_make_room() -> None:
    """Else everybody would go back to the full one, while there is room elsewhere."""
    full = after(WELL, Unavailable("no room", status=503), now_s=0.0, full=True)
    for error in (None, NotFound("x", status=404)):
        state = after(full, error, now_s=1.0)
        assert choose([A, B], load={}, health={"a": state}, now_s=1.0, strategy="priority").deployment == B
        assert after(full, error, now_s=full.until_s) == WELL


def test_all_avoided_says_when_to_ask_again() -> None:
    health = {"a": DeploymentHealth(2, 9.0, why="a: 503"), "b": DeploymentHealth(1, 7.0, why="b: timeout")}
    with pytest.raises(Throttled) as caught:
        choose([A, B, OFF], load={}, health=health, now_s=4.0)
    assert caught.value.after_s == 3.0
    assert "a is avoided because it failed (a: 503); b is avoided" in caught.value.message


def test_message_does_not_change_while_nothing_else_does() -> None:
    health = {"a": DeploymentHealth(1, 9.0, why="503")}
    told = set()
    for now_s in (1.0, 2.0, 8.0):
        with pytest.raises(Throttled) as caught:
            choose([A], load={}, health=health, now_s=now_s)
        told.add(caught.value.message)
    assert len(told) == 1


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("x", status=503),
        Unavailable("x"),
        DeadlineExceeded("x"),
        Unauthorized("x", status=401),
        Forbidden("x", status=403),
        TlsFailed("x"),
        Invalid("redirected", status=302),
    ],
)
def test_what_is_wrong_with_a_deployment_lets_it_be_avoided(error: OutsideError) -> None:
    assert after(WELL, error, now_s=10.0).until_s == 10.0 + deployments.AVOID_FIRST_S


@pytest.mark.parametrize(
    "error", [None, NotFound("x", status=404), Conflict("x", status=409), Invalid("x", status=422)]
)
def test_what_is_wrong_with_one_request_does_not(error: OutsideError | None) -> None:
    assert after(DeploymentHealth(3, 1.0), error, now_s=10.0) == WELL


def test_avoidance_grows_to_its_cap_and_no_further() -> None:
    state, waits = WELL, []
    now_s = 0.0
    for _ in range(7):
        state = after(state, Unavailable("x"), now_s=now_s)
        waits.append(state.until_s - now_s)
        now_s = state.until_s
    assert waits == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_fault_met_by_many_at_once_counts_once() -> None:
    state = after(WELL, Unavailable("x"), now_s=0.0)
    assert after(state, Unavailable("x"), now_s=1.0) == state


def test_retry_after_is_kept() -> None:
    assert after(WELL, Throttled("x", after_s=90.0), now_s=0.0).until_s == 90.0


DEPLOYMENTS = st.lists(
    st.builds(
        LdsDeployment,
        id=st.sampled_from("abcdef"),
        base_url=st.just("http://x"),
        capacity=st.integers(0, 4),
        priority=st.integers(0, 2),
        enabled=st.booleans(),
    ),
    unique_by=lambda each: each.id,
    max_size=6,
)
LOADS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5))
HEALTHS = st.dictionaries(st.sampled_from("abcdef"), st.builds(DeploymentHealth, st.integers(1, 3), st.floats(0, 10)))


@given(
    of=DEPLOYMENTS,
    load=LOADS,
    health=HEALTHS,
    strategy=st.sampled_from(["round-robin", "priority"]),
    affinity=st.none() | st.sampled_from("abcdefg"),
    last=st.sampled_from("abcdefg"),
)
def test_nobody_gets_a_disabled_full_or_avoided_one(
    of: list[LdsDeployment],
    load: dict[str, int],
    health: dict[str, DeploymentHealth],
    strategy: Strategy,
    affinity: str | None,
    last: str,
) -> None:
    def fit(each: LdsDeployment) -> bool:
        avoided = each.id in health and health[each.id].until_s > 5.0
        return each.enabled and load.get(each.id, 0) < each.capacity and not avoided

    try:
        choice = choose(of, load=load, health=health, now_s=5.0, strategy=strategy, last=last, affinity=affinity)
    except (InputError, Throttled):
        assert not any(map(fit, of))
    else:
        assert fit(choice.deployment)
        assert bool(choice.warning) == (affinity is not None and choice.deployment.id != affinity)


@given(of=DEPLOYMENTS, rounds=st.integers(1, 4))
def test_round_robin_is_even(of: list[LdsDeployment], rounds: int) -> None:
    fit = [each for each in of if each.enabled and each.capacity]
    if fit:
        counts = Counter(rotation(*of, turns=rounds * len(fit)))
        assert counts == {each.id: rounds for each in fit}
