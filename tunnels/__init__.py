"""Transports: how an HTTP request reaches a server and its response comes back.

A library that knows neither CML nor Kubernetes. `base.Transport` is the contract, `direct.DirectTransport` its form
over a plain connection, `base.AllowList` the requests that it lets pass. Streams of bytes have a contract of their own,
`base.StreamOpener`, and `channels.DirectStreams` is its direct form. Below them, `outgoing` is how a request of any
HTTP client leaves: its guard, its session, its proxy.

A server that cannot be dialled has an agent beside it, which dials out. `wire` holds the messages between callers and
agents, `protocol` what both do with them, without I/O, and `link` the caller's end: `link.hub.Hub` over a
`link.carrier.Carrier`, and the `Transport` through it. `agent` is the other end, `mqtt` and `websocket` are carriers
for both.

* `base`: the contracts of every transport: requests, streams of bytes, their errors, and the requests that may pass.
* `direct`: the direct transport: HTTP or HTTPS over a connection pool.
* `channels`: streams of bytes over connections of their own: WebSockets of a server, and TCP ports of its host.
* `outgoing`: how a request leaves this process: its guard, its proxy, and the session of every HTTP client of ours.
* `wire`: the messages between a caller and an agent: by who sends them, as frames and back, with the bounds of each.
* `protocol`: what both ends do with the messages, without I/O: the time is an argument, what is to be sent a result.
* `link`: what connects the protocol with the event loop and a carrier, on the caller's side.
* `agent`: the agent: the tunnel's end beside a server.
* `mqtt`: the carrier over an MQTT broker, version 5 or 3.1.1, for callers and for agents.
* `websocket`: the carrier over HTTP: an agent dials every caller and keeps one WebSocket to each of them.
"""
