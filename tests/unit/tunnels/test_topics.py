"""The grammar of the MQTT topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnels.link.carrier import ALL, NAME, WORD, Address
from tunnels.mqtt.carrier import EVERYBODY, CallerSide, TopicGrammar

TOPICS = TopicGrammar("vkprovider/prod")
ADDRESS = Address("w1.lab", "b00t")

names = st.from_regex(NAME, fullmatch=True)
words = st.from_regex(WORD, fullmatch=True).filter(lambda word: word != EVERYBODY)


def matches(filter_: str, topic: str) -> bool:
    """Whether a subscription brings a topic (MQTT 5, 4.7)."""
    levels = topic.split("/")
    for number, level in enumerate(filter_.split("/")):
        if level == "#":
            return True
        if number >= len(levels) or level not in ("+", levels[number]):
            return False
    return len(levels) == len(filter_.split("/"))


def test_the_topics() -> None:
    assert TOPICS.probe == "vkprovider/prod/probe"
    assert TOPICS.down(ADDRESS, "r-0") == "vkprovider/prod/w1.lab/down/b00t/r-0"
    assert TOPICS.up(ADDRESS, "r-0") == "vkprovider/prod/w1.lab/up/b00t/r-0"
    assert TOPICS.up(ADDRESS, ALL) == "vkprovider/prod/w1.lab/up/b00t/all"


@given(names, words, words, words)
def test_who_sent_it_is_read_from_the_topic_and_only_the_one_meant_subscribes(
    name: str, boot: str, caller: str, other: str
) -> None:
    address = Address(name, boot)
    down, up = TOPICS.down(address, caller), TOPICS.up(address, caller)
    assert TOPICS.from_agent(up) == address
    assert TOPICS.from_caller(down) == caller
    assert TOPICS.from_agent(down) is None
    assert TOPICS.from_caller(up) is None
    assert any(matches(each, down) for each in TOPICS.of_agent(address))
    assert any(matches(each, up) for each in TOPICS.of_caller(caller))
    assert any(matches(each, TOPICS.up(address, ALL)) for each in TOPICS.of_caller(other))
    if other != caller:
        assert not any(matches(each, up) for each in TOPICS.of_caller(other))
    if other != boot:
        assert not any(matches(each, down) for each in TOPICS.of_agent(Address(name, other)))


@given(st.text(max_size=40))
def test_any_topic_is_read_without_an_error(text: str) -> None:
    for topic in (text, f"{TOPICS.prefix}/{text}"):
        sender = TOPICS.from_agent(topic)
        assert sender is None or TOPICS.up(sender, topic.rpartition("/")[2]) == topic
        caller = TOPICS.from_caller(topic)
        assert caller is None or topic == TOPICS.probe or topic.endswith(f"/{caller}")


@pytest.mark.parametrize("prefix", ["", "/", "a/", "/a", "a//b", "+", "a/#", "$SYS", "a b", "ä", "a/b/c/d/e/f/g/h/i"])
def test_a_prefix_with_wildcards_or_holes_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        TopicGrammar(prefix)


@pytest.mark.parametrize("caller", ["", "all", "+", "#", "a/b", "a b", "x" * 65])
def test_a_caller_that_could_be_mistaken_is_refused(caller: str) -> None:
    with pytest.raises(ValueError, match="identity"):
        TOPICS.of_caller(caller)
    with pytest.raises(ValueError, match="identity"):
        TOPICS.down(ADDRESS, caller)


def test_nobody_who_knows_a_caller_can_take_its_connection() -> None:
    """A broker ends a connection when somebody connects under its name; agents read the caller's in their topics."""
    caller, again = CallerSide(TOPICS, "replica-1"), CallerSide(TOPICS, "replica-1")
    assert caller.client() == caller.client(), "it comes back under its name"
    assert caller.client().identity != again.client().identity
    assert "replica-1" not in caller.client().identity
