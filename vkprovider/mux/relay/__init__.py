"""Keeps HAProxy's maps equal to the EndpointSlices of one mux: `vkprovider relay`.

HAProxy (haproxy.cfg) listens on a range of ports and carries the connections; this only tells it, through its runtime
socket, where each port leads. HAProxy is never started, reloaded or ended here, and what is established goes on while
this process is down.

* `wanted`: from the Service and the slices of a mux to HAProxy's maps. Pure.
* `runtime`: what HAProxy's runtime socket is told and what it answers. Pure.
* `haproxy`: one HAProxy, through that socket.
* `settings`: its settings; `process`: follows the mux, fills HAProxy and ends connections.
"""
