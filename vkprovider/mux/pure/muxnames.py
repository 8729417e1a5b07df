"""Names on the wire of muxes and channels. Their annotations have a prefix that is a setting."""

from typing import Final

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

# Lablets that lend their ports to a mux: an EndpointSlice each, see `exposure`.
MUX_SERVICE_ACCOUNT: Final = "vkprovider-mux"
"""The ServiceAccount of the process that serves muxes; it never is the provider's."""
