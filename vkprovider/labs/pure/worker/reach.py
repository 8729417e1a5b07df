"""The way to a worker: where it leads, whether others could read on it, and whether learners reach two at one address.

Two controllers behind one NAT address are two workers: each allocates its ports by itself. Where their ranges overlap,
the CMLWorker that was created later is not Ready. All of it follows from the CMLWorkers, so that every replica decides
the same.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import UNSET

from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.lablet.reasons import ConditionReason, WorkerReason
from vkprovider.labs.pure.worker.node import is_ip
from vkprovider.labs.pure.worker.registration import unapproved
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import CustomResource


def destination_of(name: str, spec: CMLWorkerSpec) -> str:
    """Return the receiver of a worker's requests: CML at its url, or the agent that bears the CMLWorker's name.

    >>> destination_of("cml-1", CMLWorkerSpec(tunnel="mqtt", url="https://192.0.2.7"))
    'agent://cml-1'
    """
    return spec.cml_url if spec.tunnel == "direct" else f"agent://{name}"


def insecure(spec: CMLWorkerSpec) -> TimelessCondition | None:
    """Return the condition TransportInsecure of a CMLWorker; None if its transport is secure, or is an agent's."""
    if spec.tunnel != "direct":
        return None
    if spec.cml_url.lower().startswith("http://"):
        text = "spec.url is http: password, token and labs can be read on the way; use https and spec.tls.caBundle"
        return TimelessCondition(ConditionReason.TRANSPORT_INSECURE, "True", WorkerReason.PLAIN_TEXT, text)
    if spec.tls.insecure_skip_verify and not spec.cml_url.startswith("null:"):
        text = "spec.tls.insecureSkipVerify is set: an impostor would get the password; use spec.tls.caBundle instead"
        return TimelessCondition(ConditionReason.TRANSPORT_INSECURE, "True", WorkerReason.NOT_VERIFIED, text)
    return None


_REACHED_AT: Final = "address:"


def entries_of_address(resource: CustomResource) -> set[str]:
    """Return the addresses at which learners reach a CMLWorker, as its spec has them and as they were resolved.

    >>> from vkprovider.platform.objects import Metadata
    >>> sorted(entries_of_address(CustomResource(Metadata("a"), {"url": "https://CML-1.example.com.:8443"})))
    ['address:cml-1.example.com']
    """
    written, resolved = _normal(_address_in(resource.spec)), worker_status(resource).address
    found = {written, _normal(resolved)} if resolved is not UNSET and not is_ip(written) else {written}
    return {_REACHED_AT + address for address in found - {""}}


def same_address(mine: CustomResource, alike: Iterable[CustomResource], unset: tuple[int, int]) -> InputError | None:
    """Return `SameAddress` for a CMLWorker whose ports an earlier one may give too, at one address; None if none does.

    Args:
        mine: The CMLWorker.
        alike: The CMLWorkers that share one of its `entries_of_address`; `mine` may be among them.
        unset: The range of a CMLWorker without `spec.portRange`.
    """
    entries, (first, last) = entries_of_address(mine), _range_in(mine.spec, unset)
    for other in sorted((other for other in alike if age(other) < age(mine)), key=age):
        shared, (start, end) = sorted(entries & entries_of_address(other)), _range_in(other.spec, unset)
        if shared and start <= last and first <= end and _may_begin(mine) and _may_begin(other):
            name, others = mine.metadata.name, other.metadata.name
            return InputError(
                WorkerReason.SAME_ADDRESS,
                f"learners reach it at {shared[0].removeprefix(_REACHED_AT)}, as they do CMLWorker {others}, which "
                f"was created earlier, and both give the ports {max(first, start)}-{min(last, end)}: two learners "
                "would get one address and port. Set spec.portRange of one of them to ports that the other does not "
                "give and its CML opens, or spec.address if learners reach it elsewhere: "
                f"kubectl edit cmlw {name}",
            )
    return None


def age(resource: CustomResource) -> tuple[str, str]:
    """Return the place of a CMLWorker among others: by its creation, then by its name."""
    return resource.metadata.creation_timestamp, resource.metadata.name


def _may_begin(resource: CustomResource) -> bool:
    """Return whether lablets may begin on a worker, by its own spec and approval."""
    try:
        parse_worker_spec(resource.spec)
    except InputError:
        return False
    return unapproved(resource) is None


def _address_in(spec: Mapping[str, Any]) -> str:
    """Return the result of `address_of` for a spec that is not parsed: each change of a CMLWorker asks this."""
    try:
        return str(spec.get("address") or urlsplit(str(spec.get("url") or "")).hostname or "")
    except ValueError:
        return ""


def _range_in(spec: Mapping[str, Any], unset: tuple[int, int]) -> tuple[int, int]:
    match spec.get("portRange"):
        case {"start": int(start), "end": int(end)}:
            return start, end
        case _:
            return unset


def _normal(address: str) -> str:
    """Return an address as it is compared.

    >>> _normal("2001:DB8:0::1"), _normal("::ffff:192.0.2.1"), _normal("CML.example.com.")
    ('2001:db8::1', '192.0.2.1', 'cml.example.com')
    """
    try:
        ip = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return address.lower().rstrip(".")
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip)
