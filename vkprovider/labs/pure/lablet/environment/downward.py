"""The downward API: fields of a Pod and resources of its containers as the value of a variable.

A lablet runs on its worker: the addresses of Pod and host are the worker's.
"""

import math
import re
from typing import Final

import msgspec

from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform import quantities
from vkprovider.platform.environment import EnvContainer, EnvPod, ResourceFieldRef

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_ADDRESSES: Final = frozenset({"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"})
_MILLI: Final = 1000


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Where a lablet runs.

    Attributes:
        ip: The worker's address; "" while it is unknown.
        total: What the worker holds.
    """

    ip: str
    total: Resources


def field(pod: EnvPod, path: str, place: Placement) -> str:
    """Return a field of a Pod as text; a label or annotation that is not set is empty.

    Raises:
        ValueError: The field is not one that a variable can have, or is not known yet.
    """
    meta, spec = pod.metadata, pod.spec
    if (found := _SUBSCRIPT.fullmatch(path)) is not None:
        return (meta.labels if found[1] == "labels" else meta.annotations).get(found[2], "")
    if path in _ADDRESSES:
        if not place.ip:
            raise ValueError(f"{path}: the worker's address is not known yet")
        return place.ip
    known = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": spec.node_name,
        "spec.serviceAccountName": spec.service_account_name,
    }
    if path not in known:
        raise ValueError(f"{path} is not a field that a variable can have")
    return known[path]


def resource(pod: EnvPod, container: EnvContainer, ref: ResourceFieldRef, place: Placement) -> str:
    """Return a resource of a container in units of the divisor, rounded up.

    Without a limit the limit is what the worker holds, as it is what the node holds elsewhere; without a request the
    request is 0 (k8s.io/kubernetes/pkg/api/v1/resource).

    Raises:
        ValueError: There is no such container, or a quantity is not one.
    """
    named = {each.name: each for each in pod.spec.containers}
    of = named.get(ref.container_name) if ref.container_name else container
    if of is None:
        raise ValueError(f"there is no container {ref.container_name!r}")
    kind, _, name = ref.resource.partition(".")
    given = {"limits": of.resources.limits, "requests": of.resources.requests}.get(kind)
    if given is None or not name:
        raise ValueError(f"{ref.resource} is not a resource that a variable can have")
    amounts = place.total.quantities() | given if kind == "limits" else given
    scale = _MILLI if name == "cpu" else 1
    amount = math.ceil(quantities.parse(amounts.get(name, "0")) * scale)
    divisor = math.ceil(quantities.parse(ref.divisor or "0") * scale) or scale
    return str(-(-amount // divisor))
