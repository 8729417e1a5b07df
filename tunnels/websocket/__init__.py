"""The carrier over HTTP: an agent dials every caller and keeps one WebSocket to each of them.

An address that an agent dials may belong to one caller or to a proxy in front of several. Of two WebSockets to one
caller the agent keeps the first; it says hello on those that it keeps, and only these count for the caller.

* `listening`: the caller's end: WebSockets of agents that have dialled in.
* `dialing`: the agent's end: dials every caller, and dials again after every loss.
* `socket`: an open WebSocket: messages wait in a bounded queue; and what a caller says first on it.
"""
