"""What a mux answers to the lablets that lend it ports."""

from collections.abc import Iterable, Sequence

from vkprovider.lablet.exposure import LIVE, PENDING, REFUSED, Access
from vkprovider.mux.index import ExposedLablet
from vkprovider.mux.pure.decide import Plan
from vkprovider.mux.pure.facts import Owner
from vkprovider.mux.pure.lablets import owner_of

_TWICE = "another lablet of this name and learner is still there"
_NO_ADDRESS = "the mux has no address yet"


def answers_of(
    lablets: Iterable[ExposedLablet], plan: Plan, addresses: Sequence[str]
) -> list[tuple[ExposedLablet, dict[str, Access]]]:
    """Return the answer to each lablet, by the names of its ports.

    Args:
        lablets: Those that name the mux, in the order in which they were decided about.
        plan: What was decided, and is written already: a port is live when it is answered so.
        addresses: Those of the load balancer.
    """
    waits = {each.channel.owner: each for each in plan.refused}
    answers, had = [], set[Owner]()
    for lablet in lablets:
        owner = owner_of(lablet.exposure)
        numbers = {each.row.port_name: each.row.mux_port for each in plan.mapped.get(owner, ())}
        refused = waits.get(owner)
        answer: dict[str, Access] = {}
        for port in lablet.exposure.ports:
            if owner in had:
                answer[port.name] = Access(PENDING, why=_TWICE)
            elif port.name in numbers:
                answer[port.name] = (
                    Access(LIVE, addresses[0], numbers[port.name])
                    if addresses
                    else Access(PENDING, port=numbers[port.name], why=_NO_ADDRESS)
                )
            elif refused is not None:
                why = f"{refused.fault.reason}: {refused.fault.message}"
                answer[port.name] = Access(REFUSED if refused.until is None else PENDING, why=why)
        had.add(owner)
        answers.append((lablet, answer))
    return answers


def refusal(lablet: ExposedLablet, why: str) -> dict[str, Access]:
    """Return the answer that refuses all ports of a lablet."""
    return {port.name: Access(REFUSED, why=why) for port in lablet.exposure.ports}
