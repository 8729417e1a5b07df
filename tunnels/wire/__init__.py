"""The messages between callers and agents, and their form on the wire. Pure.

`limits` names every bound, `messages` are the structs, `codec` turns them into frames and back. A frame is a version
byte and a MessagePack map; within a version, fields are only ever added, with a default.
"""
