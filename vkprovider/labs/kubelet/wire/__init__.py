"""Bytes of the kubelet API's streams, and what they mean. Pure: no I/O, no clock.

* `spdy`: frames of SPDY/3.1, as far as kubectl and the API server use them; `dictionary`: of its compressed headers.
* `session`: the streams of one SPDY connection.
* `forwards`: the connections of a port-forward session, which are pairs of such streams.
* `channels`: the messages of WebSockets that carry an exec, an attach or a port-forward session.
* `sizes`: sizes of a terminal. `statuses`: how a command ended.
* `errors`: what every parser here raises.

What a client sends is bounded everywhere, whatever it announces: heads of frames, headers, streams, messages.
"""
