"""What it means for the CMLWorkers that an agent has presented itself.

An agent's name is the promise of the broker, whose access rules let each agent speak under its own name only, or of the
page, which knows the token or certificate of each agent. Whether it may bring a worker into the cluster is another
question, and the setting `VKPROVIDER_TUNNEL_REGISTER` answers it.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.api import names
from vkprovider.api.agents import AgentFacts
from vkprovider.api.errors import InputError
from vkprovider.api.messages import Fault
from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import WorkerReason
from vkprovider.settings.tunnels import Register

_UNAPPROVED: Final = "false"


@dataclass(frozen=True, slots=True)
class Hello:
    """An agent that is there.

    Attributes:
        name: Its name, which is that of its CMLWorker.
        tunnel: The word in `spec.tunnel`.
        boot: Its process.
        rival: Another process that claims the name and was refused; empty if there is none.
        facts: What it says of itself and its worker.
    """

    name: str
    tunnel: str
    boot: str
    rival: str
    facts: AgentFacts


@dataclass(frozen=True, slots=True)
class Create:
    """A CMLWorker is to be created."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warn:
    """A Warning is due about a CMLWorker."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Deny:
    """The agent remains without a CMLWorker; the log says why."""

    why: str


Decision = Create | Warn | Deny | None


def decide(hello: Hello, known: CustomResource | None, policy: Register) -> Decision:
    """Decide about an agent; None if nothing has to be done.

    Args:
        hello: The agent.
        known: The CMLWorker of its name.
        policy: What happens if there is none.
    """
    if known is None:
        if policy == "deny":
            return Deny(f"create a CMLWorker {hello.name} with spec.tunnel: {hello.tunnel}, if you know the agent")
        return Create(_worker(hello, approved=policy == "allow"))
    if known.metadata.deletion_timestamp is not None:
        return None
    if (wanted := known.spec.get("tunnel", "direct")) != hello.tunnel:
        text = f"an agent {hello.name} came by {hello.tunnel}, but spec.tunnel is {wanted}; it is not used"
        return Warn(Fault(WorkerReason.AGENT_REFUSED, text))
    if hello.rival:
        text = f"two agents bear the name {hello.name}: {hello.boot} is used, {hello.rival} is refused"
        return Warn(Fault(WorkerReason.AGENT_CONFLICT, text))
    return None


def unapproved(resource: CustomResource) -> InputError | None:
    """Return why nothing may begin on a CMLWorker that was made for an agent; None if it is approved."""
    if resource.metadata.annotations.get(names.ANNOTATION_APPROVED) != _UNAPPROVED:
        return None
    name = resource.metadata.name
    return InputError(
        WorkerReason.AWAITING_APPROVAL,
        f"an agent brought this worker; if you know it: kubectl lablet approve {name}; else delete the CMLWorker",
    )


def _worker(hello: Hello, *, approved: bool) -> dict[str, Any]:
    facts = hello.facts
    spec: dict[str, Any] = {"tunnel": hello.tunnel, "environment": facts.environment, "stats": "On"}
    if address := facts.address or urlsplit(facts.url).hostname:
        spec["address"] = address
    return {
        "apiVersion": names.API_VERSION,
        "kind": "CMLWorker",
        "metadata": {
            "name": hello.name,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGER},
            "annotations": {} if approved else {names.ANNOTATION_APPROVED: _UNAPPROVED},
        },
        "spec": spec,
    }
