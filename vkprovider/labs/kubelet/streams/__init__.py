"""Sessions over the connections of aiohttp: thin shells between `wire` and those who serve a session.

* `commands`: `accept_command` answers an exec or attach request with a `spi.RemoteCommand`.
* `forwards`: `accept_forward` answers a port-forward request with a `spi.Forward`.
* `handshake`: which protocol client and server agree on.
* `spdy`, `channels`: the streams of a session, over SPDY or over the channels of a WebSocket.
* `reading`: what both have in common: one task that reads, until the client leaves or the session is idle.
* `inlets`: bytes that have arrived and wait for their reader, and the room that they have.
* `links`: the connection itself: raw after an upgrade to SPDY, or a WebSocket.
* `limits`: what a session may use.

A session has one task, which reads; it stops reading while too much waits for a reader, and shows a sign of life then.
Whoever writes waits while the client is slow. When the client leaves, readers and writers learn it and the task ends.
"""
