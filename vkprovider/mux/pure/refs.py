"""Which Service is a mux, which mux a channel names, and whether the mux serves the channel's namespace."""

import re
from collections.abc import Mapping
from typing import Final

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import MuxRef, Owner
from vkprovider.mux.pure.reasons import MuxReason
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault

_LOAD_BALANCER: Final = "LoadBalancer"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_EVERY: Final = "*"


def annotation_key(prefix: str, name: str) -> str:
    """Return the key of an annotation.

    >>> annotation_key("svc-mux.nowake.ai", "port-range")
    'svc-mux.nowake.ai/port-range'
    """
    return f"{prefix}/{name}"


def is_marked(annotations: Mapping[str, str], prefix: str) -> bool:
    """Return whether a Service is marked as a mux, which it may be unfit for."""
    return annotations.get(annotation_key(prefix, muxnames.MUX_MULTIPLEXER)) == "true"


def unfit_for_mux(service_type: str, selector: Mapping[str, str]) -> Fault | None:
    """Return why a marked Service cannot be a mux; None if it can."""
    if service_type != _LOAD_BALANCER:
        return Fault(
            MuxReason.NOT_LOAD_BALANCER, f"a mux needs spec.type {_LOAD_BALANCER}; this Service has {service_type}"
        )
    if selector:
        return Fault(MuxReason.NOT_SUPPORTED, "a mux has no spec.selector: its backends are those of its channels")
    return None


def names_a_mux(load_balancer_class: str, prefix: str) -> bool:
    """Return whether a Service of this class is a channel, although the class may be malformed."""
    return load_balancer_class.startswith(f"{prefix}/")


def get_mux_from_lb_class(load_balancer_class: str, prefix: str, default_namespace: str) -> MuxRef:
    """Return the mux that a channel names: `PREFIX/MUX` or `PREFIX/MUX.NAMESPACE`.

    >>> str(get_mux_from_lb_class("svc-mux.nowake.ai/mux.edge", "svc-mux.nowake.ai", "svc-mux"))
    'edge/mux'

    Raises:
        InputError: `InvalidLoadBalancerClass`.
    """
    if names_a_mux(load_balancer_class, prefix):
        name, dot, namespace = load_balancer_class[len(prefix) + 1 :].partition(".")
        namespace = namespace if dot else default_namespace
        if _NAME.fullmatch(name) and _NAME.fullmatch(namespace):
            return MuxRef(namespace, name)
    raise InputError(
        MuxReason.INVALID_LOAD_BALANCER_CLASS,
        f"spec.loadBalancerClass {load_balancer_class!r} is not {prefix}/MUX or {prefix}/MUX.NAMESPACE",
    )


def serves(mux: MuxRef, allowed: str | None, owner: Owner) -> bool:
    """Return whether a mux serves a channel.

    Args:
        mux: The mux.
        allowed: Its annotation `allowed-namespaces`: names with commas between them, or `*`.
        owner: The channel. Lablets ask by their definition, which an admin lets them do: their namespaces do not count.
    """
    if owner.learner is not None or owner.namespace == mux.namespace:
        return True
    return not {_EVERY, owner.namespace}.isdisjoint(part.strip() for part in (allowed or "").split(","))
