"""What an agent says about itself and its worker in hellos and heartbeats."""

from typing import Final

import msgspec

from vkprovider.lablet.observations import WorkerUsage
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.errors import InputError


class AgentFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent says.

    Attributes:
        environment: `spec.environment` of a CMLWorker that is created for it.
        url: CML's, as the agent reaches it; for such a CMLWorker, too.
        address: What learners reach; for such a CMLWorker, too.
        holds_credentials: Whether the agent logs in to CML itself.
        watches: Whether it looks at CML by itself, and reports every change as an event.
        usage: What the worker has and uses; None if CML does not say.
    """

    environment: str = "default"
    url: str = ""
    address: str = ""
    holds_credentials: bool = False
    watches: bool = False
    usage: WorkerUsage | None = None


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
