"""The EndpointSlice by which a lablet lends ports to a mux, and the annotation by which the mux answers.

The owner of the lablet's Node writes the slice from the claim, into the provider's namespace:

    metadata:
      name: lablet-0a1b…                                       # the UID of the Pod
      labels:
        endpointslice.kubernetes.io/managed-by: vkprovider
        service.kubernetes.io/service-proxy-name: vkprovider-mux   # no kube-proxy reads it
        vkprovider.io/component: exposed-lablet                # by these two it is found again
        vkprovider.io/worker: worker-1
      annotations:
        vkprovider.io/exposed: >-
          {"worker":"worker-1","mux":"labs.edge","namespace":"class","pod":"ann","podUID":"0a1b…","learner":"ann",
           "slots":{"pc-serial":"PC_serial"}}
        vkprovider.io/mux-answer: >-                           # the mux alone writes it
          {"pc-serial":{"state":"live","address":"203.0.113.10","port":20000}}
    addressType: IPv4
    endpoints: [{addresses: [198.51.100.1], conditions: {ready: true}}]
    ports: [{name: pc-serial, protocol: TCP, port: 10011}]

It is an input of the mux, and names no Service, so that nothing forwards to it. What it says never changes: another
learner, port or address is another slice, with a UID of its own, so that no answer is taken for that to another one.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons.happened import ExposureReason
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, shorten
from vkprovider.platform.objects import EndpointSlice, Metadata

PENDING: Final = "pending"
LIVE: Final = "live"
REFUSED: Final = "refused"
_NAME: Final = "lablet-"
_WHY_CHARS_MAX: Final = 200


class ExposedPort(msgspec.Struct, frozen=True):
    """A port of an exposed lablet.

    Attributes:
        name: Its name in the slice: that of the slot as a DNS label.
        slot: The slot.
        protocol: `TCP` or `UDP`.
        port: The worker's port.
    """

    name: str
    slot: str
    protocol: str
    port: int


class Exposure(msgspec.Struct, frozen=True):
    """An exposed lablet.

    Attributes:
        worker: The worker of its lab.
        mux: `NAME` or `NAME.NAMESPACE`, as its definition says.
        namespace, pod, pod_uid: Its Pod.
        learner: Whose lablet it is by the claim; "" while it has no learner.
        address: An IP address of the worker.
        ports: In the order of their names.
    """

    worker: str
    mux: str
    namespace: str
    pod: str
    pod_uid: str
    learner: str
    address: str
    ports: tuple[ExposedPort, ...]


class Access(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mux answers about one port.

    Attributes:
        state: `pending`; `live`, with the outside address and port; or `refused`.
        address: An IP address or a DNS name.
        why: Why it is refused, or what it waits for.
    """

    state: Literal["pending", "live", "refused"]
    address: str = ""
    port: int = 0
    why: str = ""

    @property
    def text(self) -> str:
        """The answer for people: `203.0.113.10:20000`, `pending: WHY` or `refused: WHY`."""
        if self.state == LIVE:
            return f"{f'[{self.address}]' if ':' in self.address else self.address}:{self.port}"
        return f"{self.state}: {self.why}" if self.why else self.state


class _Identity(msgspec.Struct, frozen=True):
    worker: str
    mux: str
    namespace: str
    pod: str
    pod_uid: str = msgspec.field(name="podUID")
    learner: str
    slots: dict[str, str]


_identity: Final = msgspec.json.Decoder(_Identity)
_answer: Final = msgspec.json.Decoder(dict[str, Access])


def slice_name(pod_uid: str) -> str:
    """Return the name of the slice of a lablet."""
    return _NAME + pod_uid


def pod_uid_of(name: str) -> str:
    """Return the UID of the Pod whose slice has a name."""
    return name.removeprefix(_NAME)


def selector(worker: str = "") -> str:
    """Return the label selector of the slices of exposed lablets, of one worker or of all."""
    chosen = f"{names.LABEL_COMPONENT}={names.COMPONENT_EXPOSED}"
    return f"{chosen},{names.LABEL_WORKER}={wellknown.label_value(worker)}" if worker else chosen


def ports_of(slots: Iterable[tuple[str, str, int]]) -> tuple[ExposedPort, ...]:
    """Return the ports of slots, given as (slot, protocol, worker's port), under names that a slice may have.

    >>> [port.name for port in ports_of([("PC_serial", "TCP", 10011)])]
    ['pc-serial']
    """
    taken: set[str] = set()
    ports = [ExposedPort(names.container_name(slot, taken), slot, proto, port) for slot, proto, port in sorted(slots)]
    return tuple(sorted(ports, key=lambda port: port.name))


