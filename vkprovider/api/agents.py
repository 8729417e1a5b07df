"""What an agent says about itself and its worker in its hello."""

from typing import Final

import msgspec

from vkprovider.api.errors import InputError
from vkprovider.api.reasons import WorkerReason


class AgentFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent says; only a CMLWorker that is created for it takes it over.

    Attributes:
        environment: `spec.environment`.
        url: CML's, as the agent reaches it.
        address: What learners reach.
        holds_credentials: Whether the agent logs in to CML itself.
    """

    environment: str = "default"
    url: str = ""
    address: str = ""
    holds_credentials: bool = False


_DECODER: Final = msgspec.json.Decoder(AgentFacts)


def encode_facts(facts: AgentFacts) -> bytes:
    """Return facts as they stand in a hello."""
    return msgspec.json.encode(facts)


def parse_facts(said: bytes) -> AgentFacts:
    """Parse the facts of a hello.

    Raises:
        InputError: `AgentRefused`.
    """
    try:
        return _DECODER.decode(said or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(WorkerReason.AGENT_REFUSED, f"the facts of its hello cannot be read: {error}") from None
