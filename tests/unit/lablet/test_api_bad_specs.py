"""What an admin may get wrong in a spec, and what the message says about it."""

import pytest

from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.platform.errors import InputError

WORKER = {"url": "https://cml1.example.net"}
DEFINITION = {"version": "1", "source": {"inline": "lab: {}"}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"capacity": {"cpu": "many"}}, "spec.capacity.cpu: 'many' is not a quantity; examples: 500m, 4, 8Gi"),
        ({"capacity": {"memory": "-8Gi"}}, "spec.capacity.memory: '-8Gi' is negative"),
        ({"portRange": {"start": 3000, "end": 2000}}, "spec.portRange: end 2000 is below start 3000"),
        ({"address": "not an address"}, "spec.address: 'not an address' is neither an IP address nor a DNS name"),
        ({"address": "x" * 300}, f"spec.address: '{'x' * 80}' is neither an IP address nor a DNS name"),
        ({"address": "fe80::1%eth0"}, "spec.address: 'fe80::1%eth0' has a zone, which has no meaning on other hosts"),
        ({"nodeLabels": {"a b": "c"}}, "spec.nodeLabels: 'a b' cannot be the name of a label"),
        ({"nodeLabels": {"zone": "a b"}}, "spec.nodeLabels: 'a b' cannot be the value of label zone"),
    ],
)
def test_worker_spec_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_worker_spec(WORKER | fields)
    assert caught.value.reason == "SpecInvalid"
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("address", ["198.51.100.1", "2001:db8::1", "cml1.example.net", "cml1"])
def test_addresses_of_nodes_are_accepted(address: str) -> None:
    assert parse_worker_spec(WORKER | {"address": address}).address == address


@pytest.mark.parametrize("name", ["a/../../secrets/b", "A", "", ".", "a b", "x" * 254])
def test_names_lead_nowhere_else(name: str) -> None:
    """They become parts of paths of the API."""
    with pytest.raises(InputError, match=r"spec.credentialsSecretName: "):
        parse_worker_spec(WORKER | {"credentialsSecretName": name})
    source = {"configMap": {"namespace": "n", "name": name}}
    with pytest.raises(InputError, match=r"spec.source.configMap.name: "):
        parse_definition_spec(DEFINITION | {"source": source})


def test_definition_cannot_charge_less_than_nothing() -> None:
    with pytest.raises(InputError, match=r"spec.resources.cpu: '-5' is negative"):
        parse_definition_spec(DEFINITION | {"resources": {"cpu": "-5"}})


def test_message_stays_short_whatever_it_quotes() -> None:
    with pytest.raises(InputError) as caught:
        parse_worker_spec(WORKER | {f"field{n}": n for n in range(1000)})
    assert len(caught.value.message) <= 1000
