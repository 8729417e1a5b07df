"""Settings of tunnels: a wrong one is named before anything connects."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tunnels.link.carrier import Address
from tunnels.mqtt.carrier import MqttCarrier
from tunnels.websocket.dialing import Dialing
from vkprovider.agent.process import agent_carrier
from vkprovider.agent.settings import AgentProcessSettings
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.tunnels import carriers, listening
from vkprovider.platform.errors import InputError

URL = "VKPROVIDER_TUNNEL_MQTT_URL"


def read(**variables: str) -> Any:
    return Settings.from_environment(variables)


@pytest.mark.parametrize(
    ("url", "broker", "encrypted"),
    [
        ("mqtts://broker.example.com", ("broker.example.com", 8883), True),
        ("mqtts://broker.example.com:443/", ("broker.example.com", 443), True),
        ("mqtt://127.0.0.1", ("127.0.0.1", 1883), False),
        ("mqtts://[2001:db8::1]:8884", ("2001:db8::1", 8884), True),
    ],
)
def test_a_broker(url: str, broker: tuple[str, int], *, encrypted: bool) -> None:
    mqtt = read(**{URL: url}).mqtt
    assert (mqtt.broker, mqtt.is_encrypted) == (broker, encrypted)


@pytest.mark.parametrize(
    "url",
    ["broker", "https://broker", "mqtts://", "mqtts://me:secret@broker", "mqtts://broker/path", "mqtts://broker:x"],
)
def test_what_is_not_a_broker_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        read(**{URL: url})


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValidationError, match="VKPROVIDER_TUNNEL_MQTT_KEY_FILE"):
        read(VKPROVIDER_TUNNEL_MQTT_CERT_FILE="/tls.crt")


def test_an_unknown_agent_awaits_approval_by_default() -> None:
    assert read().tunnels.register_policy == "approve"
    assert read(VKPROVIDER_TUNNEL_REGISTER="deny").tunnels.register_policy == "deny"
    with pytest.raises(ValidationError):
        read(VKPROVIDER_TUNNEL_REGISTER="perhaps")


TOKENS = "VKPROVIDER_TUNNEL_HTTP_TOKENS"


def test_tokens_of_agents() -> None:
    found = read(**{TOKENS: "cml-7:0123456789abcdef 0123456789abcdeF\ncml.8:0123456789:abcdef"}).http_tunnel
    assert found.agent_tokens == [
        ("cml-7", "0123456789abcdef"),
        ("", "0123456789abcdeF"),
        ("cml.8", "0123456789:abcdef"),
    ]
    assert found.is_on
    assert not read().http_tunnel.is_on
    assert read(VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE="/ca.pem").http_tunnel.is_on


@pytest.mark.parametrize(
    "tokens", ["short", "cml-7:short", "0123456789abcdef cml-7:012345678", "cml-7:ä123456789abcdef"]
)
def test_a_token_that_could_be_guessed_is_refused_and_not_shown(tokens: str) -> None:
    with pytest.raises(ValidationError, match="openssl rand") as caught:
        read(**{TOKENS: tokens})
    assert tokens not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://vkprovider.example.com", "https://vkprovider.example.com"),
        ("wss://vkprovider.example.com/lab/", "https://vkprovider.example.com/lab"),
        ("ws://127.0.0.1:8082", "http://127.0.0.1:8082"),
        ("http://[2001:db8::1]:8082/", "http://[2001:db8::1]:8082"),
    ],
)
def test_the_url_of_a_page(given: str, url: str) -> None:
    assert read(VKPROVIDER_TUNNEL_HTTP_ADVERTISED_URL=given).http_tunnel.advertised_url == url
    both = AgentProcessSettings.from_environment({"VKPROVIDER_TUNNEL_HTTP_URL": f"{given} https://b"})
    assert both.dial.urls == (url, "https://b")


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://x", "https://", "https://me:secret@x", "https://x?a", "https://x:y"]
)
def test_what_is_not_a_page_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        read(VKPROVIDER_TUNNEL_HTTP_ADVERTISED_URL=url)
    with pytest.raises(ValidationError):
        AgentProcessSettings.from_environment({"VKPROVIDER_TUNNEL_HTTP_URL": f"https://good {url}"})


def test_an_agent_has_one_way() -> None:
    mqtt, http = {URL: "mqtts://broker"}, {"VKPROVIDER_TUNNEL_HTTP_URL": "https://x"}
    for environment, kind in ((mqtt, MqttCarrier), (http, Dialing)):
        settings = AgentProcessSettings.from_environment(environment)
        assert isinstance(agent_carrier(settings.mqtt, settings.dial, Address("w1", "a")), kind)
    for environment, said in (({}, "neither is set"), ({**mqtt, **http}, "both are set")):
        settings = AgentProcessSettings.from_environment(environment)
        with pytest.raises(InputError, match=said):
            agent_carrier(settings.mqtt, settings.dial, Address("w1", "a"))


@pytest.mark.parametrize("name", ["CA", "CERT"])
def test_files_of_an_agent_that_cannot_be_used_are_named(tmp_path: Path, name: str) -> None:
    file = tmp_path / "not.pem"
    file.write_text("not a certificate")
    given = {"VKPROVIDER_TUNNEL_HTTP_URL": "https://x", f"VKPROVIDER_TUNNEL_HTTP_{name}_FILE": str(file)}
    if name == "CERT":
        with pytest.raises(ValidationError, match="VKPROVIDER_TUNNEL_HTTP_KEY_FILE"):
            AgentProcessSettings.from_environment(given)
        given["VKPROVIDER_TUNNEL_HTTP_KEY_FILE"] = str(file)
    settings = AgentProcessSettings.from_environment(given)
    with pytest.raises(InputError, match=f"VKPROVIDER_TUNNEL_HTTP_{name}_FILE {file}"):
        agent_carrier(settings.mqtt, settings.dial, Address("w1", "a"))


def test_a_replica_has_the_ways_that_are_set() -> None:
    both = read(**{URL: "mqtts://broker", TOKENS: "0123456789abcdef"})
    http = listening(both.http_tunnel, "a-host-1-b", dict)
    assert sorted(carriers(both.mqtt, "a-host-1-b", http)) == ["http", "mqtt"]
    none = read()
    assert listening(none.http_tunnel, "a-host-1-b", dict) is None
    assert carriers(none.mqtt, "a-host-1-b", None) == {}
