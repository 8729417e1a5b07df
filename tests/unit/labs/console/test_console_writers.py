"""Who types at a console."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.console.writers import LEFT, RETURNED, TAKEN, Writer, Writers, notices, refusal

ALICE = Writer("alice", attached=True, since=0.0)
ANN = Writer("ann", attached=True, since=60.0)
COMMAND = Writer("show version", attached=False, since=0.0)
Claims = Writers[str] | Writer[str]


def typing(*queue: Writer[str]) -> Writers[str]:
    return Writers(queue)


def told(before: Writers[str], after: Claims) -> list[tuple[str, str]]:
    assert isinstance(after, Writers)
    return list(notices(before, after))


def test_a_free_console_is_anybodys() -> None:
    for take_over in (False, True):
        after = typing().claimed(ALICE, take_over=take_over)
        assert after == typing(ALICE)
        assert told(typing(), after) == [], "nobody else is concerned"


def test_nobody_types_beside_a_person_who_did_not_ask_to_take_over() -> None:
    for by in (ANN, COMMAND):
        assert typing(ALICE).claimed(by, take_over=False) == ALICE
    assert typing(COMMAND).claimed(ANN, take_over=False) == COMMAND
    assert typing(COMMAND).claimed(ANN, take_over=True) == COMMAND, "a command ends by itself"


def test_who_takes_over_gives_it_back_on_leaving() -> None:
    taken = typing(ALICE).claimed(ANN, take_over=True)
    assert taken == typing(ALICE, ANN)
    assert told(typing(ALICE), taken) == [("alice", TAKEN)]
    assert taken.without("ann") == typing(ALICE)
    assert told(taken, taken.without("ann")) == [("alice", RETURNED)]


def test_who_left_meanwhile_does_not_get_it_back() -> None:
    taken = typing(ALICE, ANN)
    assert taken.without("alice") == typing(ANN)
    assert told(taken, taken.without("alice")) == []
    assert told(typing(ANN), typing(ANN).without("ann")) == []


def test_a_second_take_over_ends_before_the_first() -> None:
    both = typing(ALICE, ANN)
    admin = Writer("admin", attached=True, since=90.0)
    three = both.claimed(admin, take_over=True)
    assert told(both, three) == [("ann", TAKEN)], "alice watches already"
    assert isinstance(three, Writers)
    assert told(three, three.without("ann")) == [], "alice still watches"
    assert told(three.without("ann"), three.without("ann").without("admin")) == [("alice", RETURNED)]


def test_who_watches_reads_when_nobody_types_any_more() -> None:
    people = ["alice", "ann", "eve"]
    assert list(notices(typing(ALICE), typing(), people)) == [("ann", LEFT), ("eve", LEFT)]
    assert list(notices(typing(ALICE, ANN), typing(ALICE), people)) == [("alice", RETURNED)], "alice types"
    assert list(notices(typing(ANN), typing(ANN, ALICE), people)) == [("ann", TAKEN)]
    assert list(notices(typing(), typing(ALICE), people)) == list(notices(typing(), typing(), people)) == []
    assert list(notices(typing(COMMAND), typing(), people)) == [], "a command comes and goes with its output"


def test_a_refusal_names_commands_that_can_be_pasted() -> None:
    text = refusal(ANN, "R 1", "lab-0")
    assert "at the console of R 1 since 00:01 UTC" in text
    assert "`kubectl lablet console lab-0 'R 1' --watch`" in text
    assert "`kubectl lablet console lab-0 'R 1' --take-over`" in text
    assert "`kubectl exec -it lab-0 -- console 'R 1' --take-over`" in text


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["types", "takes over", "commands", "leaves"])), max_size=30
    )
)
def test_in_any_history_one_types_and_everyone_knows(history: list[tuple[str, str]]) -> None:
    """Each session knows from its own claims and lines alone whether it types."""
    writers: Writers[str] = Writers()
    believes: dict[str, bool] = {}
    for session, does in history:
        before = writers
        if does == "leaves":
            writers = writers.without(session)
            believes.pop(session, None)
        elif session not in believes:
            by = Writer(session, attached=does != "commands", since=0.0)
            found = writers.claimed(by, take_over=does == "takes over")
            if isinstance(found, Writer):
                assert found.session != session
                assert believes[found.session], "only one who types is in the way"
                continue
            writers = found
            believes[session] = True
        for concerned, line in notices(before, writers):
            believes[concerned] = line == RETURNED
        assert [name for name, types in believes.items() if types] == ([writers.queue[-1].session] if believes else [])
