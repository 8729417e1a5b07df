"""The grammar of the topics. Pure.

    <prefix>/probe                          a caller asks all agents for a hello
    <prefix>/<name>/down/<boot>/<caller>    a caller to an agent's process
    <prefix>/<name>/up/<boot>/<caller>      an agent's process to a caller
    <prefix>/<name>/up/<boot>/all           an agent's process to all callers

The agent's name comes before everything that differs, so that two access rules bind an agent to its own topics; the
sender is part of every topic, so that nobody has to believe a message about who sent it.
"""

import re
from dataclasses import dataclass
from typing import Final

from tunnels.link.carrier import ALL, WORD, Address, parse_address

EVERYBODY: Final = "all"
"""The level that stands for all callers; none may be called so."""

_PREFIX: Final = re.compile(r"[0-9A-Za-z_.-]+(/[0-9A-Za-z_.-]+){0,7}")


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one installation.

    Args:
        prefix: One to eight levels, for instance `vkprovider/prod`.

    Raises:
        ValueError: The prefix holds a wildcard, an empty level or a character that a topic should not have.
    """

    prefix: str

    def __post_init__(self) -> None:
        if _PREFIX.fullmatch(self.prefix) is None:
            raise ValueError(f"{self.prefix!r} is not a topic's prefix: levels of letters, digits, '_', '.' and '-'")

    @property
    def probe(self) -> str:
        """The topic on which callers address all agents."""
        return f"{self.prefix}/probe"

    def down(self, address: Address, caller: str) -> str:
        """Return the topic from a caller to an agent's process."""
        return f"{self.prefix}/{address.name}/down/{address.boot}/{_checked(caller)}"

    def up(self, address: Address, caller: str) -> str:
        """Return the topic from an agent's process to a caller, or to `ALL`."""
        return f"{self.prefix}/{address.name}/up/{address.boot}/{_checked(caller) if caller != ALL else EVERYBODY}"

    def of_caller(self, caller: str) -> tuple[str, ...]:
        """Return the topics that a caller subscribes to."""
        return f"{self.prefix}/+/up/+/{EVERYBODY}", f"{self.prefix}/+/up/+/{_checked(caller)}"

    def of_agent(self, address: Address) -> tuple[str, ...]:
        """Return the topics that an agent's process subscribes to."""
        return self.probe, f"{self.prefix}/{address.name}/down/{address.boot}/+"

    def from_agent(self, topic: str) -> Address | None:
        """Return the sender that a topic belongs to; None if the topic is not one of an agent's."""
        levels = self._levels(topic)
        if len(levels) != 4 or levels[1] != "up":  # noqa: PLR2004 (the grammar above)
            return None
        return parse_address(f"{levels[0]}/{levels[2]}")

    def from_caller(self, topic: str) -> str | None:
        """Return the caller that sent what arrived on a topic; `ALL` for a probe, None if it is not a caller's."""
        if topic == self.probe:
            return ALL
        levels = self._levels(topic)
        if len(levels) != 4 or levels[1] != "down" or WORD.fullmatch(levels[3]) is None:  # noqa: PLR2004 (same)
            return None
        return levels[3]

    def _levels(self, topic: str) -> list[str]:
        start = f"{self.prefix}/"
        return topic[len(start) :].split("/") if topic.startswith(start) else []


def _checked(caller: str) -> str:
    if WORD.fullmatch(caller) is None or caller == EVERYBODY:
        raise ValueError(f"{caller!r} cannot be the identity of a caller")
    return caller
