"""The carriers of a replica, one for each tunnel that the settings configure."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tunnels.link.carrier import Carrier
from tunnels.mqtt.carrier import CallerSide, MqttCarrier
from tunnels.websocket.listening import Listening
from vkprovider.carriers.broker import TOPICS, broker_of
from vkprovider.carriers.settings import HttpTunnelSettings, MqttSettings, parse_tokens
from vkprovider.lablet import names
from vkprovider.platform.rereading import Reread
from vkprovider.platform.runtime.membership import Membership

_IDENTITY_CHARS_MAX: Final = 64
_NOT_IDENTITY: Final = re.compile(r"[^0-9A-Za-z_.-]")


def listening(settings: HttpTunnelSettings, process: str, dialled: Callable[[], Mapping[str, str]]) -> Listening | None:
    """Return a replica's carrier to agents that dial its page; None if the settings let none in.

    Args:
        settings: Who may dial.
        process: This process, unique for ever.
        dialled: Returns where agents dial each replica, by its process; called by the carrier when it tells agents.
    """

    def callers() -> dict[str, str]:
        return {_identity(each): url for each, url in dialled().items()}

    return Listening(_identity(process), callers) if settings.is_on else None


def agents_notes(settings: HttpTunnelSettings) -> dict[str, str]:
    """Return the annotation by which a replica says where agents dial it; none if it accepts no agents."""
    return {names.ANNOTATION_AGENTS_URL: settings.advertised_url} if settings.is_on else {}


def dialled(membership: Membership) -> dict[str, str]:
    """Return where agents dial each replica that lives, by its process; a replica that accepts none is missing.

    An empty URL means that only the address that leads to all replicas leads to this one.
    """
    said = membership.said()
    return {
        process: notes[names.ANNOTATION_AGENTS_URL]
        for process, notes in said.items()
        if names.ANNOTATION_AGENTS_URL in notes
    }


def agent_tokens(settings: HttpTunnelSettings) -> Callable[[], list[tuple[str, str]]]:
    """Return a function that reads the agents' tokens, pairs of agent name and token, from the current token file.

    Raises:
        InputError: `SettingInvalid`: the file cannot be read, or a token is too short.
    """
    path = settings.tokens_file
    further = Reread([path], lambda: parse_tokens(Path(path).read_text("utf-8")) if path else [])
    return lambda: settings.agent_tokens + further.current()


def carriers(mqtt: MqttSettings, process: str, http: Listening | None) -> dict[str, Carrier]:
    """Return a replica's carriers, by the word in `spec.tunnel`; nothing connects before they run.

    Args:
        mqtt: The broker; no MQTT without a url.
        process: This process, unique for ever.
        http: See `listening`.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
    found: dict[str, Carrier] = {}
    if mqtt.url:
        found["mqtt"] = MqttCarrier(broker_of(mqtt), CallerSide(TOPICS, _identity(process)))
    if http is not None:
        found["http"] = http
    return found


def _identity(process: str) -> str:
    """Return the identity of a process as a caller."""
    return _NOT_IDENTITY.sub("-", process[-_IDENTITY_CHARS_MAX:])