def encode(exposure: Exposure, namespace: str, *, worker_uid: str) -> dict[str, Any]:
    """Return the EndpointSlice of an exposed lablet, in the provider's namespace; there is no answer in it.

    It belongs to the CMLWorker, with which it goes.
    """
    version = ipaddress.ip_address(exposure.address).version
    identity = _Identity(
        exposure.worker,
        exposure.mux,
        exposure.namespace,
        exposure.pod,
        exposure.pod_uid,
        exposure.learner,
        {port.name: port.slot for port in exposure.ports},
    )
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": slice_name(exposure.pod_uid),
            "namespace": namespace,
            "labels": {
                wellknown.LABEL_SLICE_MANAGED_BY: wellknown.MANAGER,
                wellknown.LABEL_SERVICE_PROXY: names.MUX_PROXY,
                wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
                names.LABEL_COMPONENT: names.COMPONENT_EXPOSED,
                names.LABEL_WORKER: wellknown.label_value(exposure.worker),
            },
            "annotations": {names.ANNOTATION_EXPOSED: msgspec.json.encode(identity).decode()},
            "ownerReferences": [
                {"apiVersion": wellknown.API_VERSION, "kind": "CMLWorker", "name": exposure.worker, "uid": worker_uid}
            ],
        },
        "addressType": f"IPv{version}",
        "endpoints": [{"addresses": [exposure.address], "conditions": {"ready": True}}],
        "ports": [{"name": port.name, "protocol": port.protocol, "port": port.port} for port in exposure.ports],
    }


def decode(found: EndpointSlice) -> Exposure:
    """Return the exposed lablet that a slice of the provider's namespace stands for.

    Raises:
        InputError: `ExposureInvalid`.
    """
    meta = found.metadata
    try:
        identity = _identity.decode(meta.annotations.get(names.ANNOTATION_EXPOSED, ""))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _invalid(meta, f"its annotation {names.ANNOTATION_EXPOSED} cannot be read: {error}") from None
    if meta.name != slice_name(identity.pod_uid):
        raise _invalid(meta, f"it names the pod of {slice_name(identity.pod_uid)}")
    addresses = [address for endpoint in found.endpoints or () for address in endpoint.addresses]
    if len(addresses) != 1:
        raise _invalid(meta, f"it has {len(addresses)} addresses, and a worker has one")
    try:
        ipaddress.ip_address(addresses[0])
    except ValueError:
        raise _invalid(meta, f"{addresses[0]!r} is no IP address") from None
    ports = []
    for port in found.ports or ():
        if port.port is None or port.name not in identity.slots:
            raise _invalid(meta, f"port {port.name!r} has no number, or is that of no slot")
        ports.append(ExposedPort(port.name, identity.slots[port.name], port.protocol, port.port))
    if len({port.name for port in ports}) != len(ports) or len(ports) != len(identity.slots):
        raise _invalid(meta, "its ports are not those of its slots")
    return Exposure(
        identity.worker,
        identity.mux,
        identity.namespace,
        identity.pod,
        identity.pod_uid,
        identity.learner,
        addresses[0],
        tuple(sorted(ports, key=lambda port: port.name)),
    )


def _invalid(meta: Metadata, what: str) -> InputError:
    return InputError(ExposureReason.EXPOSURE_INVALID, f"EndpointSlice {meta.namespace}/{meta.name}: {what}")


def encode_answer(answer: Mapping[str, Access]) -> str:
    """Return the annotation by which a mux answers, by the names of ports; equal answers give equal texts."""
    cut = {
        name: msgspec.structs.replace(access, why=shorten(access.why, _WHY_CHARS_MAX))
        for name, access in sorted(answer.items())
    }
    return msgspec.json.encode(cut).decode()


def answer_patch(uid: str, answer: Mapping[str, Access]) -> list[dict[str, str]]:
    """Return the JSON patch by which a mux answers a slice of this UID, and no later one of its name."""
    path = f"/metadata/annotations/{names.ANNOTATION_MUX_ANSWER.replace('/', '~1')}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": path, "value": encode_answer(answer)},
    ]


def decode_answer(metadata: Metadata) -> dict[str, Access]:
    """Return the answer of the mux by the names of ports; none before it answers.

    Raises:
        InputError: `ExposureInvalid`: it cannot be read.
    """
    text = metadata.annotations.get(names.ANNOTATION_MUX_ANSWER)
    if text is None:
        return {}
    try:
        return _answer.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _invalid(metadata, f"its annotation {names.ANNOTATION_MUX_ANSWER} cannot be read: {error}") from None


_DNS_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_MUX: Final = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})?")


class Lending(msgspec.Struct, frozen=True, gc=False):
    """What a definition asks for.

    Attributes:
        mux: `NAME` or `NAME.NAMESPACE`.
        slots: The slots whose ports are lent; None for all that CML opens.
        lds: Whether the LDS is told the mux's address.
    """

    mux: str
    slots: tuple[str, ...] | None = None
    lds: bool = False


def expose_of(spec: Mapping[str, Any]) -> Lending | None:
    """Read what a LabletDefinition's spec asks for, which may be invalid: nothing unreadable is exposed."""
    asked = spec.get("expose")
    if not isinstance(asked, dict):
        return None
    mux, slots = asked.get("mux"), asked.get("ports")
    if not isinstance(mux, str) or not _MUX.fullmatch(mux):
        return None
    if slots is not None and not (isinstance(slots, list) and all(isinstance(slot, str) for slot in slots)):
        return None
    return Lending(mux, None if slots is None else tuple(slots), asked.get("lds") is True)
