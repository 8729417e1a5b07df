"""What connects the protocol with the event loop and a carrier, on the caller's side.

* `carrier`: the seam between protocol and carriers: frames to a peer, frames from a peer, connections that come and go.
* `hub`: the caller's end of one carrier, shared by all agents that it reaches, and the `Transport` to each of them.
* `stream`: streams of bytes for their readers and writers, on the caller's and on the agent's side.
"""
