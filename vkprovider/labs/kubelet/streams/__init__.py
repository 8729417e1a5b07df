"""Sessions over the connections of aiohttp: thin shells between `wire` and those who serve a session.

* `commands`: exec and attach sessions.
* `forwards`: port-forward sessions.
* `links`: the connection of a session: which protocol both agree on, then raw after an upgrade.
* `channels`: the streams of a session whose WebSocket has channels.
* `reading`: the task that reads a session's connection.
* `inlets`: bytes that have arrived and wait for their reader, and what a session may use.

A session has one task, which reads; it stops reading while too much waits for a reader, and shows a sign of life then.
Whoever writes waits while the client is slow. When the client leaves, readers and writers learn it and the task ends.
"""
