"""Settings of tunnels: a wrong one is named before anything connects."""

from typing import Any

import pytest
from pydantic import ValidationError

from vkprovider.app.settings import Settings

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
