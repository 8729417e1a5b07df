"""Words of muxes on the wire: annotations and labels, whose prefix is a setting, and the reasons of Events."""

from typing import Final

from vkprovider.platform.reasons import Reasons

# Services that share one load balancer. Their annotations have a prefix that is a setting.
MUX_PREFIX: Final = "svc-mux.nowake.ai"
"""The prefix unless the setting names another."""
MUX_PROGRAM: Final = "svc-lb-mux"
"""The value of `app.kubernetes.io/name` and `managed-by` of what belongs to a mux."""
MUX_MULTIPLEXER: Final = "multiplexer"
"""A mark of the Service that owns the load balancer: `true`."""
MUX_EXTERNAL_PORTS: Final = "external-ports"
"""A channel's request for outside ports: `http:8080,grpc:auto`."""
MUX_PORT_RANGE: Final = "port-range"
MUX_MAX_PORTS: Final = "max-ports"
MUX_ALLOWED_NAMESPACES: Final = "allowed-namespaces"
"""The namespaces whose channels a mux serves beside its own: `team-a,team-b`, or `*`."""
MUX_PORTS: Final = "ports"
"""A report on a channel: `http:80->8080`."""
MUX_STORE: Final = "allocation-configmap"
MUX_OWNER: Final = "mux"
"""An annotation of what belongs to a mux: its `namespace/name`."""
MUX_CHANNELS: Final = "channels"
MUX_TOPOLOGY: Final = "topology"
MUX_SUMMARY: Final = "summary"
"""Reports on a mux: its channels as JSON, a line for each of their ports, and one line."""
MUX_MANAGED: Final = "managed"
"""A mark of what holds the backends of a mux: `true`."""
MUX_FINALIZER: Final = "finalizer"

EXTERNAL_DNS: Final = "external-dns.alpha.kubernetes.io/hostname"
"""An annotation of external-dns: the names, with commas between them, that it gives the address of a Service."""

# Lablets that lend their ports to a mux: an EndpointSlice each, see `exposure`.
MUX_SERVICE_ACCOUNT: Final = "vkprovider-mux"
"""The ServiceAccount of the process that serves muxes; it never is the provider's."""


class MuxReason(Reasons):
    """Events of mux Services and of channel Services."""

    NOT_LOAD_BALANCER = (
        "NotLoadBalancer",
        "A Service that is marked as a mux is not of type LoadBalancer.",
        "Set `spec.type: LoadBalancer`, or remove the annotation.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "A mux has a selector, so that Kubernetes would write its endpoints.",
        "Remove spec.selector.",
    )
    INVALID_LOAD_BALANCER_CLASS = (
        "InvalidLoadBalancerClass",
        "The class of a channel does not name a mux.",
        "Make the Service again with the class that the message shows; a Service's class cannot be changed.",
    )
    INVALID_PORT = ("InvalidPort", "A port of a channel has no name.", "Name each of spec.ports.")
    INVALID_PORT_MAPPING = (
        "InvalidPortMapping",
        "A channel asks for outside ports that the mux cannot give it; it has none until this is corrected.",
        "Correct the annotation `external-ports` of the channel, or `port-range` of the mux, as the message says.",
    )
    INVALID_PORT_RANGE = (
        "InvalidPortRange",
        "The port range of a mux cannot be read; ports that were given stay, and no others are given.",
        "Write the annotation `port-range` as `START-END`, several with commas between them.",
    )
    INVALID_MAX_PORTS = (
        "InvalidMaxPorts",
        "The port limit of a mux cannot be read; ports that were given stay, and no others are given.",
        "Write the annotation `max-ports` as a whole number of 1 or more, or remove it.",
    )
    GKE_PORT_LIMIT_APPLIED = (
        "GkePortLimitApplied",
        "The mux has 100 ports at most, because a load balancer of GKE carries no more.",
        "Set the annotation `max-ports` to 100 or less; use a second mux for more ports.",
    )
    PORT_ALLOCATION_STORE_INVALID = (
        "PortAllocationStoreInvalid",
        "The ConfigMap with the ports of a mux is damaged, or belongs to another mux; its ports stay as they are.",
        "Restore it or remove the wrong row, as the message says; give each mux a ConfigMap of its own.",
    )
    MUX_STORE_FULL = (
        "MuxStoreFull",
        "The ConfigMap of a mux has no room for the ports of one more channel, which has none.",
        "Use a second mux; one has room for about 2,500 automatic ports.",
    )
    MUX_NOT_ALLOWED = (
        "MuxNotAllowed",
        "A channel names a mux that does not serve its namespace; it has no port.",
        "Have the owner of the mux name the namespace in its annotation `allowed-namespaces`, or use another mux.",
    )
    MUX_PORT_CONFLICT = (
        "MuxPortConflict",
        "A channel asks for an outside port that another channel has, or asks for one twice; it has no port.",
        "Ask for another port, or for `auto`, in the annotation `external-ports` of the channel.",
    )
    MUX_PORT_RESTING = (
        "MuxPortResting",
        "An outside port was another channel's a moment ago; so that nobody meets the wrong one there, it rests.",
        "Wait until the time in the message; the channel then gets it by itself.",
    )
    MUX_PORT_LIMIT_EXCEEDED = (
        "MuxPortLimitExceeded",
        "A channel would give the mux more ports than it may have; the channel has no port.",
        "Remove other channels, raise the annotation `max-ports` of the mux, or use a second mux.",
    )
    MUX_PORT_NAME_TAKEN = (
        "MuxPortNameTaken",
        "Two ports would have one name in the mux, because names there are short hashes; the later one has no port.",
        "Give the port of the channel another name.",
    )
    MUX_NOT_FOUND = (
        "MuxNotFound",
        "A channel names a mux that does not exist; it has no port.",
        "Make the mux, or name another one.",
    )
    MUX_BACKEND_REFUSED = (
        "MuxBackendRefused",
        "A backend of a channel is an address of others, such as a CML worker or a Service, not of a Pod beside it.",
        "Remove the address from the EndpointSlice of the channel, or have its endpoint refer to the Pod that has it.",
    )
    MUX_WRITE_REFUSED = (
        "MuxWriteRefused",
        "The API server, or a policy of the cluster, refuses a request for a mux; what it had stays as it is.",
        "Correct what the message names: annotation of the mux, policy, or the program's rights (mux.md, Install).",
    )
    MUX_OPEN_TO_ALL = (
        "MuxOpenToAll",
        "A mux leads to consoles of lablets, which ask for no login, and accepts connections from everywhere.",
        "Set `spec.loadBalancerSourceRanges` of the mux to the networks of its learners.",
    )
    MUX_PORTS_CHANGED = ("MuxPortsChanged", "The ports of a mux changed; the message names them.", "")
    MUX_ENDPOINTS_CREATED = ("MuxEndpointsCreated", "A mux has got its first backends.", "")
    MUX_ENDPOINTS_CHANGED = ("MuxEndpointsChanged", "The backends of a mux changed.", "")
    MUX_ANNOTATIONS_UPDATED = (
        "MuxAnnotationsUpdated",
        "The annotations by which a mux reports on its channels changed.",
        "",
    )
    MUX_TAKEN_OVER = (
        "MuxTakenOver",
        "A replica had been silent, and another one serves the mux.",
        "",
    )
