"""Which ports of a lablet are lent to a mux: what its definition asks for, and what stands in the cluster."""

import ipaddress
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import msgspec

from vkprovider.lablet import exposure
from vkprovider.lablet.exposure import Access, Exposure, Lending
from vkprovider.lablet.ports import PortTemplate
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import EndpointSlice
from vkprovider.platform.ports.allocator import TCP, UDP

EXPOSE_AGAIN_S: Final = 2.0
"""How soon to look whether the slice stands that was written; somebody may delete it all the time."""
NO_ANSWER: Final = Access(exposure.PENDING)
"""What is known of a port before the mux answers."""


class NoSlice(Enum):
    """Why no slice can be named that should stand.

    Attributes:
        UNWANTED: There certainly should be none.
        UNKNOWN: Nobody knows yet whether there should be one, or which: the definition is gone, its content is not
            read, or the address of the worker is not known. What stands, stands.
    """

    UNWANTED = "unwanted"
    UNKNOWN = "unknown"


class Exposing(msgspec.Struct, frozen=True, gc=False):
    """What is known of a lablet's ports and a mux.

    Attributes:
        wanted: The slice that should stand while the lablet is in use; else why there is none to be named, or the fault
            by which there can be none, although one is asked for.
        seen: The slice that stands, as it reads; None if there is none, or it cannot be read.
        seen_uid: Its UID; "" if there is none.
        answer: The answer of the mux to it, by slot.
        lds: Whether the LDS is told the mux's address.
    """

    wanted: Exposure | Fault | NoSlice = NoSlice.UNWANTED
    seen: Exposure | None = None
    seen_uid: str = ""
    answer: Mapping[str, Access] = {}
    lds: bool = False

    @property
    def access(self) -> dict[str, Access]:
        """The answer of the mux for each slot that is lent; `pending` before there is one."""
        slots = [port.slot for port in self.seen.ports] if self.seen is not None else []
        return {slot: self.answer.get(slot, NO_ANSWER) for slot in slots}

    @property
    def unsettled(self) -> list[str]:
        """The slots that may soon be live."""
        if not self.stands:
            return [port.slot for port in self.wanted.ports] if isinstance(self.wanted, Exposure) else []
        return [slot for slot, access in self.access.items() if access.state == exposure.PENDING]

    @property
    def stands(self) -> bool:
        """Whether the slice that should stand does."""
        return self.wanted == self.seen


NOT_EXPOSED: Final = Exposing()


def unknown_slots(slots: Iterable[str], template: PortTemplate) -> list[str]:
    """Return the names among `slots` that a topology does not have."""
    known = {slot.name for slot in template.slots}
    return [name for name in slots if name not in known]


def wanted_of(expose: Lending, claim: Claim, template: PortTemplate, *, worker: str, address: str) -> Exposure | None:
    """Return the slice of a lablet by its claim; None if it has no such port.

    Args:
        expose: What the definition asks for.
        claim: The lablet's.
        template: Of its content.
        worker: The worker's name.
        address: Its IP address.
    """
    slots = _slots(expose, template)
    ports = exposure.ports_of(
        (name, UDP if name in claim.udp else TCP, claim.ports[name]) for name in slots if name in claim.ports
    )
    if not ports:
        return None
    learner = claim.bound_to
    return Exposure(worker, expose.mux, claim.namespace, claim.pod, claim.pod_uid, learner, address, ports)


def read_slice(found: EndpointSlice) -> tuple[Exposure | None, dict[str, Access]]:
    """Read a slice and the mux's answer, by slot; None and nothing where one cannot be read.

    A slice that cannot be read is written again; an answer that cannot is none yet.
    """
    try:
        seen = exposure.decode(found)
    except InputError:
        return None, {}
    try:
        answer = exposure.decode_answer(found.metadata)
    except InputError:
        return seen, {}
    slots = {port.name: port.slot for port in seen.ports}
    return seen, {slots[name]: access for name, access in answer.items() if name in slots}


def address_fault(worker: str, address: str) -> Fault | None:
    """Return why nothing can lead to a worker's address; None if it can. An EndpointSlice has no such address."""
    known = ipaddress.ip_address(address)
    if known.is_loopback or known.is_link_local or known.is_multicast or known.is_unspecified:
        text = f"worker {worker} has address {address}, to which no mux can lead; set spec.address of the CMLWorker"
        return Fault(Trouble.NOT_EXPOSABLE, text)
    return None


def _slots(expose: Lending, template: PortTemplate) -> Iterable[str]:
    if expose.slots is None:
        return (slot.name for slot in template.slots if slot.tag.opened)
    return expose.slots
