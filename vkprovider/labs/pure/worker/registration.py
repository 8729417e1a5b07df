"""What it means for the CMLWorkers that an agent has presented itself.

An agent's name is the promise of the broker, whose access rules let each agent speak under its own name only, or of the
page, which knows the token or certificate of each agent. Whether it may bring a worker into the cluster is another
question, and the setting `VKPROVIDER_TUNNEL_REGISTER` answers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.carriers.hello import AgentFacts
from vkprovider.carriers.settings import Register
from vkprovider.lablet import names
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import CustomResource

_UNAPPROVED: Final = "false"


@dataclass(frozen=True, slots=True)
class PresentAgent:
    """An agent that is there.

    Attributes:
        name: Its name, which is that of its CMLWorker.
        tunnel: The word in `spec.tunnel`.
        facts: What it says of itself and its worker.
    """

    name: str
    tunnel: str
    facts: AgentFacts


@dataclass(frozen=True, slots=True)
class Bearer:
    """The agent that bears a worker's name in a tunnel.

    Attributes:
        tunnel: The word in `spec.tunnel`.
        boot: Its process.
        rival: Another process that claims the name and was refused; empty if there is none.
    """

    tunnel: str
    boot: str
    rival: str


@dataclass(frozen=True, slots=True)
class Create:
    """A CMLWorker is to be created."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Deny:
    """The agent remains without a CMLWorker; the log says why."""

    why: str


Decision = Create | Deny | None


def decide(hello: PresentAgent, known: CustomResource | None, policy: Register) -> Decision:
    """Decide about an agent; None if nothing has to be done.

    Args:
        hello: The agent.
        known: The CMLWorker of its name.
        policy: What happens if there is none.
    """
    if known is not None:
        return None
    if policy == "deny":
        return Deny(f"create a CMLWorker {hello.name} with spec.tunnel: {hello.tunnel}, if you know the agent")
    return Create(_worker(hello, approved=policy == "allow"))


def turned_away(resource: CustomResource, bearers: Sequence[Bearer]) -> TimelessCondition | None:
    """Return the condition AgentTurnedAway of a CMLWorker; None if no agent of its name is turned away.

    Args:
        resource: The CMLWorker.
        bearers: The agents of its name that are there, by any tunnel.
    """
    name, wanted = resource.metadata.name, resource.spec.get("tunnel", "direct")
    rivals = [
        f"two agents bear the name {name}: process {bearer.boot} is used, process {bearer.rival} is refused"
        for bearer in bearers
        if bearer.tunnel == wanted and bearer.rival
    ]
    strays = [
        f"agent {name} (process {bearer.boot}) came by {bearer.tunnel}, but spec.tunnel is {wanted}: it is not used"
        for bearer in bearers
        if bearer.tunnel != wanted
    ]
    if not rivals and not strays:
        return None
    reason = WorkerReason.AGENT_CONFLICT if rivals else WorkerReason.AGENT_REFUSED
    return TimelessCondition("AgentTurnedAway", "True", reason, "; ".join(rivals + strays))


def unapproved(resource: CustomResource) -> InputError | None:
    """Return why nothing may begin on a CMLWorker that was made for an agent; None if it is approved."""
    if resource.metadata.annotations.get(names.ANNOTATION_APPROVED) != _UNAPPROVED:
        return None
    name = resource.metadata.name
    return InputError(
        WorkerReason.AWAITING_APPROVAL,
        f"an agent brought this worker; if you know it: kubectl lablet approve {name}; else stop the agent, then: "
        f"kubectl delete cmlw {name} (while it runs, it is made again)",
    )


def _worker(hello: PresentAgent, *, approved: bool) -> dict[str, Any]:
    facts = hello.facts
    spec: dict[str, Any] = {"tunnel": hello.tunnel, "environment": facts.environment, "stats": "On"}
    if address := facts.address or urlsplit(facts.url).hostname:
        spec["address"] = address
    return {
        "apiVersion": wellknown.API_VERSION,
        "kind": "CMLWorker",
        "metadata": {
            "name": hello.name,
            "labels": {wellknown.LABEL_MANAGED_BY: wellknown.MANAGER},
            "annotations": {} if approved else {names.ANNOTATION_APPROVED: _UNAPPROVED},
        },
        "spec": spec,
    }
