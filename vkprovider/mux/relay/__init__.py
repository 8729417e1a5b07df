"""Keeps HAProxy's maps equal to the EndpointSlices of one mux: `vkprovider relay`.

HAProxy (haproxy.cfg) listens on a range of ports and carries the connections; this only tells it, through its runtime
socket, where each port leads. HAProxy is never started, reloaded or ended here, and what is established goes on while
this process is down.

* `wanted`: what HAProxy's maps should hold, and the commands of its runtime socket that make them so.
* `process`: the process of a relay: follow the mux, and keep one HAProxy as the mux wants it.
"""
