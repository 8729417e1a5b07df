"""What an agent's hello means for the CMLWorkers."""

from typing import Any

import pytest

from vkprovider.carriers.hello import AgentFacts, encode_facts, parse_facts
from vkprovider.lablet import names
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.pure.worker.registration import Bearer, Create, Deny, PresentAgent, decide, turned_away, unapproved
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource, Metadata

FACTS = AgentFacts("prod", "https://192.0.2.7", "", holds_credentials=True)
HELLO = PresentAgent("cml-7", "mqtt", FACTS)


def known(**spec: Any) -> CustomResource:
    return CustomResource(Metadata("cml-7"), {"tunnel": "mqtt", **spec})


def test_an_unknown_agent_is_denied() -> None:
    assert decide(HELLO, None, "deny") == Deny("create a CMLWorker cml-7 with spec.tunnel: mqtt, if you know the agent")


def test_an_unknown_agent_gets_a_worker_that_awaits_approval() -> None:
    made = decide(HELLO, None, "approve")
    assert isinstance(made, Create)
    spec = parse_worker_spec(made.body["spec"])
    assert (spec.tunnel, spec.environment, spec.address, spec.stats) == ("mqtt", "prod", "192.0.2.7", "On")
    annotations = made.body["metadata"]["annotations"]
    refusal = unapproved(CustomResource(Metadata("cml-7", annotations=annotations)))
    assert refusal is not None
    assert refusal.reason == "AwaitingApproval"
    assert "kubectl lablet approve cml-7" in refusal.message
    assert "stop the agent, then: kubectl delete cmlw cml-7 (while it runs, it is made again)" in refusal.message


def test_an_unknown_agent_may_be_let_in_at_once() -> None:
    made = decide(HELLO, None, "allow")
    assert isinstance(made, Create)
    assert unapproved(CustomResource(Metadata("cml-7", annotations=made.body["metadata"]["annotations"]))) is None


@pytest.mark.parametrize("policy", ["deny", "approve", "allow"])
def test_an_agent_whose_worker_is_there_changes_nothing(policy: Any) -> None:
    assert decide(HELLO, known(), policy) is None


def test_an_agent_by_another_tunnel_is_not_used() -> None:
    for tunnel in ("direct", "http"):
        said = turned_away(known(tunnel=tunnel), [Bearer("mqtt", "k3j9", "")])
        assert said is not None
        assert (said.type, said.status, said.reason) == ("AgentTurnedAway", "True", "AgentRefused")
        assert "process k3j9) came by mqtt" in said.message
        assert f"spec.tunnel is {tunnel}" in said.message
    default = CustomResource(Metadata("cml-7"), {"url": "https://192.0.2.7"})
    assert turned_away(default, [Bearer("mqtt", "k3j9", "")]) is not None


def test_two_agents_of_one_name_are_both_named() -> None:
    said = turned_away(known(), [Bearer("mqtt", "k3j9", "x2x2")])
    assert said is not None
    assert (said.type, said.status, said.reason) == ("AgentTurnedAway", "True", "AgentConflict")
    assert said.message == ("two agents bear the name cml-7: process k3j9 is used, process x2x2 is refused")


def test_three_agents_by_two_tunnels_are_all_named() -> None:
    said = turned_away(known(), [Bearer("http", "h1", ""), Bearer("mqtt", "k3j9", "x2x2")])
    assert said is not None
    assert said.reason == "AgentConflict"
    assert "x2x2 is refused; agent cml-7 (process h1) came by http" in said.message


def test_the_one_agent_of_a_worker_is_not_worth_a_word() -> None:
    assert turned_away(known(), [Bearer("mqtt", "k3j9", "")]) is None
    assert turned_away(known(), []) is None


def test_a_worker_that_a_person_made_needs_no_approval() -> None:
    assert unapproved(known()) is None
    assert unapproved(CustomResource(Metadata("w", annotations={names.ANNOTATION_APPROVED: "true"}))) is None


def test_facts_survive_the_way() -> None:
    assert parse_facts(encode_facts(FACTS)) == FACTS
    assert parse_facts(b"") == AgentFacts()


@pytest.mark.parametrize("said", [b"{", b"[]", b'{"environment": 5}', b"\xff", b"[" * 10_000])
def test_facts_that_cannot_be_read_are_named(said: bytes) -> None:
    with pytest.raises(InputError) as caught:
        parse_facts(said)
    assert caught.value.reason == "AgentRefused"
