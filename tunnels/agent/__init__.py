"""The agent: the tunnel's end beside a server.

`core` relays what callers ask for through a `Transport` to the server, says what it knows by itself, and is driven by
any `Carrier`; `epochs` keeps the newest epoch on disk, so that a restarted agent still refuses a former owner.
"""
