"""Transports: how an HTTP request reaches a server and its response comes back.

A library that knows neither CML nor Kubernetes. `base.Transport` is the contract, `direct.DirectTransport` its form
over a plain connection, `allowlist.AllowList` the requests that it lets pass, `errors` what it raises. Streams of
bytes have a contract of their own, `base.StreamOpener`, and `channels.DirectStreams` is its direct form. Below them,
`outgoing` is how a request of any HTTP client leaves: its guard, its session, its proxy.

A server that cannot be dialled has an agent beside it, which dials out. `wire` holds the messages between callers and
agents, `protocol` what both do with them, without I/O, and `link` the caller's end: `link.hub.Hub` over a
`link.carrier.Carrier`, and the `Transport` through it. `agent` is the other end, `mqtt` and `websocket` are carriers
for both.
"""
