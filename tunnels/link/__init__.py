"""What connects the protocol with the event loop and a carrier, on the caller's side.

`carrier` is the seam: what every carrier (MQTT, a WebSocket) offers and calls. `hub` is the caller's end of one
carrier, shared by all its agents; `transport` is the `Transport` to one of them. `stream` is a stream of bytes for
its reader and writer, on both sides.
"""
